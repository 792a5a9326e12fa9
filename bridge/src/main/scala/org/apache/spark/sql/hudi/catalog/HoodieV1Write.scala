package org.apache.spark.sql.hudi.catalog

import drawstring.bridge.BridgeErrors
import org.apache.spark.sql.{DataFrame, SQLContext, SaveMode}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.connector.write.{SupportsOverwrite, V1Write, WriteBuilder}
import org.apache.spark.sql.sources._
import org.apache.spark.sql.types.StructType

/** Every V2 write ends here: an insertable relation that hands the rows to the planner, never to V2 again. */
class HoodieV1WriteBuilder(request: WriteRequest, written: () => Unit) extends SupportsOverwrite {
  private var replaced: Overwrite = Overwrite.Nothing

  override def truncate(): WriteBuilder = {
    replaced = Overwrite.Table
    this
  }

  override def overwrite(filters: Array[Filter]): WriteBuilder = {
    replaced = OverwriteFilters.partitions(filters)
    this
  }

  override def build(): V1Write = new V1Write {
    override def toInsertableRelation: InsertableRelation = new InsertableRelation {
      override def insert(data: DataFrame, overwrite: Boolean): Unit = {
        request.copy(overwrite = chosen(overwrite)).run(data)
        written()
      }
    }
  }

  private def chosen(all: Boolean): Overwrite =
    if (OverwriteFilters.isDynamic(request.options)) Overwrite.Dynamic
    else if (all && replaced == Overwrite.Nothing) Overwrite.Table
    else replaced
}

object OverwriteFilters {

  /** Set by the analysis rule: Spark has no V1 write for dynamic overwrites, so they travel as a truncation. */
  val dynamicOption = "drawstring.overwrite.dynamic"

  def isDynamic(options: Map[String, String]): Boolean = options.get(dynamicOption).contains("true")

  def partitions(filters: Array[Filter]): Overwrite = {
    val values = filters.toSeq.flatMap(conjuncts).map {
      case EqualTo(column, value) => column -> text(value)
      case EqualNullSafe(column, value) => column -> text(value)
      case IsNull(column) => column -> null
      case other => throw unsupported(other)
    }
    if (values.isEmpty) Overwrite.Table else Overwrite.Partitions(values)
  }

  private def conjuncts(filter: Filter): Seq[Filter] = filter match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case AlwaysTrue() => Nil
    case other => Seq(other)
  }

  private def text(value: Any): String = if (value == null) null else value.toString

  private def unsupported(filter: Filter) = BridgeErrors.make(
    "InvalidInput",
    "OVERWRITE_FILTER_UNSUPPORTED",
    s"Rows can be overwritten by partition only, and '$filter' is not a partition column compared with a value. " +
      "Use INSERT OVERWRITE t PARTITION (column = value), or delete the rows and insert the new ones.",
    "filter" -> filter.toString
  )
}

/** `df.write.format("hudi").save(path)`: Spark hands it over here because the table offers no V2 batch write. */
trait HoodieCreatableRelation extends CreatableRelationProvider {
  override def createRelation(
      context: SQLContext,
      saveMode: SaveMode,
      parameters: Map[String, String],
      data: DataFrame): BaseRelation = {
    val path = parameters.collectFirst { case (key, value) if key.equalsIgnoreCase("path") => value }
    WriteRequest(
      path = path.getOrElse(throw BridgeErrors.missingPath()),
      origin = "dataframe",
      mode = saveMode.name.toLowerCase(java.util.Locale.ROOT),
      options = CallerOptions.of(parameters)).run(data)
    new WrittenRelation(context, data.schema)
  }
}

private object CallerOptions {

  /** The options with the keys as the caller spelt them: Spark hands them over in lower case. */
  def of(parameters: Map[String, String]): Map[String, String] = parameters match {
    case folded: CaseInsensitiveMap[String @unchecked] => folded.originalMap
    case plain => plain
  }
}

/** What a write returns: nobody reads from it. */
private class WrittenRelation(override val sqlContext: SQLContext, override val schema: StructType) extends BaseRelation
