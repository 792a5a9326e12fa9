package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types._

/** Filters that become known while a query runs, such as the keys that the other side of a join has. */
object RuntimeFilters {
  private val MaxValues = 50000

  /** The columns by which files can be left out: those of types that have bounds. */
  def columns(schema: StructType): Array[NamedReference] = schema.fields.filter(field => hasBounds(field.dataType)).map { field =>
    Expressions.column(s"`${field.name.replace("`", "``")}`")
  }

  /** The filters as messages; lists that are longer than looking at the files is worth are passed over. */
  def toWire(predicates: Array[Predicate]): Seq[JsonNode] =
    predicates.toSeq.filter(_.children().length <= MaxValues).flatMap(Predicates.toWire)

  private def hasBounds(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType => true
    case _: StringType | _: DecimalType => true
    case _ => false
  }
}
