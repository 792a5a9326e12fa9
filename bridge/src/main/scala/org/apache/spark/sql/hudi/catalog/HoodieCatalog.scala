package org.apache.spark.sql.hudi.catalog

import java.time.{Instant, LocalDateTime, ZoneId}
import java.time.format.DateTimeFormatter
import java.time.temporal.ChronoUnit
import java.util

import drawstring.bridge.{BridgeErrors, HoodieFunctions}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.hudi.analysis.ComputedTime
import org.apache.spark.sql.types.StructType

/**
 * The session catalog with Hudi tables in it. Whatever is not Hudi goes to Spark's own catalog untouched.
 *
 * A Hudi table is loaded in one of two shapes: to be read, with the meta columns, or (when Spark asks for write
 * privileges) to be inserted into, without them.
 */
class HoodieCatalog extends DelegatingCatalogExtension with TableCatalog with StagingTableCatalog with HoodieChangelogs {

  override def loadTable(ident: Identifier): Table = delegateTable(super.loadTable(ident))(readable(_, None))

  override def loadTable(ident: Identifier, version: String): Table =
    delegateTable(super.loadTable(ident))(readable(_, Some(version)))

  override def loadTable(ident: Identifier, timestamp: Long): Table =
    delegateTable(super.loadTable(ident))(readable(_, Some(instant(timestamp))))

  override def loadTable(ident: Identifier, privileges: util.Set[TableWritePrivilege]): Table = {
    val inserts = privileges.contains(TableWritePrivilege.INSERT)
    delegateTable(super.loadTable(ident)) { entry =>
      if (inserts) new HoodieInsertTable(spark, entry, readable(entry, None)) else readable(entry, None)
    }
  }

  override def createTable(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): Table =
    if (HoodieEntries.isHoodie(properties)) createHoodie(ident, schema, partitions, properties)
    else super.createTable(ident, schema, partitions, properties)

  override def createTable(
      ident: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: util.Map[String, String]): Table =
    if (HoodieEntries.isHoodie(properties))
      createHoodie(ident, CatalogV2Util.v2ColumnsToStructType(columns), partitions, properties)
    else super.createTable(ident, columns, partitions, properties)

  override def loadFunction(ident: Identifier): UnboundFunction =
    HoodieFunctions.find(ident).getOrElse(super.loadFunction(ident))

  override def purgeTable(ident: Identifier): Boolean = super.loadTable(ident) match {
    case HoodieEntry(entry) =>
      val dropped = super.dropTable(ident)
      HoodieEntries.delete(spark, entry.location)
      dropped
    case _ => super.purgeTable(ident)
  }

  override def alterTable(ident: Identifier, changes: TableChange*): Table = super.loadTable(ident) match {
    case HoodieEntry(entry) =>
      changes.foreach(change => if (!HoodieCatalog.touchesPropertiesOnly(change)) throw notAlterable(entry, change))
      super.alterTable(ident, changes: _*)
      loadTable(ident)
    case _ => super.alterTable(ident, changes: _*)
  }

  override def stageCreate(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    if (HoodieEntries.isHoodie(properties)) stage(ident, schema, partitions, properties)
    else new CreatedTable(ident, super.createTable(ident, schema, partitions, properties), this)

  override def stageReplace(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    stageCreateOrReplace(ident, schema, partitions, properties)

  override def stageCreateOrReplace(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable =
    if (HoodieEntries.isHoodie(properties)) stage(ident, schema, partitions, properties)
    else {
      if (tableExists(ident)) super.dropTable(ident)
      new CreatedTable(ident, super.createTable(ident, schema, partitions, properties), this)
    }

  private def spark: Sessions.Classic = Sessions.active

  private def delegateTable(table: Table)(hoodie: CatalogTable => Table): Table = table match {
    case HoodieEntry(entry) => hoodie(entry)
    case other => other
  }

  override protected def hoodieEntry(ident: Identifier): Option[CatalogTable] = HoodieEntry.unapply(super.loadTable(ident))

  private def readable(entry: CatalogTable, asOf: Option[String]): Table =
    new HoodieInternalV2Table(spark, entry, HoodieEntries.load(entry, asOf.map("as.of.instant" -> _).toMap))

  private def createHoodie(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): Table = {
    val entry = HoodieEntries.describe(spark, ident, schema, partitions, properties)
    HoodieEntries.create(spark, entry)
    loadTable(ident)
  }

  /** A replaced table keeps its place, unless the statement names another. */
  private def stage(
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): StagedTable = {
    val old = if (tableExists(ident)) Some(super.loadTable(ident)) else None
    val described = HoodieEntries.describe(spark, ident, schema, partitions, properties)
    val entry = old match {
      case Some(HoodieEntry(known)) if !properties.containsKey(TableCatalog.PROP_LOCATION) =>
        described.copy(tableType = known.tableType, storage = described.storage.copy(locationUri = known.storage.locationUri))
      case Some(HoodieEntry(_)) | None => described
      case Some(other) => throw HoodieEntries.notReplaceable(other.name)
    }
    new HoodieStagedTable(spark, entry, schema, replaces = old.isDefined)
  }

  /**
   * The instant that reads, in the session's time zone, like the given time: Hudi compares the digits. A time given to
   * the second covers it, as in Hudi. A computed time is a moment; the planner finds it in the zone of the timeline.
   */
  private def instant(micros: Long): String = if (ComputedTime.isMoment(micros)) {
    Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString
  } else {
    val zone = ZoneId.of(spark.sessionState.conf.sessionLocalTimeZone)
    val seen = if (micros % 1000000L == 0) micros + 999000L else micros
    LocalDateTime.ofInstant(Instant.EPOCH.plus(seen, ChronoUnit.MICROS), zone).format(HoodieCatalog.instantFormat)
  }

  private def notAlterable(entry: CatalogTable, change: TableChange) = BridgeErrors.make(
    "UnsupportedTable",
    "ALTER_TABLE_UNSUPPORTED",
    s"ALTER TABLE ${entry.identifier.unquotedString}: ${change.getClass.getSimpleName} is not supported; table " +
      s"properties can be changed. ${HoodieCatalog.instead(change)}",
    "table" -> entry.identifier.unquotedString,
    "change" -> change.getClass.getSimpleName)
}

object HoodieCatalog {
  private val instantFormat = DateTimeFormatter.ofPattern("yyyyMMddHHmmssSSS")

  private def touchesPropertiesOnly(change: TableChange): Boolean =
    change.isInstanceOf[TableChange.SetProperty] || change.isInstanceOf[TableChange.RemoveProperty]

  private def instead(change: TableChange): String = change match {
    case _: TableChange.AddColumn => "A new column comes with the first write that carries it."
    case _: TableChange.UpdateColumnType =>
      "A column gets a wider type (INT to BIGINT or DOUBLE, for example) with the first write that carries it."
    case _ => "Use Apache Hudi for this statement, or write the rows to another table with the columns as they should be."
  }
}

/** A table of the delegate that is Hudi's. */
private[sql] object HoodieEntry {
  def unapply(table: Table): Option[CatalogTable] = table match {
    case v1: V1Table if HoodieEntries.isHoodie(v1.v1Table) => Some(v1.v1Table)
    case _ => None
  }
}
