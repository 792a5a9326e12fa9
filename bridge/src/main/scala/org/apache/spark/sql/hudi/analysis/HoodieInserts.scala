package org.apache.spark.sql.hudi.analysis

import java.util.Locale

import drawstring.bridge.BridgeErrors
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
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
      if (insert.query.resolved) fillColumns(insert.copy(table = table, query = dropMetaColumns(insert.query)))
      else if (table eq insert.table) insert
      else insert.copy(table = table)

    case delete: DeleteFromTable if isTarget(delete.table) => refuse("DELETE")
    case update: UpdateTable if isTarget(update.table) => refuse("UPDATE")
    case merge: MergeIntoTable if isTarget(merge.targetTable) => refuse("MERGE")

    // Spark plans dynamic overwrites for V2 writers only: send them as a truncation that says what it means.
    case dynamic: OverwritePartitionsDynamic if isTarget(dynamic.table.asInstanceOf[LogicalPlan]) =>
      val options = dynamic.writeOptions + (OverwriteFilters.dynamicOption -> "true")
      if (dynamic.isByName) OverwriteByExpression.byName(dynamic.table, dynamic.query, Literal.TrueLiteral, options)
      else OverwriteByExpression.byPosition(dynamic.table, dynamic.query, Literal.TrueLiteral, options)
  }

  private def refuse(statement: String): Nothing = throw BridgeErrors.make(
    "UnsupportedTable",
    "ROW_LEVEL_WRITE_UNSUPPORTED",
    s"$statement on a Hudi table is not supported. ${instead(statement)}, or use Apache Hudi for this " +
      "statement.",
    "statement" -> statement)

  /** What does the same by a DataFrame. */
  private def instead(statement: String): String = statement match {
    case "DELETE" =>
      "Write the rows to delete by a DataFrame (hoodie.datasource.write.operation=delete), drop whole partitions " +
        "(ALTER TABLE ... DROP PARTITION), empty the table (TRUNCATE TABLE)"
    case "UPDATE" => "Write the changed rows by a DataFrame (hoodie.datasource.write.operation=upsert)"
    case _ =>
      "Join by a DataFrame, and write the rows to insert or change (hoodie.datasource.write.operation=upsert) and " +
        "those to delete (operation=delete)"
  }

  /** Columns that a column list leaves out become null; older Spark does that for V1 tables only. */
  private def fillColumns(insert: InsertIntoStatement): InsertIntoStatement = {
    val named = (insert.userSpecifiedCols ++ insert.partitionSpec.keys).map(_.toLowerCase(Locale.ROOT)).toSet
    val missing = insert.table.output.filterNot(column => named(column.name.toLowerCase(Locale.ROOT)))
    if (insert.userSpecifiedCols.isEmpty || missing.isEmpty) insert
    else {
      val nulls = missing.map(column => Alias(Literal(null, column.dataType), column.name)())
      insert.copy(
        query = Project(insert.query.output ++ nulls, insert.query),
        userSpecifiedCols = insert.userSpecifiedCols ++ missing.map(_.name))
    }
  }

  private def isTarget(plan: LogicalPlan): Boolean = EliminateSubqueryAliases(plan) match {
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
