package drawstring.bridge

import java.util.Base64

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.expressions.{Expression, Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.{And, Not, Or, Predicate}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Spark's predicates as wire messages; None for what the protocol cannot say. */
object Predicates {
  private val flipped = Map("=" -> "=", "<=>" -> "<=>", "<>" -> "<>", "<" -> ">", "<=" -> ">=", ">" -> "<", ">=" -> "<=")

  private val textTests = Map("STARTS_WITH" -> "starts_with", "ENDS_WITH" -> "ends_with", "CONTAINS" -> "contains")

  def toWire(predicate: Predicate): Option[JsonNode] = predicate match {
    case and: And => both("and", toWire(and.left), toWire(and.right))
    case or: Or => both("or", toWire(or.left), toWire(or.right))
    case not: Not => toWire(not.child).map(part => Wire.obj().put("op", "not").set[ObjectNode]("part", part))
    case other => simple(other.name, other.children.toSeq)
  }

  /** The columns a predicate reads, by their top-level names. */
  def columns(predicate: Predicate): Set[String] = predicate.references.map(_.fieldNames.head).toSet

  private def both(op: String, left: Option[JsonNode], right: Option[JsonNode]): Option[JsonNode] =
    for (l <- left; r <- right) yield {
      val node = Wire.obj().put("op", op)
      node.putArray("parts").add(l).add(r)
      node
    }

  private def simple(name: String, children: Seq[Expression]): Option[JsonNode] = (name, children) match {
    case ("ALWAYS_TRUE", _) => Some(Wire.obj().put("op", "true"))
    case ("ALWAYS_FALSE", _) => Some(Wire.obj().put("op", "false"))
    case ("IS_NULL", Seq(operand)) => on("is_null", operand)
    case ("IS_NOT_NULL", Seq(operand)) =>
      on("is_null", operand).map(part => Wire.obj().put("op", "not").set[ObjectNode]("part", part))
    case (test, Seq(operand, text: Literal[_])) if textTests.contains(test) => valued(textTests(test), operand, text)
    case ("IN", operand +: values) => in(operand, values)
    case (op, Seq(operand, value: Literal[_])) if flipped.contains(op) => comparison(op, operand, value)
    case (op, Seq(value: Literal[_], operand)) if flipped.contains(op) => comparison(flipped(op), operand, value)
    case _ => None
  }

  private def comparison(op: String, operand: Expression, value: Literal[_]): Option[JsonNode] =
    valued(if (op == "<>") "!=" else op, operand, value)

  private def valued(op: String, operand: Expression, value: Literal[_]): Option[JsonNode] =
    for (node <- on(op, operand); encoded <- literal(value)) yield node.set[ObjectNode]("value", encoded)

  private def in(operand: Expression, values: Seq[Expression]): Option[JsonNode] = {
    val encoded = values.map { case value: Literal[_] => literal(value); case _ => None }
    if (encoded.exists(_.isEmpty)) None
    else on("in", operand).map { node =>
      Wire.putAll(node, "values", encoded.flatten)
      node
    }
  }

  /** A test of a column, or of what a function makes of one. */
  private def on(op: String, operand: Expression): Option[ObjectNode] = operand match {
    case column: NamedReference => Some(Wire.putStrings(Wire.obj().put("op", op), "column", column.fieldNames.toSeq))
    case _: Literal[_] => None
    case other => Functions.toWire(other).map(call => Wire.obj().put("op", op).set[ObjectNode]("of", call))
  }

  def literal(literal: Literal[_]): Option[JsonNode] = {
    val node = Wire.obj().put("type", typeName(literal.dataType))
    (literal.value, literal.dataType) match {
      case (null, _) => Some(node.putNull("value"))
      case (value: java.lang.Boolean, BooleanType) => Some(node.put("value", value.booleanValue))
      case (value: Number, ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType) =>
        Some(node.put("value", value.longValue))
      case (value: Number, FloatType | DoubleType) => Some(node.put("value", value.toString))
      case (value: UTF8String, _: StringType) => Some(node.put("value", value.toString))
      case (value: Decimal, _: DecimalType) => Some(node.put("value", value.toJavaBigDecimal.toPlainString))
      case (value: Array[Byte], BinaryType) => Some(node.put("value", Base64.getEncoder.encodeToString(value)))
      case _ => None
    }
  }

  private def typeName(dataType: DataType): String = dataType match {
    case _: StringType => "string"
    case other => other.typeName
  }
}
