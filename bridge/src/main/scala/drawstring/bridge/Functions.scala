package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.expressions.{Cast => SparkCast, Expression, Extract, GeneralScalarExpression, Literal, NamedReference}
import org.apache.spark.sql.types._

/** Functions of one column as wire messages; None for those that the planner does not know. */
object Functions {
  private val byName =
    Set("UPPER", "LOWER", "SUBSTRING", "CONCAT", "TRIM", "LTRIM", "RTRIM", "CHAR_LENGTH", "TRUNC", "DATE_ADD")

  def toWire(expression: Expression): Option[ObjectNode] = expression match {
    case cast: SparkCast => typeName(cast.dataType).flatMap(name => call("cast", cast.expression).map(_.put("type", name)))
    case extract: Extract => call("extract", extract.source).map(_.put("field", extract.field))
    case general: GeneralScalarExpression if byName(general.name) => withArguments(general.name.toLowerCase, general.children.toSeq)
    case _ => None
  }

  /** The one child that is no literal is the operand; `place` says where it stands among the literals. */
  private def withArguments(function: String, children: Seq[Expression]): Option[ObjectNode] = {
    val (literals, others) = children.partition(_.isInstanceOf[Literal[_]])
    val arguments = literals.map { case literal: Literal[_] => Predicates.literal(literal) }
    if (others.length != 1 || arguments.exists(_.isEmpty)) None
    else call(function, others.head).map { node =>
      Wire.putAll(node, "arguments", arguments.flatten)
      node.put("place", children.indexOf(others.head))
    }
  }

  private def call(function: String, operand: Expression): Option[ObjectNode] =
    operandToWire(operand).map(inner => Wire.obj().put("function", function).set[ObjectNode]("operand", inner))

  private def operandToWire(operand: Expression): Option[JsonNode] = operand match {
    case column: NamedReference => Some(Wire.putStrings(Wire.obj(), "column", column.fieldNames.toSeq))
    case other => toWire(other)
  }

  /** Texts that compare by rules of their own are none of the planner's. */
  private def typeName(dataType: DataType): Option[String] = dataType match {
    case StringType => Some("string")
    case _: StringType => None
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType | DateType | TimestampType | TimestampNTZType =>
      Some(dataType.typeName)
    case _: DecimalType => Some(dataType.typeName)
    case _ => None
  }
}
