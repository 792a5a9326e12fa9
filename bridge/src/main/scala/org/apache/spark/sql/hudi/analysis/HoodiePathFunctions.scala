package org.apache.spark.sql.hudi.analysis

import drawstring.bridge.{HoodieFormatPathV2Table, HoodieFunctions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/** Lets tables that were loaded by their path say by which bucket function their rows lie together. */
object HoodiePathFunctions extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!SQLConf.get.v2BucketingEnabled) plan
    else plan.transform {
      case read: DataSourceV2Relation if read.catalog.isEmpty && read.table.isInstanceOf[HoodieFormatPathV2Table] =>
        read.copy(catalog = Some(HoodieFunctions))
    }
}
