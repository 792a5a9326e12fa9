package org.apache.spark.sql.hudi.catalog

import java.util

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.expressions.{Expressions, Transform}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType

import scala.collection.JavaConverters._

/**
 * A table that CREATE TABLE AS SELECT (or REPLACE) is about to make.
 *
 * The write creates the table on storage, with the options of the write; the catalog learns of it when the write
 * has landed. An aborted statement leaves neither an entry nor a folder.
 */
class HoodieStagedTable(spark: Sessions.Classic, entry: CatalogTable, asked: StructType, replaces: Boolean)
    extends StagedTable with SupportsWrite {

  private val location = entry.location
  private val foundFolder = HoodieEntries.exists(spark, location)
  private var written = false
  private var options = Map.empty[String, String]

  override def name(): String = entry.identifier.unquotedString

  override def schema(): StructType = asked

  override def partitioning(): Array[Transform] = entry.partitionColumnNames.map(name => Expressions.identity(name): Transform).toArray

  override def properties(): util.Map[String, String] = entry.properties.asJava

  override def capabilities(): util.Set[TableCapability] = Set(V1_BATCH_WRITE, TRUNCATE, ACCEPT_ANY_SCHEMA).asJava

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    options = info.options.asCaseSensitiveMap.asScala.toMap
    new HoodieV1WriteBuilder(request, () => written = true)
  }

  override def commitStagedChanges(): Unit = {
    if (!written) request.run(spark.createDataFrame(new util.ArrayList[Row](), asked))
    val made = HoodieEntries.asOnStorage(spark, entry)
    if (replaces) HoodieEntries.replace(spark, made) else HoodieEntries.register(spark, made)
    HoodieEntries.written(spark, made)
  }

  override def abortStagedChanges(): Unit =
    if (!replaces && !foundFolder) HoodieEntries.delete(spark, location)

  private def request: WriteRequest =
    HoodieEntries.write(entry, "ctas", if (replaces) "overwrite" else "errorifexists", options)
}

/** A staged table of another provider: made at once, dropped again when the statement fails. */
class CreatedTable(ident: Identifier, table: Table, catalog: TableCatalog) extends StagedTable with SupportsWrite {
  override def name(): String = table.name()

  override def schema(): StructType = table.schema()

  override def partitioning(): Array[Transform] = table.partitioning()

  override def properties(): util.Map[String, String] = table.properties()

  override def capabilities(): util.Set[TableCapability] = table.capabilities()

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = table match {
    case writable: SupportsWrite => writable.newWriteBuilder(info)
    case _ => throw new UnsupportedOperationException(s"Table ${table.name()} does not support writes")
  }

  override def commitStagedChanges(): Unit = ()

  override def abortStagedChanges(): Unit = catalog.dropTable(ident)
}
