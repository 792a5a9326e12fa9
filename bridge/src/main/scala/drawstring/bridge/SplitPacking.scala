package drawstring.bridge

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.internal.SQLConf

/** How splits are measured: `share` of their bytes is read, and large merged slices may be divided. */
case class PackingRule(share: Double = 1.0, dividesMerged: Boolean = false)

/** Cuts large files and packs small work together, by the sizes Spark uses for its own file sources.
  *
  * Parquet's reader gives each row group to the range in which its middle lies, so cuts are at row groups.
  */
object SplitPacking {

  /** How many tasks are to run at once. */
  def slots(spark: SparkSession): Int =
    math.max(1, SQLConf.get.filesMinPartitionNum.getOrElse(SparkAccess.parallelism(spark)))

  /** As many partitions as the sizes ask for, each split into the one with the least work so far.
    *
    * Their number is a multiple of the slots: three partitions of equal work take two slots as long as four do.
    */
  def pack(tasks: Seq[SliceTask], slots: Int, rule: PackingRule = PackingRule()): Seq[HoodieInputPartition] = {
    val maxBytes = maxSplitBytes(tasks, slots, rule)
    numbered(packed(splits(tasks, maxBytes, rule), maxBytes, slots, rule))
  }

  /** The same within each group of tasks that have a key in common; Spark brings the parts of a group together. */
  def grouped(tasks: Seq[SliceTask], slots: Int, rule: PackingRule, grouping: ScanGrouping): Seq[GroupedPartition] = {
    val maxBytes = maxSplitBytes(tasks, slots, rule)
    val parts = tasks.groupBy(grouping.name).values.toSeq.flatMap { group =>
      val key = grouping.key(group.head)
      packed(splits(group, maxBytes, rule), maxBytes, 1, rule).map(_ -> key)
    }
    numbered(parts.map(_._1)).zip(parts.map(_._2)).map { case (work, key) => GroupedPartition(work, key) }
  }

  private def numbered(parts: Seq[Array[SliceSplit]]): Seq[HoodieInputPartition] =
    parts.zipWithIndex.map { case (splits, index) => HoodieInputPartition(index, splits) }

  private def packed(found: Seq[SliceSplit], maxBytes: Long, slots: Int, rule: PackingRule): Seq[Array[SliceSplit]] = {
    val openCost = SQLConf.get.filesOpenCostInBytes
    def weight(split: SliceSplit): Long = weighed(split, rule) + openCost
    val sorted = found.sortBy(split => -weight(split))
    val rounds = math.max(1, roundedUp(sorted.map(weight).sum, maxBytes * slots))
    val count = math.min(sorted.size.toLong, rounds * slots).toInt
    val lightest = mutable.PriorityQueue.empty[OpenPartition](Ordering.by(part => (-part.bytes, -part.number)))
    (0 until count).foreach(number => lightest += new OpenPartition(number))
    sorted.foreach { split =>
      val partition = lightest.dequeue()
      partition.add(split, weight(split))
      lightest += partition
    }
    lightest.toSeq.filter(_.splits.nonEmpty).sortBy(_.number).map(_.splits.toArray)
  }

  private def maxSplitBytes(tasks: Seq[SliceTask], slots: Int, rule: PackingRule): Long = {
    val conf = SQLConf.get
    val total = tasks.map(task => (task.bytes * rule.share).toLong + conf.filesOpenCostInBytes).sum
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

  private def splits(tasks: Seq[SliceTask], maxBytes: Long, rule: PackingRule): Seq[SliceSplit] = {
    // Of a narrow projection fewer bytes are read than lie between the cuts.
    val length = math.max(1L, (maxBytes / rule.share).toLong)
    tasks.flatMap { task =>
      if (task.isNative || rule.dividesMerged && isDivided(task, length)) cut(task.copy(key = None), length)
      else Seq(SliceSplit(file(task, 0, task.size), task.copy(key = None)))
    }
  }

  /** Every part of a merged slice reads its logs, which pays where the base file is far larger. */
  private def isDivided(task: SliceTask, length: Long): Boolean =
    task.isMerge && task.size > length && (task.bytes - task.size) * 8 < task.size

  private def cut(task: SliceTask, length: Long): Seq[SliceSplit] = (0L until task.size by length).map { start =>
    SliceSplit(file(task, start, math.min(length, task.size - start)), task, appends = start == 0)
  }

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

  private def weighed(split: SliceSplit, rule: PackingRule): Long = {
    val logs = split.task.bytes - split.task.size
    ((split.file.length + logs) * rule.share).toLong
  }
}
