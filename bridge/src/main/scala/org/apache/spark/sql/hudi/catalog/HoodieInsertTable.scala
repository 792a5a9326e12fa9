package org.apache.spark.sql.hudi.catalog

import java.util

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability}
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType

import scala.collection.JavaConverters._

/**
 * A catalog table as the target of INSERT: the meta columns are not among its columns.
 *
 * Spark then matches the query with the table's own columns by its usual rules: column lists, by-name inserts,
 * static partitions, store assignment.
 */
class HoodieInsertTable(spark: Sessions.Classic, entry: CatalogTable, readable: Table) extends Table with SupportsWrite {

  override def name(): String = readable.name()

  override lazy val schema: StructType = StructType(readable.schema().filterNot(field => MetaColumns.isMeta(field.name)))

  override def partitioning(): Array[Transform] = readable.partitioning()

  override def properties(): util.Map[String, String] = readable.properties()

  override def capabilities(): util.Set[TableCapability] =
    Set(V1_BATCH_WRITE, TRUNCATE, OVERWRITE_BY_FILTER, OVERWRITE_DYNAMIC).asJava

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = new HoodieV1WriteBuilder(
    HoodieEntries.write(entry, "insert", "append", info.options.asCaseSensitiveMap.asScala.toMap),
    () => HoodieEntries.written(spark, entry))
}
