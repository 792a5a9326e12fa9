package drawstring.bridge

import java.util.OptionalLong

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, Scan, Statistics, SupportsReportStatistics}
import org.apache.spark.sql.types.StructType

/** One scan of one snapshot; planned once, when somebody first asks. */
class HoodieScan(
    val spark: SparkSession,
    val table: LoadedTable,
    schema: StructType,
    val filters: Vector[PushedFilter]
) extends Scan
    with SupportsReportStatistics {

  lazy val plan: ScanPlan = table.plan(filters.map(_.wire))

  override def readSchema(): StructType = schema

  override def toBatch: Batch = new HoodieBatch(this)

  override def description(): String = {
    val (partition, data) = filters.partition(_.isPartition)
    s"hudi ${table.path} [snapshot ${table.snapshot.substring(table.snapshot.lastIndexOf('@') + 1)}] " +
      s"PartitionFilters: [${partition.map(_.predicate).mkString(", ")}], " +
      s"PushedFilters: [${data.map(_.predicate).mkString(", ")}], ReadSchema: ${schema.catalogString}"
  }

  /** Batches always, so that Spark need not plan the partitions to find out. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.of(estimatedBytes)

    override def numRows(): OptionalLong = plan.rows.map(OptionalLong.of).getOrElse(OptionalLong.empty())
  }

  /** Bytes of the selected files, cut to the share of the columns read; zero only when nothing is selected. */
  private def estimatedBytes: Long =
    if (plan.tasks.isEmpty) 0L
    else {
      val share = (schema.defaultSize + 8.0) / (table.schema.defaultSize + 8.0)
      math.max(1L, (plan.bytes * math.min(1.0, share)).toLong)
    }

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.supported

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ScanMetrics.of(plan)

  private def identity = (table.path, table.snapshot, table.options, schema, filters.map(f => f.wire -> f.kind).toSet)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}
