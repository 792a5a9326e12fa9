package org.apache.spark.sql.hudi.catalog

import java.net.URI
import java.util
import java.util.Locale

import com.fasterxml.jackson.databind.node.ObjectNode
import drawstring.bridge.{Bridge, BridgeErrors, LoadedTable, Wire}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog._
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.types.StructType

import scala.collection.JavaConverters._

/** Hudi tables as the session catalog knows them: a name, a location, properties. The truth is on storage. */
private[sql] object HoodieEntries {
  val provider = "hudi"
  private val providers = Set("hudi", "org.apache.hudi", "org.apache.hudi.basedefaultsource", "org.apache.hudi.defaultsource")
  private val reserved = Set(
    TableCatalog.PROP_PROVIDER,
    TableCatalog.PROP_LOCATION,
    TableCatalog.PROP_COMMENT,
    TableCatalog.PROP_OWNER,
    TableCatalog.PROP_EXTERNAL,
    TableCatalog.PROP_IS_MANAGED_LOCATION)

  def isHoodie(entry: CatalogTable): Boolean =
    entry.tableType != CatalogTableType.VIEW && entry.provider.exists(isProvider)

  def isHoodie(properties: util.Map[String, String]): Boolean =
    Option(properties.get(TableCatalog.PROP_PROVIDER)).exists(isProvider)

  def isProvider(name: String): Boolean = providers.contains(name.toLowerCase(Locale.ROOT))

  def path(entry: CatalogTable): String = new Path(entry.location).toString

  /** What the statement asks for, before the table exists; partition columns go last, as everywhere in Spark. */
  def describe(
      spark: Sessions.Classic,
      ident: Identifier,
      schema: StructType,
      partitions: Array[Transform],
      properties: util.Map[String, String]): CatalogTable = {
    val name = ident.asTableIdentifier
    val given = properties.asScala.toMap
    val columns = partitions.toSeq.map(partitionColumn)
    val location = given.get(TableCatalog.PROP_LOCATION).filter(_.nonEmpty).map(qualified(spark, _))
    val uri = location.getOrElse(qualified(spark, spark.sessionState.catalog.defaultTablePath(name).toString))
    val external = location.isDefined && !given.get(TableCatalog.PROP_IS_MANAGED_LOCATION).contains("true")
    CatalogTable(
      identifier = name,
      tableType = if (external) CatalogTableType.EXTERNAL else CatalogTableType.MANAGED,
      storage = CatalogStorageFormat.empty.copy(locationUri = Some(uri), properties = options(given)),
      schema = partitionsLast(schema, columns),
      provider = Some(provider),
      partitionColumnNames = columns,
      properties = given.filterNot { case (key, _) => reserved(key) || key.startsWith(TableCatalog.OPTION_PREFIX) },
      comment = given.get(TableCatalog.PROP_COMMENT))
  }

  def partitionsLast(schema: StructType, columns: Seq[String]): StructType = {
    val (last, first) = schema.partition(field => columns.exists(_.equalsIgnoreCase(field.name)))
    StructType(first ++ columns.flatMap(column => last.find(_.name.equalsIgnoreCase(column))))
  }

  def load(entry: CatalogTable, options: Map[String, String] = Map.empty): LoadedTable =
    LoadedTable.load(path(entry), readOptions(entry) ++ options)

  /** Properties that change a read; the switch between V2 and V1 ranks below the session here, so it stays out. */
  private def readOptions(entry: CatalogTable): Map[String, String] =
    (entry.storage.properties ++ entry.properties).filter { case (key, _) =>
      key.startsWith("hoodie.") && !key.startsWith("hoodie.datasource.read.use.")
    }

  /** Makes the table on storage, or takes the one that is there, and enters it into the catalog. */
  def create(spark: Sessions.Classic, entry: CatalogTable): Unit = {
    val foundFolder = exists(spark, entry.location)
    Bridge.request("create_table", creation(spark, entry))
    try register(spark, asOnStorage(spark, entry))
    catch {
      case failure: Throwable =>
        if (!foundFolder) delete(spark, entry.location)
        throw failure
    }
  }

  private def creation(spark: Sessions.Classic, entry: CatalogTable): ObjectNode = {
    val node = Wire.obj().put("path", path(entry)).put("schema", entry.schema.json)
    node.put("table", entry.identifier.table).put("database", entry.identifier.database.getOrElse(""))
    val columns = node.putArray("partition_columns")
    entry.partitionColumnNames.foreach(columns.add(_: String))
    Wire.putMap(node, "properties", entry.storage.properties ++ entry.properties)
    Wire.putMap(node, "session", SessionSettings.of(spark))
  }

  /** The entry with the columns that the table has on storage, meta columns first. */
  def asOnStorage(spark: Sessions.Classic, entry: CatalogTable): CatalogTable = {
    val loaded = load(entry)
    val columns = loaded.partitionColumns.filter(column => loaded.schema.exists(_.name.equalsIgnoreCase(column)))
    entry.copy(schema = partitionsLast(loaded.schema, columns), partitionColumnNames = columns)
  }

  /** What DESCRIBE EXTENDED and SHOW TBLPROPERTIES show. */
  def properties(entry: CatalogTable): Map[String, String] =
    entry.storage.properties ++ entry.properties ++ entry.comment.map(TableCatalog.PROP_COMMENT -> _) +
      (TableCatalog.PROP_PROVIDER -> provider) + (TableCatalog.PROP_LOCATION -> path(entry)) ++
      (if (entry.tableType == CatalogTableType.EXTERNAL) Map(TableCatalog.PROP_EXTERNAL -> "true") else Map.empty)

  def register(spark: Sessions.Classic, entry: CatalogTable): Unit =
    spark.sessionState.catalog.createTable(entry, ignoreIfExists = false, validateLocation = false)

  /** Puts `entry` in the place of the one of its name; dropping that one would delete a managed table's files. */
  def replace(spark: Sessions.Classic, entry: CatalogTable): Unit = {
    val catalog = spark.sessionState.catalog
    val old = catalog.getTableMetadata(entry.identifier)
    if (!isHoodie(old)) throw notReplaceable(old.identifier.unquotedString)
    val partitions = entry.partitionColumnNames.toSet
    catalog.alterTable(entry.copy(identifier = old.identifier, createTime = old.createTime, owner = old.owner))
    catalog.alterTableDataSchema(old.identifier, StructType(entry.schema.filterNot(field => partitions(field.name))))
    catalog.refreshTable(old.identifier)
  }

  def write(entry: CatalogTable, origin: String, mode: String, options: Map[String, String]): WriteRequest = WriteRequest(
    path = path(entry),
    origin = origin,
    mode = mode,
    options = options,
    table = entry.identifier.table,
    database = entry.identifier.database.getOrElse(""),
    partitionColumns = entry.partitionColumnNames,
    properties = entry.storage.properties ++ entry.properties)

  /** After a write: cached results of the table are out of date. */
  def written(spark: Sessions.Classic, entry: CatalogTable): Unit = {
    val database = entry.identifier.database.getOrElse(spark.catalog.currentDatabase)
    val names = Seq("spark_catalog", database, entry.identifier.table)
    spark.sharedState.cacheManager.uncacheTableOrView(spark, names, cascade = true)
    spark.sharedState.cacheManager.recacheByPath(spark, path(entry))
  }

  def delete(spark: Sessions.Classic, location: URI): Unit = {
    val folder = new Path(location)
    folder.getFileSystem(spark.sessionState.newHadoopConf()).delete(folder, true)
  }

  def exists(spark: Sessions.Classic, location: URI): Boolean = {
    val folder = new Path(location)
    folder.getFileSystem(spark.sessionState.newHadoopConf()).exists(folder)
  }

  private def qualified(spark: Sessions.Classic, location: String): URI = {
    val folder = new Path(CatalogUtils.stringToURI(location))
    folder.getFileSystem(spark.sessionState.newHadoopConf()).makeQualified(folder).toUri
  }

  private def options(given: Map[String, String]): Map[String, String] = given.collect {
    case (key, value) if key.startsWith(TableCatalog.OPTION_PREFIX) => key.stripPrefix(TableCatalog.OPTION_PREFIX) -> value
  }

  private def partitionColumn(transform: Transform): String =
    if (transform.name == "identity" && transform.references.length == 1) transform.references.head.fieldNames.mkString(".")
    else throw BridgeErrors.make(
      "InvalidOption",
      "PARTITION_TRANSFORM_UNSUPPORTED",
      s"PARTITIONED BY (${transform.describe}) is not supported: Hudi tables are partitioned by columns. Name the " +
        "columns alone, or set hoodie.table.keygenerator.class for partitions computed from a value.",
      "transform" -> transform.describe)

  def notReplaceable(name: String): RuntimeException = BridgeErrors.make(
    "InvalidInput",
    "REPLACES_OTHER_PROVIDER",
    s"Table $name is not a Hudi table, so a Hudi table cannot take its place. Drop it first, or choose another name.",
    "table" -> name)
}
