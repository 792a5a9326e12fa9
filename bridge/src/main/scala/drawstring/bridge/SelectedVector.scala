package drawstring.bridge

import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/** A column seen through a list of its rows, or all of them when `rows` is null; nothing is copied.
  *
  * Merged slices show base rows and appended rows through this one class, so that the code which Spark generates meets
  * one class of vectors, compiles once and stays compiled. The wrapped vector belongs to its reader.
  */
class SelectedVector(vector: ColumnVector, rows: Array[Int]) extends ColumnVector(vector.dataType()) {
  private val mayBeNull = vector.hasNull

  private def at(row: Int): Int = if (rows == null) row else rows(row)

  override def close(): Unit = ()

  override def hasNull: Boolean = mayBeNull

  override def numNulls(): Int = vector.numNulls()

  override def isNullAt(row: Int): Boolean = mayBeNull && vector.isNullAt(at(row))

  override def getBoolean(row: Int): Boolean = vector.getBoolean(at(row))

  override def getByte(row: Int): Byte = vector.getByte(at(row))

  override def getShort(row: Int): Short = vector.getShort(at(row))

  override def getInt(row: Int): Int = vector.getInt(at(row))

  override def getLong(row: Int): Long = vector.getLong(at(row))

  override def getFloat(row: Int): Float = vector.getFloat(at(row))

  override def getDouble(row: Int): Double = vector.getDouble(at(row))

  override def getArray(row: Int): ColumnarArray = vector.getArray(at(row))

  override def getMap(row: Int): ColumnarMap = vector.getMap(at(row))

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = vector.getDecimal(at(row), precision, scale)

  override def getUTF8String(row: Int): UTF8String = vector.getUTF8String(at(row))

  override def getBinary(row: Int): Array[Byte] = vector.getBinary(at(row))

  override def getChild(ordinal: Int): ColumnVector = new SelectedVector(vector.getChild(ordinal), rows)
}

object SelectedVector {

  /** The given rows of some columns; all rows when `rows` is null. */
  def batch(columns: Array[ColumnVector], rows: Array[Int], count: Int): ColumnarBatch =
    new ColumnarBatch(columns.map(new SelectedVector(_, rows): ColumnVector), count)
}
