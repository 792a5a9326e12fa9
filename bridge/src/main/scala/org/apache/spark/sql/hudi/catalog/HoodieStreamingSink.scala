package org.apache.spark.sql.hudi.catalog

import java.util.Locale

import drawstring.bridge.{BridgeErrors, Wire}
import org.apache.spark.sql.{DataFrame, SQLContext}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.StreamSinkProvider
import org.apache.spark.sql.streaming.OutputMode

/** `df.writeStream.format("hudi")`, and `toTable` by way of the table's location. */
trait HoodieSinkProvider extends StreamSinkProvider {
  override def createSink(
      context: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode): Sink = {
    val path = parameters.collectFirst { case (key, value) if key.equalsIgnoreCase("path") => value }
    val columns = Wire.arr()
    partitionColumns.foreach(columns.add(_: String))
    val partitioned = if (partitionColumns.isEmpty) Map.empty else Map(HoodieStreamingSink.PartitionBy -> Wire.text(columns))
    new HoodieStreamingSink(
      path.getOrElse(throw BridgeErrors.missingPath()),
      CallerOptions.of(parameters) ++ partitioned,
      outputMode.toString.toLowerCase(Locale.ROOT))
  }
}

/** Hands each batch to the planner with its number; whether it was written before, the table tells. */
class HoodieStreamingSink(path: String, options: Map[String, String], outputMode: String) extends Sink {

  override def addBatch(batchId: Long, data: DataFrame): Unit = {
    val query = data.sparkSession.sparkContext.getLocalProperty(HoodieStreamingSink.QueryId)
    val batch = SinkBatch(batchId, Option(query).getOrElse(""), outputMode)
    WriteRequest(path, "dataframe", "append", options, stream = Some(batch)).run(Sessions.batchRows(data))
  }

  override def toString: String = s"HoodieStreamingSink[$path]"
}

private object HoodieStreamingSink {

  /** Spark's local property of the thread that runs a query: the id that its checkpoint folder keeps. */
  val QueryId = "sql.streaming.queryId"

  /** Where a batch write has the columns of `partitionBy`. */
  val PartitionBy = "__partition_columns"
}
