package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.{NamedReference, SortOrder}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.partitioning.{KeyGroupedPartitioning, Partitioning, UnknownPartitioning}
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** One scan of one snapshot; planned when somebody first asks, and again when filters come while the query runs.
  *
  * `limited` is the plan of a limit that the scan applies to the rows itself. `sampled` says that a sample is taken,
  * here or by Spark.
  */
class HoodieScan(
    val spark: SparkSession,
    val table: LoadedTable,
    schema: StructType,
    val filters: Vector[PushedFilter],
    asked: ScanRequest,
    val sample: Option[Sample],
    limited: Option[ScanPlan] = None,
    sampled: Boolean = false
) extends Scan
    with SupportsReportStatistics
    with SupportsReportPartitioning
    with SupportsReportOrdering
    with SupportsRuntimeV2Filtering {
  @volatile private var runtimeFilters: Seq[JsonNode] = Nil

  def request: ScanRequest = asked.copy(
    runtimeFilters = runtimeFilters,
    hiddenColumns = HiddenColumns.in(schema, table.schema),
    grouped = wantedGrouping.isDefined
  )

  /** The columns that are the table's own. */
  val ownSchema: StructType = HiddenColumns.without(schema, table.schema)

  /** By what the scan would keep rows together: where the session asks for it, and nothing chooses among splits.
    *
    * Each group is one task, which costs parallelism where nothing profits: a default of Spark's is not enough. Which
    * rows a sample has depends on the tasks, whoever takes it.
    */
  private val wantedGrouping: Option[ScanGrouping] =
    if (SQLConf.get.contains(SQLConf.V2_BUCKETING_ENABLED.key) && SQLConf.get.v2BucketingEnabled && table.pushes("partitioning") && asked.limit.isEmpty && !sampled)
      table.grouping.flatMap(_.in(schema))
    else None

  @volatile private var planned: Option[(Seq[JsonNode], ScanPlan)] =
    limited.filter(_ => request == asked).map(runtimeFilters -> _)

  /** By what it does; metadata may have shown that it cannot. */
  def grouping: Option[ScanGrouping] = wantedGrouping.filter(_ => plan.tasks.nonEmpty && plan.tasks.forall(_.key.isDefined))

  override def outputPartitioning(): Partitioning = grouping match {
    case Some(found) => new KeyGroupedPartitioning(found.expressions.toArray, plan.tasks.map(found.name).distinct.size)
    case None => new UnknownPartitioning(0)
  }

  /** Rows that are equal in their one column are sorted by it; files tell no other order. */
  override def outputOrdering(): Array[SortOrder] =
    grouping.flatMap(_.ordering).toArray

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

  /** This scan of a stream with fewer columns; predicates only help to skip, for the query applies them to the rows. */
  def narrowed(of: HoodieMicroBatchStream, columns: StructType, predicates: Seq[Predicate]): HoodieScan = {
    val usable = if (table.pushes("filters")) predicates else Nil
    val pushed = usable.flatMap(predicate => Predicates.toWire(predicate).map(PushedFilter(predicate, _, "data")))
    val narrow = new HoodieScan(spark, table, columns, pushed.toVector, ScanRequest(filters = pushed.map(_.wire)), None)
    narrow.stream = Some(of)
    narrow
  }

  /** What statistics and metrics are about: a stream reads batches, never the snapshot that it was resolved with. */
  def shown: ScanPlan = stream.fold(plan)(_.plan)

  def isStream: Boolean = stream.isDefined

  def readerFactory(planned: ScanPlan): PartitionReaderFactory = {
    val withPositions = schema.fieldNames.contains(HiddenColumns.Position) && ownSchema.length < schema.length
    HoodiePartitionReaderFactory(
      HoodieScan.slices(spark, table, ownSchema, filters, planned, withPositions),
      if (ownSchema.length < schema.length) Some(schema) else None,
      sample,
      taskLimit)
  }

  /** The rows to which the scan itself limits. */
  def taskLimit: Option[Int] = limited.flatMap(_ => asked.limit)

  /** None of a scan that limits or samples rows, for filters would come before that. */
  override def filterAttributes(): Array[NamedReference] =
    if (taskLimit.isEmpty && sample.isEmpty && table.pushes("runtime-filters")) RuntimeFilters.columns(ownSchema) else Array.empty

  override def filter(predicates: Array[Predicate]): Unit = synchronized {
    runtimeFilters = (runtimeFilters ++ RuntimeFilters.toWire(predicates)).distinct
  }

  override def description(): String = {
    val (partition, data) = filters.partition(_.isPartition)
    s"hudi ${table.path} [snapshot ${table.snapshot.substring(table.snapshot.lastIndexOf('@') + 1)}] " +
      s"PartitionFilters: [${partition.map(_.predicate).mkString(", ")}], " +
      s"PushedFilters: [${data.map(_.predicate).mkString(", ")}], " +
      sample.map(part => s"PushedSample: ${part.share}, ").getOrElse("") +
      asked.limit.map(rows => s"Pushed${if (asked.order.isEmpty) "Limit" else "TopN"}: $rows, ").getOrElse("") +
      s"ReadSchema: ${schema.catalogString}"
  }

  /** Batches always, so that Spark need not plan the partitions to find out. */
  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def estimateStatistics(): Statistics = new ScanStatistics(this)

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.supported

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ScanMetrics.of(shown, table)

  private def identity =
    (table.path, table.snapshot, table.options, schema, filters.map(f => f.wire -> f.kind).toSet, asked.limit, asked.order, runtimeFilters.toSet, sample, wantedGrouping, taskLimit)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}

object HoodieScan {

  /** The readers of a plan's slices under a schema of the table's own columns. */
  def slices(
      spark: SparkSession,
      table: LoadedTable,
      schema: StructType,
      filters: Vector[PushedFilter],
      plan: ScanPlan,
      withPositions: Boolean
  ): SliceReaderFactory =
    SliceReaderFactory.create(spark, table, schema, filters.flatMap(_.toParquet).toArray, withPositions, plan)
}
