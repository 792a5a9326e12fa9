package drawstring.bridge

import org.apache.spark.sql.connector.metric.CustomTaskMetric

/** What a task counts while it reads, for Spark's UI. */
class ReadCounts {
  private var nanos = 0L
  private var bytes = 0L
  private var mergedRows = 0L

  def timed[T](read: => T): T = {
    val started = System.nanoTime()
    try read
    finally nanos += System.nanoTime() - started
  }

  def opened(split: SliceSplit): Unit = bytes += split.file.length + split.task.bytes - split.task.size

  def merged(rows: Long): Unit = mergedRows += rows

  def values: Array[CustomTaskMetric] = Array(
    ScanMetrics.value("readTime", nanos / 1000000),
    ScanMetrics.value("partitionSize", bytes),
    ScanMetrics.value("mergedRecords", mergedRows)
  )
}
