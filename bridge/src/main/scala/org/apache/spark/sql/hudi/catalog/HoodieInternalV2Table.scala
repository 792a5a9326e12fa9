package org.apache.spark.sql.hudi.catalog

import java.util

import drawstring.bridge.{Bridge, BridgeErrors, HoodieReadableTable, LoadedTable, Wire}
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.{DataType, StringType, StructType}

import scala.collection.JavaConverters._

/**
 * A table of the catalog, pinned to the snapshot that it was loaded with.
 *
 * It takes writes too: `INSERT INTO t SELECT * FROM t` makes Spark look `t` up once, for the query, and reuse it as
 * the target.
 */
class HoodieInternalV2Table(override val spark: Sessions.Classic, val entry: CatalogTable, override val loaded: LoadedTable)
    extends HoodieReadableTable with SupportsWrite with TruncatableTable with HoodiePartitions with V2TableWithV1Fallback {

  override def name(): String = entry.identifier.unquotedString

  /** For `toTable`: a streaming write goes to the sink, by the table's location. */
  override def v1Table: CatalogTable = entry

  override def properties(): util.Map[String, String] = HoodieEntries.properties(entry).asJava

  override def capabilities(): util.Set[TableCapability] =
    Set(BATCH_READ, MICRO_BATCH_READ, V1_BATCH_WRITE, TRUNCATE, OVERWRITE_BY_FILTER, OVERWRITE_DYNAMIC).asJava

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = insertable.newWriteBuilder(info)

  def insertable: HoodieInsertTable = new HoodieInsertTable(spark, entry, this)

  override def truncateTable(): Boolean = {
    replaceWithNothing(Overwrite.Everything)
    true
  }

  override def equals(other: Any): Boolean = other match {
    case that: HoodieInternalV2Table => entry.identifier == that.entry.identifier && loaded == that.loaded
    case _ => false
  }

  override def hashCode(): Int = (entry.identifier, loaded.snapshot).hashCode

  protected def replaceWithNothing(what: Overwrite): Unit = {
    val nothing = spark.createDataFrame(new util.ArrayList[Row](), insertable.schema)
    HoodieEntries.write(entry, "insert", "append", Map.empty).copy(overwrite = what).run(nothing)
    HoodieEntries.written(spark, entry)
  }
}

/** SHOW PARTITIONS, ALTER TABLE DROP PARTITION, TRUNCATE TABLE PARTITION. */
private[sql] trait HoodiePartitions extends SupportsPartitionManagement {
  def spark: Sessions.Classic

  def loaded: LoadedTable

  protected def replaceWithNothing(what: Overwrite): Unit

  override def partitionSchema(): StructType =
    StructType(loaded.partitionColumns.flatMap(column => loaded.schema.find(_.name.equalsIgnoreCase(column))))

  override def listPartitionIdentifiers(names: Array[String], ident: InternalRow): Array[InternalRow] = {
    val kept = names.map(name => partitionSchema().fieldIndex(name))
    val wanted = kept.zipWithIndex.map { case (index, i) => index -> ident.get(i, partitionSchema()(index).dataType) }
    partitionRows.filter(row => wanted.forall { case (i, value) => row.get(i, partitionSchema()(i).dataType) == value }).toArray
  }

  override def dropPartition(ident: InternalRow): Boolean =
    if (!partitionExists(ident)) false
    else {
      replaceWithNothing(Overwrite.Partitions(partitionSchema().zipWithIndex.map { case (field, i) =>
        field.name -> convert(ident.get(i, field.dataType), field.dataType, StringType).map(_.toString).orNull
      }))
      true
    }

  override def truncatePartition(ident: InternalRow): Boolean = dropPartition(ident)

  override def createPartition(ident: InternalRow, properties: util.Map[String, String]): Unit =
    throw BridgeErrors.addedPartition()

  override def replacePartitionMetadata(ident: InternalRow, properties: util.Map[String, String]): Unit =
    throw new UnsupportedOperationException("Partitions of Hudi tables carry no properties.")

  override def loadPartitionMetadata(ident: InternalRow): util.Map[String, String] = util.Collections.emptyMap()

  private def partitionRows: Seq[InternalRow] = {
    val request = Wire.obj().put("path", loaded.path).put("snapshot", loaded.snapshot)
    Wire.putMap(request, "options", loaded.options)
    val reply = Bridge.request("list_partitions", request)
    reply.get("partitions").elements().asScala.toList.map { values =>
      InternalRow.fromSeq(partitionSchema().map { field =>
        Option(values.get(field.name)).filterNot(_.isNull).flatMap(v => convert(v.asText, StringType, field.dataType)).orNull
      })
    }
  }

  private def convert(value: Any, from: DataType, to: DataType): Option[Any] = {
    val literal = value match {
      case text: String => Literal(text)
      case other => Literal(other, from)
    }
    Option(Cast(literal, to, Some(spark.sessionState.conf.sessionLocalTimeZone), EvalMode.LEGACY).eval())
  }
}
