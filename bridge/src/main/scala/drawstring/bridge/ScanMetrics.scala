package drawstring.bridge

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomSumMetric, CustomTaskMetric}

/** What the Spark UI shows of a scan's planning. Spark makes instances by class name. */
object ScanMetrics {

  def supported: Array[CustomMetric] = Array(
    new FilesSelected,
    new BytesSelected,
    new FilesSkippedByPartition,
    new FilesSkippedByStatistics,
    new PlanningTime
  )

  def of(plan: ScanPlan): Array[CustomTaskMetric] = Array(
    value("filesSelected", plan.files),
    value("bytesSelected", plan.bytes),
    value("filesSkippedByPartition", plan.skippedByPartition),
    value("filesSkippedByStatistics", plan.skippedByStatistics),
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

class PlanningTime extends CustomSumMetric {
  override def name(): String = "planningTime"

  override def description(): String = "planning time in milliseconds"
}
