package drawstring.bridge

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A LIMIT that one task applies itself, so that Spark need not bring the rows of several together: whoever stops at
  * the limit reads no more than it takes.
  */
object TaskLimit {

  /** Whether a plan is little enough work for one task, by the size that Spark gives one. */
  def fits(plan: ScanPlan): Boolean = plan.rows.isDefined && plan.bytes <= SQLConf.get.filesMaxPartitionBytes

  /** The whole plan as the work of one task, file after file. */
  def partition(plan: ScanPlan): Seq[HoodieInputPartition] = {
    val splits = plan.tasks.map(task => SliceSplit(SplitPacking.file(task, 0, task.size), task.copy(key = None)))
    if (splits.isEmpty) Nil else Seq(HoodieInputPartition(0, splits.toArray))
  }
}

/** The first rows of a reader; nothing more is read once they have come. */
class LimitedReader(reader: PartitionReader[ColumnarBatch], limit: Int) extends PartitionReader[ColumnarBatch] {
  private var left = limit
  private var current: ColumnarBatch = _

  override def next(): Boolean = {
    val more = left > 0 && reader.next()
    if (more) {
      current = cut(reader.get())
      left -= current.numRows()
    }
    more
  }

  override def get(): ColumnarBatch = current

  override def close(): Unit = reader.close()

  override def currentMetricsValues() = reader.currentMetricsValues()

  private def cut(batch: ColumnarBatch): ColumnarBatch =
    if (batch.numRows() <= left) batch
    else new ColumnarBatch(Array.tabulate(batch.numCols())(batch.column), left)
}
