package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.types.{IntegerType, StructType}

/** By what file groups keep rows together: values of columns, or Hudi's hash of one column modulo `buckets`. */
case class Grouping(columns: Seq[String], buckets: Option[Int]) {

  /** The part of it that can be told by the columns of a scan. */
  def in(schema: StructType): Option[ScanGrouping] = {
    val places = columns.indices.filter(at => schema.fieldNames.contains(columns(at)))
    if (places.isEmpty) None else Some(ScanGrouping(this, places, StructType(places.map(at => schema(columns(at))))))
  }
}

object Grouping {

  def fromWire(node: JsonNode): Option[Grouping] =
    Option(node).filterNot(_.isNull).map { found =>
      Grouping(Wire.strings(found.get("columns")), Wire.optionalLong(found.get("buckets")).map(_.toInt))
    }
}

/** What a scan tells Spark of it. */
case class ScanGrouping(grouping: Grouping, places: Seq[Int], fields: StructType) {

  def expressions: Array[Expression] = names.map { name =>
    grouping.buckets.fold[Expression](Expressions.identity(name))(count => Expressions.bucket(count, name))
  }

  /** The order of each group's rows; Spark may put groups of several columns together that are equal in some. */
  def ordering: Option[SortOrder] =
    if (grouping.buckets.isEmpty && names.length == 1) Some(Expressions.sort(Expressions.column(names.head), SortDirection.ASCENDING))
    else None

  private def names: Array[String] = fields.fieldNames.map(name => s"`${name.replace("`", "``")}`")

  /** The values that the rows of a task have in common. */
  def key(task: SliceTask): InternalRow = {
    val values = task.key.get
    if (grouping.buckets.isDefined) InternalRow(values.get(0).asInt)
    else InternalRow.fromSeq(places.zip(fields.fields).map { case (at, field) => Values.fromWire(values.get(at), field.dataType) })
  }

  /** Equal for tasks of equal keys. */
  def name(task: SliceTask): Seq[String] =
    if (grouping.buckets.isDefined) Seq(task.key.get.get(0).asText) else places.map(at => Wire.text(task.key.get.get(at)))
}
