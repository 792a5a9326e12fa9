package drawstring.bridge

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{Batch, HasPartitionKey, InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** One slice, or a range of its base file, as a Spark task reads it; one of the ranges brings the rows of logs. */
case class SliceSplit(file: PartitionedFile, task: SliceTask, appends: Boolean = true) {
  def isWhole: Boolean = file.start == 0 && file.length >= task.size
}

/** The work of one Spark task. */
case class HoodieInputPartition(index: Int, splits: Array[SliceSplit]) extends InputPartition

/** The work of one Spark task whose rows have a key in common. */
case class GroupedPartition(work: HoodieInputPartition, partitionKey: InternalRow) extends HasPartitionKey

class HoodieBatch(scan: HoodieScan) extends Batch {

  override def planInputPartitions(): Array[InputPartition] = {
    val rule = PackingRule(ScanStatistics.share(scan.ownSchema, scan.table.schema), scan.ownSchema.nonEmpty)
    val slots = SplitPacking.slots(scan.spark)
    if (scan.taskLimit.isDefined) TaskLimit.partition(scan.plan).toArray
    else scan.grouping match {
      case Some(grouping) => SplitPacking.grouped(scan.plan.tasks, slots, rule, grouping).toArray
      case None => SplitPacking.pack(scan.plan.tasks, slots, rule).toArray
    }
  }

  override def createReaderFactory(): PartitionReaderFactory = scan.readerFactory(scan.plan)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieBatch => scanOf(that) == scan
    case _ => false
  }

  override def hashCode(): Int = scan.hashCode()

  private def scanOf(batch: HoodieBatch): HoodieScan = batch.underlying

  private def underlying: HoodieScan = scan
}

/** `shown` are the columns of the scan, where some of them are not the table's own. */
case class HoodiePartitionReaderFactory(slices: SliceReaderFactory, shown: Option[StructType], sample: Option[Sample], limit: Option[Int])
    extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("drawstring reads columnar batches")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = partition match {
    case GroupedPartition(work, _) => createColumnarReader(work)
    case HoodieInputPartition(index, splits) =>
      val rows = new ChainedReader(slices, splits.iterator, shown)
      val chosen = sample.fold[PartitionReader[ColumnarBatch]](rows)(_.over(rows, index))
      limit.fold(chosen)(new LimitedReader(chosen, _))
  }
}

/** Reads the splits of a partition one after the other.
  *
  * While one is read, an idle worker makes the merge plan of the next. Not before the second batch, for a query may
  * want no more than the first.
  */
class ChainedReader(slices: SliceReaderFactory, splits: Iterator[SliceSplit], shown: Option[StructType] = None)
    extends PartitionReader[ColumnarBatch] {
  private val following = splits.buffered
  private val counts = new ReadCounts
  private val patience = if (slices.schema.isEmpty) 1 else 2
  private var current: PartitionReader[ColumnarBatch] = _
  private var ahead: Option[WorkerCall] = None
  private var batches = 0

  override def next(): Boolean = counts.timed(advance())

  override def currentMetricsValues(): Array[CustomTaskMetric] = counts.values

  private def advance(): Boolean = {
    while (current == null || !current.next()) {
      closeCurrent()
      if (!following.hasNext) return false
      open(following.next())
    }
    batches += 1
    if (batches == patience && following.hasNext) ahead = slices.startAhead(following.head.task)
    true
  }

  override def get(): ColumnarBatch = current.get()

  override def close(): Unit =
    try closeCurrent()
    finally {
      ahead.foreach(_.close())
      ahead = None
      SparkAccess.hideInputFile()
    }

  private def open(split: SliceSplit): Unit = {
    SparkAccess.showInputFile(split.file.urlEncodedPath, split.file.start, split.file.length)
    val worker = ahead.orElse(slices.start(split.task))
    ahead = None
    counts.opened(split)
    val rows = slices.open(split, worker, counts)
    current = shown.fold(rows)(new HiddenColumnsReader(rows, _, slices.schema, Wire.parse(split.task.hidden.getOrElse(
      throw new UnsupportedOperationException("streams do not show metadata columns")))))
    batches = 0
  }

  private def closeCurrent(): Unit = if (current != null) {
    val closing = current
    current = null
    closing.close()
  }
}
