package drawstring.bridge

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.vectorized.ColumnarBatch

/** One slice, or a range of a plain file, as a Spark task reads it. */
case class SliceSplit(file: PartitionedFile, task: SliceTask)

/** The work of one Spark task. */
case class HoodieInputPartition(index: Int, splits: Array[SliceSplit]) extends InputPartition

class HoodieBatch(scan: HoodieScan) extends Batch {

  override def planInputPartitions(): Array[InputPartition] =
    SplitPacking.pack(scan.plan.tasks, SplitPacking.slots(scan.spark)).toArray

  override def createReaderFactory(): PartitionReaderFactory = scan.readerFactory(scan.plan)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieBatch => scanOf(that) == scan
    case _ => false
  }

  override def hashCode(): Int = scan.hashCode()

  private def scanOf(batch: HoodieBatch): HoodieScan = batch.underlying

  private def underlying: HoodieScan = scan
}

case class HoodiePartitionReaderFactory(slices: SliceReaderFactory) extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("drawstring reads columnar batches")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    new ChainedReader(slices, partition.asInstanceOf[HoodieInputPartition].splits.iterator)
}

/** Reads the splits of a partition one after the other.
  *
  * While one is read, an idle worker makes the merge plan of the next. Not before the second batch, for a query may
  * want no more than the first.
  */
class ChainedReader(slices: SliceReaderFactory, splits: Iterator[SliceSplit]) extends PartitionReader[ColumnarBatch] {
  private val following = splits.buffered
  private val patience = if (slices.schema.isEmpty) 1 else 2
  private var current: PartitionReader[ColumnarBatch] = _
  private var ahead: Option[WorkerCall] = None
  private var batches = 0

  override def next(): Boolean = {
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
    current = slices.open(split.file, split.task, worker)
    batches = 0
  }

  private def closeCurrent(): Unit = if (current != null) {
    val closing = current
    current = null
    closing.close()
  }
}

/** Cuts large plain files and packs small work together, by the sizes Spark uses for its own file sources. */
object SplitPacking {

  /** How many tasks are to run at once. */
  def slots(spark: SparkSession): Int =
    math.max(1, SQLConf.get.filesMinPartitionNum.getOrElse(SparkAccess.parallelism(spark)))

  /** As many partitions as the sizes ask for, each split into the one with the least work so far.
    *
    * Their number is a multiple of the slots: three partitions of equal work take two slots as long as four do.
    */
  def pack(tasks: Seq[SliceTask], slots: Int): Seq[HoodieInputPartition] = {
    val openCost = SQLConf.get.filesOpenCostInBytes
    val maxBytes = maxSplitBytes(tasks, slots)
    val found = splits(tasks, maxBytes).sortBy(split => -weight(split))
    val rounds = math.max(1, roundedUp(found.map(weight(_) + openCost).sum, maxBytes * slots))
    val count = math.min(found.size.toLong, rounds * slots).toInt
    val lightest = mutable.PriorityQueue.empty[OpenPartition](Ordering.by(part => (-part.bytes, -part.number)))
    (0 until count).foreach(number => lightest += new OpenPartition(number))
    found.foreach { split =>
      val partition = lightest.dequeue()
      partition.add(split, weight(split) + openCost)
      lightest += partition
    }
    lightest.toSeq.filter(_.splits.nonEmpty).sortBy(_.number).zipWithIndex.map { case (part, index) =>
      HoodieInputPartition(index, part.splits.toArray)
    }
  }

  private def maxSplitBytes(tasks: Seq[SliceTask], slots: Int): Long = {
    val conf = SQLConf.get
    val total = tasks.map(_.bytes + conf.filesOpenCostInBytes).sum
    math.min(conf.filesMaxPartitionBytes, math.max(conf.filesOpenCostInBytes, total / slots))
  }

  private def roundedUp(bytes: Long, unit: Long): Long = (bytes + unit - 1) / unit

  private class OpenPartition(val number: Int) {
    val splits = ArrayBuffer.empty[SliceSplit]
    var bytes = 0L

    def add(split: SliceSplit, weight: Long): Unit = {
      splits += split
      bytes += weight
    }
  }

  private def splits(tasks: Seq[SliceTask], maxBytes: Long): Seq[SliceSplit] = tasks.flatMap { task =>
    if (task.isNative) (0L until task.size by maxBytes).map(start => split(task, start, math.min(maxBytes, task.size - start)))
    else Seq(split(task, 0, task.size))
  }

  private def split(task: SliceTask, start: Long, length: Long): SliceSplit =
    SliceSplit(file(task, start, length), task)

  def file(task: SliceTask, start: Long, length: Long): PartitionedFile = PartitionedFile(
    InternalRow.empty,
    SparkPath.fromPath(new Path(task.path)),
    start,
    length,
    Array.empty[String],
    0L,
    task.size,
    Map.empty[String, Any]
  )

  private def weight(split: SliceSplit): Long = if (split.task.isNative) split.file.length else split.task.bytes
}
