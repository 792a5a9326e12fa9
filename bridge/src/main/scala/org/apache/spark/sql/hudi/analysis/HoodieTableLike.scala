package org.apache.spark.sql.hudi.analysis

import drawstring.bridge.BridgeErrors
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.{NoSuchDatabaseException, NoSuchTableException}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.CreateTableLikeCommand
import org.apache.spark.sql.hudi.catalog.{HoodieEntries, Sessions}

/** `CREATE TABLE t LIKE other`, which Spark before 4.3 runs without the catalog: a name would be made, and no table. */
case class HoodieTableLike(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case like: CreateTableLikeCommand if like.provider.map(HoodieEntries.isProvider).getOrElse(isHoodie(like.sourceTable)) =>
      throw BridgeErrors.make(
        "UnsupportedTable",
        "CREATE_TABLE_LIKE_UNSUPPORTED",
        s"CREATE TABLE ${like.targetTable.unquotedString} LIKE ${like.sourceTable.unquotedString}: a Hudi table is not made " +
          "like another one. Name its columns and properties (SHOW CREATE TABLE tells those of a table).",
        "table" -> like.targetTable.unquotedString)
    case other => other
  }

  private def isHoodie(source: TableIdentifier): Boolean =
    try HoodieEntries.isHoodie(Sessions.classic(spark).sessionState.catalog.getTableMetadata(source))
    catch { case _: NoSuchTableException | _: NoSuchDatabaseException => false }
}
