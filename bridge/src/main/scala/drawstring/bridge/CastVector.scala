package drawstring.bridge

import java.math.{BigDecimal => JavaDecimal}
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/** A column of a file seen under the type that was asked for; values are converted when they are asked for.
  *
  * Values pass as they are unless a subclass converts them, which serves types that are stored alike. The wrapped
  * vector belongs to its reader.
  */
class CastVector(from: ColumnVector, wanted: DataType) extends ColumnVector(wanted) {
  override def close(): Unit = ()

  override def hasNull: Boolean = from.hasNull

  override def numNulls(): Int = from.numNulls()

  override def isNullAt(row: Int): Boolean = from.isNullAt(row)

  override def getBoolean(row: Int): Boolean = from.getBoolean(row)

  override def getByte(row: Int): Byte = from.getByte(row)

  override def getShort(row: Int): Short = from.getShort(row)

  override def getInt(row: Int): Int = from.getInt(row)

  override def getLong(row: Int): Long = from.getLong(row)

  override def getFloat(row: Int): Float = from.getFloat(row)

  override def getDouble(row: Int): Double = from.getDouble(row)

  override def getArray(row: Int): ColumnarArray = from.getArray(row)

  override def getMap(row: Int): ColumnarMap = from.getMap(row)

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = from.getDecimal(row, precision, scale)

  override def getUTF8String(row: Int): UTF8String = from.getUTF8String(row)

  override def getBinary(row: Int): Array[Byte] = from.getBinary(row)

  override def getChild(ordinal: Int): ColumnVector = from.getChild(ordinal)
}

class IntVector(from: ColumnVector, wanted: DataType) extends CastVector(from, wanted) {
  override def getLong(row: Int): Long = from.getInt(row).toLong

  override def getFloat(row: Int): Float = from.getInt(row).toFloat

  override def getDouble(row: Int): Double = from.getInt(row).toDouble
}

class LongVector(from: ColumnVector, wanted: DataType) extends CastVector(from, wanted) {
  override def getFloat(row: Int): Float = from.getLong(row).toFloat

  override def getDouble(row: Int): Double = from.getLong(row).toDouble
}

/** Floats as the doubles that their texts stand for: 0.1, not 0.10000000149011612. */
class FloatVector(from: ColumnVector) extends CastVector(from, DoubleType) {
  override def getDouble(row: Int): Double = FloatTexts.toDouble(from.getFloat(row))
}

abstract class TextVector(from: ColumnVector) extends CastVector(from, StringType) {
  protected def text(row: Int): String

  override def getUTF8String(row: Int): UTF8String = if (isNullAt(row)) null else UTF8String.fromString(text(row))

  override def getBinary(row: Int): Array[Byte] = if (isNullAt(row)) null else text(row).getBytes(UTF_8)
}

/** Whole numbers as decimals; what does not fit is null, as in Spark. */
class IntegerDecimalVector(from: ColumnVector, isLong: Boolean, wanted: DecimalType) extends CastVector(from, wanted) {
  private val digits = wanted.precision - wanted.scale
  private val limit = if (digits < 19) math.pow(10, digits).toLong else Long.MaxValue
  private val fitsAlways = digits >= 19 || !isLong && digits >= 10

  private def whole(row: Int): Long = if (isLong) from.getLong(row) else from.getInt(row).toLong

  override def hasNull: Boolean = !fitsAlways || from.hasNull

  override def isNullAt(row: Int): Boolean = from.isNullAt(row) || !fitsAlways && !fits(whole(row))

  private def fits(number: Long): Boolean = number < limit && number > -limit

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null else Decimal(JavaDecimal.valueOf(whole(row)), precision, scale)
}

class DecimalVector(from: ColumnVector, found: DecimalType, wanted: DecimalType) extends CastVector(from, wanted) {
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else Decimal(from.getDecimal(row, found.precision, found.scale).toJavaBigDecimal, precision, scale)
}

/** A struct with other fields, or the same ones converted; null where the file's struct is null. */
class StructVector(from: ColumnVector, wanted: DataType, children: Array[ColumnVector]) extends CastVector(from, wanted) {
  override def getChild(ordinal: Int): ColumnVector = children(ordinal)
}

class ListVector(from: WritableColumnVector, wanted: DataType, elements: ColumnVector) extends CastVector(from, wanted) {
  override def getArray(row: Int): ColumnarArray =
    if (isNullAt(row)) null else new ColumnarArray(elements, from.getArrayOffset(row), from.getArrayLength(row))
}

class MapVector(from: WritableColumnVector, wanted: DataType, keys: ColumnVector, values: ColumnVector)
    extends CastVector(from, wanted) {
  override def getMap(row: Int): ColumnarMap =
    if (isNullAt(row)) null else new ColumnarMap(keys, values, from.getArrayOffset(row), from.getArrayLength(row))
}

/** A column or field that the file lacks. */
class AbsentVector(wanted: DataType) extends CastVector(null, wanted) {
  override def hasNull: Boolean = true

  override def numNulls(): Int = Int.MaxValue

  override def isNullAt(row: Int): Boolean = true

  override def getArray(row: Int): ColumnarArray = null

  override def getMap(row: Int): ColumnarMap = null

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = null

  override def getUTF8String(row: Int): UTF8String = null

  override def getBinary(row: Int): Array[Byte] = null

  override def getChild(ordinal: Int): ColumnVector = wanted match {
    case struct: StructType => new AbsentVector(struct(ordinal).dataType)
    case other => throw new IllegalArgumentException(s"a column of type ${other.catalogString} has no fields")
  }
}
