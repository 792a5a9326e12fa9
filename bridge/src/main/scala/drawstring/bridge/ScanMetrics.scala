package drawstring.bridge

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** What the Spark UI shows of a scan's planning. Spark makes instances by class name. */
object ScanMetrics {

  def supported: Array[CustomMetric] = Array(
    new FilesSelected,
    new BytesSelected,
    new FilesSkippedByPartition,
    new FilesSkippedByStatistics,
    new FilesSkippedByLimit,
    new FilesSkippedByTopN,
    new FilesSkippedByRuntimeFilter,
    new PlanningTime
  )

  def of(plan: ScanPlan): Array[CustomTaskMetric] = Array(
    value("filesSelected", plan.files),
    value("bytesSelected", plan.bytes),
    value("filesSkippedByPartition", plan.skippedBy("partition")),
    value("filesSkippedByStatistics", plan.skippedBy("partition statistics", "column statistics", "footer")),
    value("filesSkippedByLimit", plan.skippedBy("limit")),
    value("filesSkippedByTopN", plan.skippedBy("top n")),
    value("filesSkippedByRuntimeFilter", plan.skippedBy("runtime filter")),
    value("planningTime", plan.planningMillis)
  )

  private def value(metric: String, amount: Long): CustomTaskMetric = new CustomTaskMetric {
    override def name(): String = metric

    override def value(): Long = amount
  }
}

class FilesSelected extends CustomSumMetric {
  override def name(): String = "filesSelected"

  override def description(): String = "files selected"
}

class BytesSelected extends CustomSumMetric {
  override def name(): String = "bytesSelected"

  override def description(): String = "bytes selected"
}

class FilesSkippedByPartition extends CustomSumMetric {
  override def name(): String = "filesSkippedByPartition"

  override def description(): String = "files skipped by partition"
}

class FilesSkippedByStatistics extends CustomSumMetric {
  override def name(): String = "filesSkippedByStatistics"

  override def description(): String = "files skipped by statistics"
}

class FilesSkippedByLimit extends CustomSumMetric {
  override def name(): String = "filesSkippedByLimit"

  override def description(): String = "files skipped by limit"
}

class FilesSkippedByTopN extends CustomSumMetric {
  override def name(): String = "filesSkippedByTopN"

  override def description(): String = "files skipped by top n"
}

class FilesSkippedByRuntimeFilter extends CustomSumMetric {
  override def name(): String = "filesSkippedByRuntimeFilter"

  override def description(): String = "files skipped by runtime filter"
}

class PlanningTime extends CustomSumMetric {
  override def name(): String = "planningTime"

  override def description(): String = "planning time in milliseconds"
}
