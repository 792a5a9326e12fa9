package org.apache.spark.sql.hudi.analysis

import java.util.Locale

import drawstring.bridge.{BridgeErrors, HoodieFileIndex, HoodieFormatPathV2Table, HoodieReadableTable}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, UpdateTable}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table

import scala.collection.JavaConverters._

/**
 * Reads stay V2 where `hoodie.datasource.read.use.dsv2` is on, and become V1 relations elsewhere.
 *
 * The option of the read decides, then the session, then the table. Targets of writes are no children of their
 * commands, so the rule never meets them; they end in V1 by themselves.
 */
case class HoodieDataSourceV2ToV1Fallback(spark: SparkSession) extends Rule[LogicalPlan] {
  private val keys = Seq("hoodie.datasource.read.use.dsv2", "hoodie.datasource.read.use.v2")

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case _: DeleteFromTable | _: UpdateTable | _: MergeIntoTable => plan
    case _ => plan.resolveOperatorsDown {
        case relation: DataSourceV2Relation => relation.table match {
            case table: HoodieInternalV2Table if !usesV2(relation, table) => toV1(relation, table, Some(table.entry))
            case table: HoodieFormatPathV2Table if !table.loaded.useV2 => toV1(relation, table, None)
            case table: HoodieFormatPathV2Table =>
              table.loaded.checkBatch()
              relation
            case _ => relation
          }
      }
  }

  private def usesV2(relation: DataSourceV2Relation, table: HoodieInternalV2Table): Boolean = {
    val read = relation.options.asScala
    val property = table.entry.storage.properties ++ table.entry.properties
    val session = (key: String) => spark.conf.getOption(key).orElse(spark.conf.getOption(s"spark.$key"))
    val places = Seq[String => Option[String]](read.get, session, property.get)
    val found = for (place <- places.iterator; key <- keys; value <- place(key)) yield flag(key, value)
    if (found.hasNext) found.next() else table.loaded.useV2
  }

  private def toV1(
      relation: DataSourceV2Relation,
      table: HoodieReadableTable,
      entry: Option[CatalogTable]): LogicalPlan = {
    val loaded = table.loaded.withOptions(relation.options.asScala.toMap).withSchema(table.loaded.schema)
    val v1 = HoodieFileIndex.relation(spark, loaded)
    entry.fold(LogicalRelation(v1))(LogicalRelation(v1, _)).copy(output = relation.output)
  }

  private def flag(key: String, value: String): Boolean = value.trim.toLowerCase(Locale.ROOT) match {
    case "true" => true
    case "false" => false
    case _ => throw BridgeErrors.invalidOption(key, value, "true", "false")
  }
}
