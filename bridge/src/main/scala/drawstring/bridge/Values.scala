package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Values in the planner's answers, as Spark keeps them in rows. */
object Values {

  def fromWire(node: JsonNode, dataType: DataType): Any =
    if (node == null || node.isNull) null
    else dataType match {
      case BooleanType => node.asBoolean
      case ByteType => node.asInt.toByte
      case ShortType => node.asInt.toShort
      case IntegerType | DateType => node.asInt
      case LongType | TimestampType | TimestampNTZType => node.asLong
      case FloatType => node.asText.toFloat
      case DoubleType => node.asText.toDouble
      case decimal: DecimalType => Decimal(new java.math.BigDecimal(node.asText), decimal.precision, decimal.scale)
      case _: StringType => UTF8String.fromString(node.asText)
      case other => throw BridgeErrors.unknownCast("value", "json", other.catalogString)
    }
}
