package drawstring.bridge

import scala.collection.JavaConverters._
import scala.collection.mutable.ArrayBuffer

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnarBatch

/** How files of another schema come to the table's, as the planner describes it: one entry per column. */
case class FileProjection(text: String) {

  /** The part of it that a scan of `schema` needs. */
  def cut(schema: StructType): CutProjection = {
    val nodes = FileProjection.byName(Wire.parse(text))
    val (file, fields) = FileProjection.fields(schema, nodes)
    CutProjection(file, fields, nodes.values.filter(isUntouched).map(_.get("name").asText).toSet)
  }

  private def isUntouched(node: JsonNode): Boolean =
    node.get("kind").asText == "identity" && node.get("source").asText == node.get("name").asText
}

/** What to ask of a file, and how each requested column comes out of it: its position there (-1: none) and cast. */
case class CutProjection(file: StructType, columns: Vector[(Int, Cast)], untouched: Set[String]) {

  /** The filters that mean the same for the file's values as for the table's. */
  def usable(filters: Array[Filter]): Array[Filter] = filters.filter(_.references.forall(untouched.contains))

  /** The requested columns over a batch of the file's, then what the batch holds beyond those. */
  def over(batch: ColumnarBatch): ColumnarBatch = {
    val found = columns.map { case (at, cast) => cast.over(if (at < 0) null else batch.column(at)) }
    val more = (file.length until batch.numCols()).map(batch.column)
    new ColumnarBatch((found ++ more).toArray, batch.numRows())
  }
}

/** The readers for files of one projection. */
case class ProjectedFiles(projection: CutProjection, files: BaseFiles) {

  def open(file: PartitionedFile, root: String, positioned: Boolean): PartitionReader[ColumnarBatch] =
    new ProjectedReader(files.open(file, root, positioned), projection)
}

class ProjectedReader(reader: PartitionReader[ColumnarBatch], projection: CutProjection) extends PartitionReader[ColumnarBatch] {
  override def next(): Boolean = reader.next()

  override def get(): ColumnarBatch = projection.over(reader.get())

  override def close(): Unit = reader.close()
}

object FileProjection {
  private type Planned = (Option[StructField], Cast)

  private def byName(nodes: JsonNode): Map[String, JsonNode] =
    nodes.elements().asScala.map(node => node.get("name").asText -> node).toMap

  /** The fields to ask for, and each wanted field's place among them. */
  private def fields(wanted: StructType, nodes: Map[String, JsonNode]): (StructType, Vector[(Int, Cast)]) = {
    val asked = ArrayBuffer.empty[StructField]
    val places = wanted.fields.toVector.map { field =>
      val (source, cast) = nodes.get(field.name).map(plan(field.dataType, _)).getOrElse((None, Absent(field.dataType)))
      (source.map { found => asked += found; asked.length - 1 }.getOrElse(-1), cast)
    }
    (StructType(asked.toArray), places)
  }

  private def plan(wanted: DataType, node: JsonNode): Planned = (node.get("kind").asText, wanted) match {
    case ("null", _) => (None, Absent(wanted))
    case ("identity", _) => (source(node, wanted), Unchanged)
    case ("struct", struct: StructType) => planStruct(struct, node)
    case ("list", array: ArrayType) =>
      val (found, cast) = plan(array.elementType, child(node, 0))
      (source(node, ArrayType(found.get.dataType)), ListCast(wanted, cast))
    case ("map", map: MapType) =>
      val (key, keyCast) = plan(map.keyType, child(node, 0))
      val (value, valueCast) = plan(map.valueType, child(node, 1))
      (source(node, MapType(key.get.dataType, value.get.dataType)), MapCast(wanted, keyCast, valueCast))
    case (kind, _) =>
      val found = sourceType(node)
      if (found == wanted) (source(node, wanted), Unchanged) else (source(node, found), ValueCast(kind, found, wanted))
  }

  /** A struct of which no wanted field is in the file is read for one of its other fields: they tell where it is null. */
  private def planStruct(struct: StructType, node: JsonNode): Planned = {
    val (asked, places) = fields(struct, byName(node.get("children")))
    val file = if (asked.isEmpty) StructType(Array(anyField(node))) else asked
    (source(node, file), StructCast(struct, places))
  }

  private def anyField(node: JsonNode): StructField = {
    val present = DataType.fromDDL(node.get("source_type").asText).asInstanceOf[StructType].fields
    present.find(field => !isNested(field.dataType)).getOrElse(present.head)
  }

  private def isNested(dataType: DataType): Boolean = dataType match {
    case _: StructType | _: ArrayType | _: MapType => true
    case _ => false
  }

  private def source(node: JsonNode, dataType: DataType): Option[StructField] =
    Some(StructField(node.get("source").asText, dataType))

  private def child(node: JsonNode, index: Int): JsonNode = node.get("children").get(index)

  /** Timestamps of either kind are read as instants, the one type that all their encodings can be read as. */
  private def sourceType(node: JsonNode): DataType = node.get("source_type").asText match {
    case "timestamp" | "timestamp_ntz" => TimestampType
    case other => DataType.fromDDL(other)
  }
}
