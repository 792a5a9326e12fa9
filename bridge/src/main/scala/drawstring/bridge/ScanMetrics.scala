package drawstring.bridge

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** What the Spark UI shows of a scan's planning. Spark makes instances by class name. */
object ScanMetrics {

  def supported: Array[CustomMetric] = Array(
    new FilesSelected,
    new BytesSelected,
    new FilesSkippedByPartition,
    new FilesSkippedByStatistics,
    new FilesSkippedByIndex,
    new FilesSkippedByLimit,
    new FilesSkippedByTopN,
    new FilesSkippedByRuntimeFilter,
    new PlanningTime,
    new SlicesSelected,
    new PinnedInstant,
    new PartitionSize,
    new ReadTime,
    new MergedRecords
  )

  def of(plan: ScanPlan, table: LoadedTable): Array[CustomTaskMetric] = Array(
    value("filesSelected", plan.files),
    value("bytesSelected", plan.bytes),
    value("filesSkippedByPartition", plan.skippedBy("partition")),
    value("filesSkippedByStatistics", plan.skippedBy("partition statistics", "column statistics", "footer")),
    value("filesSkippedByIndex", plan.skippedBy("record index", "bloom filter")),
    value("filesSkippedByLimit", plan.skippedBy("limit")),
    value("filesSkippedByTopN", plan.skippedBy("top n")),
    value("filesSkippedByRuntimeFilter", plan.skippedBy("runtime filter")),
    value("planningTime", plan.planningMillis),
    value("slicesSelected", plan.tasks.size.toLong),
    value("pinnedInstant", table.instant)
  )

  def value(metric: String, amount: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name(): String = metric

    override def value(): Long = amount
  }
}

/** A sum over the tasks; its subclasses have no parameters, because Spark makes instances by class name. */
abstract class SummedMetric(metric: String, text: String) extends CustomSumMetric {
  override def name(): String = metric

  override def description(): String = text
}

class FilesSelected extends SummedMetric("filesSelected", "files selected")

class BytesSelected extends SummedMetric("bytesSelected", "bytes selected")

class FilesSkippedByPartition extends SummedMetric("filesSkippedByPartition", "files skipped by partition")

class FilesSkippedByStatistics extends SummedMetric("filesSkippedByStatistics", "files skipped by statistics")

class FilesSkippedByLimit extends SummedMetric("filesSkippedByLimit", "files skipped by limit")

class FilesSkippedByTopN extends SummedMetric("filesSkippedByTopN", "files skipped by top n")

class FilesSkippedByRuntimeFilter extends SummedMetric("filesSkippedByRuntimeFilter", "files skipped by runtime filter")

class PlanningTime extends SummedMetric("planningTime", "planning time in milliseconds")

class FilesSkippedByIndex extends SummedMetric("filesSkippedByIndex", "files skipped by record index or bloom filter")

class SlicesSelected extends SummedMetric("slicesSelected", "file slices selected")

class MergedRecords extends SummedMetric("mergedRecords", "records that logs brought")

class ReadTime extends SummedMetric("readTime", "read time in milliseconds")

/** The time of the pinned state, in the digits of the timeline. */
class PinnedInstant extends CustomMetric {
  override def name(): String = "pinnedInstant"

  override def description(): String = "pinned instant"

  override def aggregateTaskMetrics(values: Array[Long]): String = if (values.isEmpty) "none" else values.max.toString
}

class PartitionSize extends CustomMetric {
  override def name(): String = "partitionSize"

  override def description(): String = "bytes of each partition (total, least, median, greatest)"

  override def aggregateTaskMetrics(values: Array[Long]): String = {
    val sorted = values.sorted
    if (sorted.isEmpty) "none" else s"${sorted.sum} (${sorted.head}, ${sorted(sorted.length / 2)}, ${sorted.last})"
  }
}
