package org.apache.hudi

import java.util

import scala.collection.JavaConverters._

import drawstring.bridge.{BridgeErrors, HoodieFileIndex, HoodieFormatPathV2Table, LoadedTable}
import org.apache.spark.sql.{SQLContext, SparkSession}
import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.hudi.catalog.{HoodieCreatableRelation, HoodieSinkProvider}
import org.apache.spark.sql.execution.streaming.Source
import org.apache.spark.sql.sources._
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The format path. Reads go through V2 when `hoodie.datasource.read.use.dsv2` says so, else through V1;
  * writes always take the V1 way.
  */
class BaseDefaultSource
    extends TableProvider
    with RelationProvider
    with SchemaRelationProvider
    with HoodieCreatableRelation
    with HoodieSinkProvider
    with StreamSourceProvider
    with DataSourceRegister {
  private var inferred: Option[LoadedTable] = None

  override def shortName(): String = "hudi"

  /** A given schema is accepted as Hudi accepts it, and the table's own is used. It also spares writers, who pass
    * here before they reach the V1 source, the look at a table that may not exist.
    */
  override def supportsExternalMetadata(): Boolean = true

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    inferred = Some(load(options.asCaseSensitiveMap().asScala.toMap))
    inferred.get.schema
  }

  override def getTable(schema: StructType, partitioning: Array[Transform], properties: util.Map[String, String]): Table = {
    // A DataFrameReader asks for the schema first; catalogs bring one along.
    val known = inferred
    val load = () => known.getOrElse(this.load(properties.asScala.toMap))
    new HoodieFormatPathV2Table(SparkSession.active, hasV1Way = known.isDefined, load)
  }

  override def createRelation(sqlContext: SQLContext, parameters: Map[String, String]): BaseRelation =
    HoodieFileIndex.relation(sqlContext.sparkSession, load(parameters))

  override def createRelation(sqlContext: SQLContext, parameters: Map[String, String], schema: StructType): BaseRelation =
    createRelation(sqlContext, parameters)

  /** Spark asks for a V1 stream beside that of a table of the catalog, and never begins it: streams go through V2. */
  override def sourceSchema(
      sqlContext: SQLContext,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): (String, StructType) = shortName() -> load(parameters).schema

  override def createSource(
      sqlContext: SQLContext,
      metadataPath: String,
      schema: Option[StructType],
      providerName: String,
      parameters: Map[String, String]): Source = throw BridgeErrors.noV1Stream()

  private def load(options: Map[String, String]): LoadedTable = {
    val given = new CaseInsensitiveStringMap(options.asJava)
    val path = given.get("path")
    if (path == null && given.containsKey("paths")) throw BridgeErrors.severalPaths(given.get("paths"))
    if (path == null || path.trim.isEmpty) throw BridgeErrors.missingPath()
    LoadedTable.load(path, options)
  }
}

/** The format by its long name, `org.apache.hudi`. */
class DefaultSource extends BaseDefaultSource
