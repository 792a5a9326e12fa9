package org.apache.spark.sql.hudi.catalog

import drawstring.bridge.{Bridge, Wire}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.{Dataset, Row, SparkSession}

/** Which existing rows a write replaces. */
sealed trait Overwrite {
  def put(message: ObjectNode): Unit
}

object Overwrite {
  case object Nothing extends Overwrite {
    override def put(message: ObjectNode): Unit = ()
  }

  /** Everything, whatever the overwrite mode says: `TRUNCATE TABLE t`. */
  case object Everything extends Overwrite {
    override def put(message: ObjectNode): Unit = message.putObject("overwrite").put("kind", "everything")
  }

  /** `INSERT OVERWRITE t` without a PARTITION clause. */
  case object Table extends Overwrite {
    override def put(message: ObjectNode): Unit = message.putObject("overwrite").put("kind", "table")
  }

  /** The partitions that the new rows fall into. */
  case object Dynamic extends Overwrite {
    override def put(message: ObjectNode): Unit = message.putObject("overwrite").put("kind", "dynamic")
  }

  /** The partitions with these values; a null stands for the partition of nulls. */
  final case class Partitions(values: Seq[(String, String)]) extends Overwrite {
    override def put(message: ObjectNode): Unit = {
      val target = message.putObject("overwrite").put("kind", "partitions").putObject("partition")
      values.foreach { case (column, value) => target.put(column, value) }
    }
  }
}

/**
 * One write as the planner is told of it.
 *
 * `origin` says which statement asked, because Hudi's defaults differ: `dataframe` (upsert), `insert` (SQL
 * INSERT), `ctas` (CREATE TABLE AS SELECT).
 */
final case class WriteRequest(
    path: String,
    origin: String,
    mode: String,
    options: Map[String, String] = Map.empty,
    overwrite: Overwrite = Overwrite.Nothing,
    table: String = "",
    database: String = "",
    partitionColumns: Seq[String] = Nil,
    properties: Map[String, String] = Map.empty,
    stream: Option[SinkBatch] = None) {

  def run(data: Dataset[Row]): JsonNode = Bridge.write(data, message(data.sparkSession))

  private def message(spark: SparkSession): ObjectNode = {
    val node = Wire.obj().put("path", path).put("origin", origin).put("mode", mode)
    node.put("table", table).put("database", database)
    Wire.putMap(node, "options", options)
    Wire.putMap(node, "properties", properties)
    Wire.putMap(node, "session", SessionSettings.of(spark))
    val columns = node.putArray("partition_columns")
    partitionColumns.foreach(columns.add(_: String))
    overwrite.put(node)
    stream.foreach(_.put(node))
    node
  }
}

/** Which batch of which streaming query a write is. */
final case class SinkBatch(number: Long, query: String, outputMode: String) {
  def put(message: ObjectNode): Unit =
    message.putObject("stream").put("batch", number).put("query", query).put("output_mode", outputMode)
}

/** The settings of a session that change what a Hudi write does. */
object SessionSettings {
  def of(spark: SparkSession): Map[String, String] = spark.conf.getAll.filter { case (key, _) => key.startsWith("hoodie.") }
}

/** The columns that Hudi puts before a table's own. */
object MetaColumns {
  val names: Seq[String] = Seq(
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name")

  def isMeta(name: String): Boolean = names.contains(name.toLowerCase(java.util.Locale.ROOT))
}
