package drawstring.bridge

import java.util

import scala.collection.JavaConverters._
import scala.util.{Failure, Success, Try}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.{MetadataColumn, SupportsMetadataColumns, SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.expressions.{Expressions, Transform}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.sources.BaseRelation
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** What the catalog path and the format path share: a pinned snapshot that can be scanned through V2. */
trait HoodieReadableTable extends Table with SupportsRead with SupportsMetadataColumns {
  def spark: SparkSession

  def loaded: LoadedTable

  override def name(): String = loaded.name

  override def schema(): StructType = loaded.schema

  override def metadataColumns(): Array[MetadataColumn] = HiddenColumns.of(loaded.schema).toArray

  override def partitioning(): Array[Transform] =
    loaded.partitionColumns.map(column => Expressions.identity(s"`$column`"): Transform).toArray

  override def properties(): util.Map[String, String] = loaded.properties.asJava

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val asked = loaded.withOptions(options.asCaseSensitiveMap().asScala.toMap)
    // The query was resolved with the columns that the table was loaded with.
    if (asked.schema != loaded.schema) throw BridgeErrors.make(
      "InvalidOption",
      "OPTION_CHANGES_COLUMNS",
      s"The options of this read of ${loaded.name} ask for a state of the table with other columns, but were given after " +
        "its columns were looked up. Write TIMESTAMP AS OF or VERSION AS OF in SQL, or load the table by its path.",
      "path" -> loaded.path)
    new HoodieScanBuilder(spark, asked)
  }

  /** The same snapshot as a V1 relation, for the read path that plans `FileSourceScanExec`. */
  def toV1Relation: BaseRelation = HoodieFileIndex.relation(spark, loaded)
}

/** The table behind `format("hudi")`. Nothing is loaded until a reader asks, because writers pass here too,
  * on their way to a table that may not exist yet. Without `BATCH_READ` Spark goes on to the V1 source, but only
  * where a DataFrameReader asks (`hasV1Way`); Spark's own catalog would refuse to read the table.
  */
class HoodieFormatPathV2Table(val spark: SparkSession, hasV1Way: Boolean, load: () => LoadedTable)
    extends HoodieReadableTable {
  override lazy val loaded: LoadedTable = load()

  override def capabilities(): util.Set[TableCapability] = Try(loaded) match {
    case Success(table) if table.useV2 || !hasV1Way =>
      util.EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)
    // Streams have no V1 way: they are read through V2 whatever the flag says.
    case Success(_) => util.EnumSet.of(TableCapability.MICRO_BATCH_READ)
    case Failure(_) => util.EnumSet.noneOf(classOf[TableCapability])
  }
}
