package drawstring.bridge

import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/** A column seen through a list of its rows; nothing is copied.
  *
  * Merged slices show base rows and appended rows through this one class, so that the code which Spark generates meets
  * one class of vectors, compiles once and stays compiled. The wrapped vector belongs to its reader.
  */
class SelectedVector(given: ColumnVector, rows: Array[Int]) extends ColumnVector(given.dataType()) {
  private val dictionary = given match { case found: DictionaryVector => found; case _ => null }
  // Seen without its dictionary a column is of the same class as all others.
  private val vector = if (dictionary == null) given else dictionary.from
  private val mayBeNull = vector.hasNull

  override def close(): Unit = ()

  override def hasNull: Boolean = mayBeNull

  override def numNulls(): Int = vector.numNulls()

  override def isNullAt(row: Int): Boolean = mayBeNull && vector.isNullAt(rows(row))

  override def getBoolean(row: Int): Boolean = vector.getBoolean(rows(row))

  override def getByte(row: Int): Byte = vector.getByte(rows(row))

  override def getShort(row: Int): Short = vector.getShort(rows(row))

  override def getInt(row: Int): Int = vector.getInt(rows(row))

  override def getLong(row: Int): Long = vector.getLong(rows(row))

  override def getFloat(row: Int): Float = vector.getFloat(rows(row))

  override def getDouble(row: Int): Double = vector.getDouble(rows(row))

  override def getArray(row: Int): ColumnarArray = vector.getArray(rows(row))

  override def getMap(row: Int): ColumnarMap = vector.getMap(rows(row))

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = vector.getDecimal(rows(row), precision, scale)

  override def getUTF8String(row: Int): UTF8String =
    if (dictionary == null) vector.getUTF8String(rows(row)) else if (isNullAt(row)) null else dictionary.textAt(rows(row))

  override def getBinary(row: Int): Array[Byte] = vector.getBinary(rows(row))

  override def getChild(ordinal: Int): ColumnVector = new SelectedVector(vector.getChild(ordinal), rows)
}

object SelectedVector {
  @volatile private var everyRow = Array.range(0, 1 << 14)

  /** The given rows of some columns. */
  def batch(columns: Array[ColumnVector], rows: Array[Int], count: Int): ColumnarBatch =
    new ColumnarBatch(columns.map(new SelectedVector(_, rows): ColumnVector), count)

  /** All rows, listed as well: a way around the list would have Spark's generated code compiled once more. */
  def all(columns: Array[ColumnVector], count: Int): ColumnarBatch = {
    val known = everyRow
    val rows = if (known.length >= count) known else Array.range(0, count)
    everyRow = rows
    batch(columns, rows, count)
  }
}
