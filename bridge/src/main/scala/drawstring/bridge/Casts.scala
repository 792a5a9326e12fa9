package drawstring.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.time.{LocalDate, LocalDateTime, ZoneOffset}
import java.time.format.DateTimeFormatter

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

/** How a column of a file is shown under another type; planned on the driver, applied on executors. */
sealed trait Cast extends Serializable {

  /** `from` is null when the file lacks the column. */
  def over(from: ColumnVector): ColumnVector
}

case object Unchanged extends Cast {
  override def over(from: ColumnVector): ColumnVector = from
}

case class Absent(wanted: DataType) extends Cast {
  override def over(from: ColumnVector): ColumnVector = new AbsentVector(wanted)
}

/** Each field's position in the file's struct (-1: not there) and its cast. */
case class StructCast(wanted: DataType, fields: Vector[(Int, Cast)]) extends Cast {
  override def over(from: ColumnVector): ColumnVector = {
    val children = fields.map { case (at, cast) => cast.over(if (at < 0) null else from.getChild(at)) }
    new StructVector(from, wanted, children.toArray)
  }
}

case class ListCast(wanted: DataType, element: Cast) extends Cast {
  override def over(from: ColumnVector): ColumnVector = from match {
    case found: WritableColumnVector => new ListVector(found, wanted, element.over(found.getChild(0)))
  }
}

case class MapCast(wanted: DataType, key: Cast, value: Cast) extends Cast {
  override def over(from: ColumnVector): ColumnVector = from match {
    case found: WritableColumnVector =>
      new MapVector(found, wanted, key.over(found.getChild(0)), value.over(found.getChild(1)))
  }
}

/** A conversion of single values, by the planner's name for it. */
case class ValueCast(kind: String, found: DataType, wanted: DataType) extends Cast {
  override def over(from: ColumnVector): ColumnVector = (kind, found, wanted) match {
    case ("cast", IntegerType, _) => new IntVector(from, wanted)
    case ("cast", LongType, _) => new LongVector(from, wanted)
    case ("float_to_double", _, _) => new FloatVector(from)
    case ("integer_to_decimal", _, to: DecimalType) => new IntegerDecimalVector(from, found == LongType, to)
    case ("decimal_to_decimal", of: DecimalType, to: DecimalType) => new DecimalVector(from, of, to)
    case ("timestamp" | "text_to_bytes", _, _) => new CastVector(from, wanted)
    case (_, _, _: StringType) => text(from)
    case _ => throw BridgeErrors.unknownCast(kind, found.catalogString, wanted.catalogString)
  }

  private def text(from: ColumnVector): ColumnVector = found match {
    case IntegerType => new TextVector(from) { def text(row: Int): String = Integer.toString(from.getInt(row)) }
    case LongType => new TextVector(from) { def text(row: Int): String = java.lang.Long.toString(from.getLong(row)) }
    case FloatType => new TextVector(from) { def text(row: Int): String = java.lang.Float.toString(from.getFloat(row)) }
    case DoubleType => new TextVector(from) { def text(row: Int): String = java.lang.Double.toString(from.getDouble(row)) }
    case BinaryType => new TextVector(from) { def text(row: Int): String = new String(from.getBinary(row), UTF_8) }
    case DateType => new TextVector(from) { def text(row: Int): String = LocalDate.ofEpochDay(from.getInt(row)).toString }
    case TimestampType => new TextVector(from) { def text(row: Int): String = ValueCast.timestampText(from.getLong(row)) }
    case of: DecimalType =>
      new TextVector(from) {
        def text(row: Int): String = from.getDecimal(row, of.precision, of.scale).toJavaBigDecimal.toString
      }
    case _ => throw BridgeErrors.unknownCast(kind, found.catalogString, wanted.catalogString)
  }
}

object ValueCast {
  private val toSecond = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss")

  /** In UTC; no fraction for whole seconds, else without the zeros at its end. */
  def timestampText(micros: Long): String = {
    val time = LocalDateTime.ofEpochSecond(Math.floorDiv(micros, 1000000L), 0, ZoneOffset.UTC)
    val fraction = Math.floorMod(micros, 1000000L)
    if (fraction == 0) time.format(toSecond)
    else time.format(toSecond) + "." + f"$fraction%06d".reverse.dropWhile(_ == '0').reverse
  }
}

object FloatTexts {
  private val powers = Array.tabulate(11)(k => math.pow(10, k))

  /** The double that the float's shortest text stands for.
    *
    * For sizes of everyday numbers the shortest text is found by trying more and more digits after the point: both
    * the digits and the power of ten are exact doubles, so that their quotient is what parsing would give.
    */
  def toDouble(number: Float): Double = {
    val size = math.abs(number)
    if (size >= 1e-3f && size < 16777216f) {
      var digits = 0
      while (digits < powers.length) {
        val found = math.rint(number.toDouble * powers(digits)) / powers(digits)
        if (found.toFloat == number) return found
        digits += 1
      }
    }
    java.lang.Double.parseDouble(java.lang.Float.toString(number))
  }
}
