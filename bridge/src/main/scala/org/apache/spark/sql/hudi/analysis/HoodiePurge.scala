package org.apache.spark.sql.hudi.analysis

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.{DropTableCommand, LeafRunnableCommand}
import org.apache.spark.sql.hudi.catalog.{HoodieEntries, Sessions}

/** `DROP TABLE t PURGE` deletes a Hudi table's files even where the table is external, as in Hudi. */
case class HoodiePurge(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case drop: DropTableCommand if drop.purge && !drop.isView && isHoodie(drop) => PurgeHoodieTable(drop)
    case other => other
  }

  private def isHoodie(drop: DropTableCommand): Boolean =
    try HoodieEntries.isHoodie(Sessions.classic(spark).sessionState.catalog.getTableMetadata(drop.tableName))
    catch { case _: NoSuchTableException => false }
}

case class PurgeHoodieTable(drop: DropTableCommand) extends LeafRunnableCommand {
  override def run(session: SparkSession): Seq[Row] = {
    val spark = Sessions.classic(session)
    val location = spark.sessionState.catalog.getTableMetadata(drop.tableName).location
    val rows = drop.run(spark)
    HoodieEntries.delete(spark, location)
    rows
  }
}
