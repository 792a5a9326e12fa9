package drawstring.bridge

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
    SplitPacking.pack(scan.plan.tasks, SplitPacking.maxSplitBytes(scan.spark, scan.plan.tasks)).toArray

  override def createReaderFactory(): PartitionReaderFactory = HoodiePartitionReaderFactory(
    SliceReaderFactory.create(
      scan.spark,
      scan.table,
      scan.readSchema(),
      scan.filters.flatMap(_.toParquet).toArray,
      scan.plan.tasks.exists(_.isMerge),
      scan.plan.projections
    )
  )

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

/** Reads the splits of a partition one after the other, each opened when its turn comes. */
class ChainedReader(slices: SliceReaderFactory, splits: Iterator[SliceSplit]) extends PartitionReader[ColumnarBatch] {
  private var current: PartitionReader[ColumnarBatch] = _

  override def next(): Boolean = {
    while (current == null || !current.next()) {
      closeCurrent()
      if (!splits.hasNext) return false
      val split = splits.next()
      SparkAccess.showInputFile(split.file.urlEncodedPath, split.file.start, split.file.length)
      current = slices.open(split.file, split.task)
    }
    true
  }

  override def get(): ColumnarBatch = current.get()

  override def close(): Unit = {
    closeCurrent()
    SparkAccess.hideInputFile()
  }

  private def closeCurrent(): Unit = if (current != null) {
    val closing = current
    current = null
    closing.close()
  }
}

/** Cuts large plain files and packs small work together, by the sizes Spark uses for its own file sources. */
object SplitPacking {

  def maxSplitBytes(spark: SparkSession, tasks: Seq[SliceTask]): Long = {
    val conf = SQLConf.get
    val cores = conf.filesMinPartitionNum.getOrElse(SparkAccess.parallelism(spark))
    val total = tasks.map(_.bytes + conf.filesOpenCostInBytes).sum
    math.min(conf.filesMaxPartitionBytes, math.max(conf.filesOpenCostInBytes, total / math.max(1, cores)))
  }

  def pack(tasks: Seq[SliceTask], maxBytes: Long): Seq[HoodieInputPartition] = {
    val openCost = SQLConf.get.filesOpenCostInBytes
    val partitions = ArrayBuffer.empty[HoodieInputPartition]
    val open = ArrayBuffer.empty[SliceSplit]
    var size = 0L
    def close(): Unit = if (open.nonEmpty) {
      partitions += HoodieInputPartition(partitions.size, open.toArray)
      open.clear()
      size = 0L
    }
    splits(tasks, maxBytes).sortBy(s => -weight(s)).foreach { split =>
      if (size + weight(split) > maxBytes) close()
      size += weight(split) + openCost
      open += split
    }
    close()
    partitions.toSeq
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
