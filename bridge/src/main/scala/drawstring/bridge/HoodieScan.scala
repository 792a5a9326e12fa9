package drawstring.bridge

import java.util.OptionalLong

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read.{Batch, PartitionReaderFactory, Scan, Statistics, SupportsReportStatistics}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
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

  @volatile private var stream: Option[HoodieMicroBatchStream] = None

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    val begun = new HoodieMicroBatchStream(this, checkpointLocation)
    stream = Some(begun)
    begun
  }

  /** What statistics and metrics are about: a stream reads batches, never the snapshot that it was resolved with. */
  private def shown: ScanPlan = stream.fold(plan)(_.plan)

  def readerFactory(planned: ScanPlan): PartitionReaderFactory = HoodiePartitionReaderFactory(
    SliceReaderFactory.create(
      spark,
      table,
      readSchema(),
      filters.flatMap(_.toParquet).toArray,
      planned.tasks.exists(_.isMerge),
      planned
    )
  )

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

    override def numRows(): OptionalLong = shown.rows.map(OptionalLong.of).getOrElse(OptionalLong.empty())
  }

  /** Bytes of the selected files, cut to the share of the columns read; zero only when nothing is selected. */
  private def estimatedBytes: Long =
    if (shown.tasks.isEmpty) 0L
    else {
      val share = (schema.defaultSize + 8.0) / (table.schema.defaultSize + 8.0)
      math.max(1L, (shown.bytes * math.min(1.0, share)).toLong)
    }

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.supported

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ScanMetrics.of(shown)

  private def identity = (table.path, table.snapshot, table.options, schema, filters.map(f => f.wire -> f.kind).toSet)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}
