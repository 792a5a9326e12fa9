package drawstring.bridge

import java.util
import java.util.{Optional, OptionalLong}

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}
import org.apache.spark.sql.connector.read.Statistics
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** What is known of the rows that a scan selects and of the columns that it reads. */
class ScanStatistics(scan: HoodieScan) extends Statistics {

  override def sizeInBytes(): OptionalLong = OptionalLong.of(estimatedBytes)

  override def numRows(): OptionalLong =
    scan.shown.rows.orElse(scan.shown.estimatedRows).map(chosen).map(OptionalLong.of).getOrElse(OptionalLong.empty())

  override lazy val columnStats: util.Map[NamedReference, ColumnStatistics] =
    if (ScanStatistics.wanted && !scan.isStream && scan.table.pushes("column-statistics")) ScanStatistics.of(scan) else util.Collections.emptyMap()

  /** Bytes of the selected files, cut to the share of the columns read; zero only when nothing is selected. */
  private def estimatedBytes: Long =
    if (scan.shown.tasks.isEmpty) 0L
    else chosen((scan.shown.bytes * ScanStatistics.share(scan.ownSchema, scan.table.schema)).toLong)

  private def chosen(amount: Long): Long =
    if (scan.shown.tasks.isEmpty) 0L else math.max(1L, math.round(amount * share))

  /** The part of the plan's rows that the scan returns. */
  private def share: Double = {
    val limited = for (limit <- scan.taskLimit; rows <- scan.shown.rows if rows > limit) yield limit.toDouble / rows
    limited.orElse(scan.sample.map(_.share)).getOrElse(1.0)
  }
}

object ScanStatistics {

  /** The share of the columns that are read of all columns, by the sizes of their types. */
  def share(read: StructType, all: StructType): Double = math.min(1.0, (read.defaultSize + 8.0) / (all.defaultSize + 8.0))

  /** Only the cost-based optimiser looks at columns, and looking them up costs something. */
  private def wanted: Boolean = SQLConf.get.cboEnabled || SQLConf.get.planStatsEnabled

  private def of(scan: HoodieScan): util.Map[NamedReference, ColumnStatistics] = {
    val own = scan.table.schema.fieldNames.toSet
    val names = scan.readSchema().fields.filter(field => own(field.name) && isEstimated(field.dataType)).map(_.name)
    val found = scan.table.summariseColumns(scan.request.copy(columns = Some(names.toSeq)))
    found.elements().asScala.map { node =>
      val name = node.get("column").asText
      val reference: NamedReference = Expressions.column(s"`${name.replace("`", "``")}`")
      reference -> (new WireColumnStatistics(node, scan.readSchema()(name).dataType): ColumnStatistics)
    }.toMap.asJava
  }

  /** Spark's estimation knows these types alone: it fails over a filter on a column of another that has statistics. */
  private def isEstimated(dataType: DataType): Boolean = dataType match {
    case _: NumericType | BooleanType | DateType | TimestampType | StringType | BinaryType => true
    case _ => false
  }
}

/** What an aggregation that metadata answered gives: without this Spark takes it to be larger than any table. */
case class AnswerStatistics(rows: Long, schema: StructType) extends Statistics {

  override def sizeInBytes(): OptionalLong = OptionalLong.of(rows * (schema.defaultSize + 8L))

  override def numRows(): OptionalLong = OptionalLong.of(rows)
}

class WireColumnStatistics(node: JsonNode, dataType: DataType) extends ColumnStatistics {
  override def min(): Optional[Object] = value("lower")

  override def max(): Optional[Object] = value("upper")

  override def nullCount(): OptionalLong = number("nulls")

  override def distinctCount(): OptionalLong = number("distinct")

  override def avgLen(): OptionalLong = OptionalLong.of(dataType.defaultSize.toLong)

  override def maxLen(): OptionalLong = OptionalLong.of(dataType.defaultSize.toLong)

  private def value(name: String): Optional[Object] = dataType match {
    // Spark keeps no bounds of texts.
    case StringType => Optional.empty()
    case _ => Optional.ofNullable(Values.fromWire(node.get(name), dataType).asInstanceOf[Object])
  }

  private def number(name: String): OptionalLong =
    Wire.optionalLong(node.get(name)).map(OptionalLong.of).getOrElse(OptionalLong.empty())
}
