package org.apache.spark.sql.hudi.analysis

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.hudi.catalog._

/** INSERT as Hudi users know it: the query may carry meta columns, the target is never asked for them. */
case class HoodieInserts(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsDown {
    case insert: InsertIntoStatement if isTarget(insert.table) =>
      val table = withoutMetaColumns(insert.table)
      val query = if (insert.query.resolved) dropMetaColumns(insert.query) else insert.query
      if ((table eq insert.table) && (query eq insert.query)) insert else insert.copy(table = table, query = query)

    // Spark plans dynamic overwrites for V2 writers only: send them as a truncation that says what it means.
    case dynamic: OverwritePartitionsDynamic if isTarget(dynamic.table.asInstanceOf[LogicalPlan]) =>
      val options = dynamic.writeOptions + (OverwriteFilters.dynamicOption -> "true")
      if (dynamic.isByName) OverwriteByExpression.byName(dynamic.table, dynamic.query, Literal.TrueLiteral, options)
      else OverwriteByExpression.byPosition(dynamic.table, dynamic.query, Literal.TrueLiteral, options)
  }

  private def isTarget(plan: LogicalPlan): Boolean = plan match {
    case relation: DataSourceV2Relation => isHoodie(relation.table)
    case _ => false
  }

  private def isHoodie(table: Table): Boolean =
    table.isInstanceOf[HoodieInsertTable] || table.isInstanceOf[HoodieInternalV2Table]

  private def withoutMetaColumns(plan: LogicalPlan): LogicalPlan = plan match {
    case relation: DataSourceV2Relation => relation.table match {
        case table: HoodieInternalV2Table => relation.copy(
            table = table.insertable,
            output = relation.output.filterNot(column => MetaColumns.isMeta(column.name)))
        case _ => relation
      }
    case other => other
  }

  private def dropMetaColumns(query: LogicalPlan): LogicalPlan =
    if (query.output.exists(column => MetaColumns.isMeta(column.name)))
      Project(query.output.filterNot(column => MetaColumns.isMeta(column.name)), query)
    else query
}
