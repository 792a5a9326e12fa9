package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType

/** One scan of one snapshot; planned when somebody first asks, and again when filters come while the query runs. */
class HoodieScan(
    val spark: SparkSession,
    val table: LoadedTable,
    schema: StructType,
    val filters: Vector[PushedFilter],
    asked: ScanRequest
) extends Scan
    with SupportsReportStatistics
    with SupportsRuntimeV2Filtering {
  @volatile private var planned: Option[(Seq[JsonNode], ScanPlan)] = None
  @volatile private var runtimeFilters: Seq[JsonNode] = Nil

  def request: ScanRequest = asked.copy(runtimeFilters = runtimeFilters)

  def plan: ScanPlan = synchronized {
    if (!planned.exists(_._1 == runtimeFilters)) planned = Some(runtimeFilters -> table.plan(request))
    planned.get._2
  }

  override def readSchema(): StructType = schema

  override def toBatch: Batch = new HoodieBatch(this)

  @volatile private var stream: Option[HoodieMicroBatchStream] = None

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream = {
    val begun = new HoodieMicroBatchStream(this, checkpointLocation)
    stream = Some(begun)
    begun
  }

  /** What statistics and metrics are about: a stream reads batches, never the snapshot that it was resolved with. */
  def shown: ScanPlan = stream.fold(plan)(_.plan)

  def isStream: Boolean = stream.isDefined

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

  override def filterAttributes(): Array[NamedReference] =
    if (table.pushes("runtime-filters")) RuntimeFilters.columns(schema) else Array.empty

  override def filter(predicates: Array[Predicate]): Unit = synchronized {
    runtimeFilters = (runtimeFilters ++ RuntimeFilters.toWire(predicates)).distinct
  }

  override def description(): String = {
    val (partition, data) = filters.partition(_.isPartition)
    s"hudi ${table.path} [snapshot ${table.snapshot.substring(table.snapshot.lastIndexOf('@') + 1)}] " +
      s"PartitionFilters: [${partition.map(_.predicate).mkString(", ")}], " +
      s"PushedFilters: [${data.map(_.predicate).mkString(", ")}], " +
      asked.limit.map(rows => s"Pushed${if (asked.order.isEmpty) "Limit" else "TopN"}: $rows, ").getOrElse("") +
      s"ReadSchema: ${schema.catalogString}"
  }

  /** Batches always, so that Spark need not plan the partitions to find out. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def estimateStatistics(): Statistics = new ScanStatistics(this)

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.supported

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ScanMetrics.of(shown)

  private def identity =
    (table.path, table.snapshot, table.options, schema, filters.map(f => f.wire -> f.kind).toSet, asked.limit, asked.order, runtimeFilters.toSet)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}
