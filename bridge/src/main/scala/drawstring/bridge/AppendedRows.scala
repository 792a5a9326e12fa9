package drawstring.bridge

import org.apache.arrow.memory.ArrowBuf
import org.apache.arrow.{vector => arrow}
import org.apache.spark.sql.execution.vectorized.{OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector}

/** The rows that logs append, copied out of Arrow into the vectors that Spark's Parquet reader fills.
  *
  * What Spark generates for a scan then meets one class of vectors in base and appended rows. Two would have it
  * compiled twice, and Arrow's accessors run slower than the copies: most are of whole buffers.
  */
class AppendedRows {
  private var columns = Array.empty[WritableColumnVector]

  /** The columns of a batch; nested and rare ones stay as they are. Valid until the next batch is asked for. */
  def copied(batch: Array[ColumnVector], count: Int): Array[ColumnVector] = {
    if (columns.length != batch.length) columns = new Array(batch.length)
    Array.tabulate(batch.length) { at =>
      batch(at) match {
        case found: ArrowColumnVector => copied(at, found, count)
        case other => other
      }
    }
  }

  private def copied(at: Int, from: ArrowColumnVector, count: Int): ColumnVector =
    AppendedRows.copier(from.dataType(), from.getValueVector).fold(from: ColumnVector) { copy =>
      val target = emptied(at, from.dataType(), count)
      copy(target, count)
      if (from.hasNull) (0 until count).foreach(row => if (from.isNullAt(row)) target.putNull(row))
      target
    }

  private def emptied(at: Int, dataType: DataType, count: Int): WritableColumnVector = {
    if (columns(at) == null) columns(at) = new OnHeapColumnVector(count, dataType)
    columns(at).reset()
    columns(at).reserve(count)
    columns(at)
  }
}

object AppendedRows {
  private type Copy = (WritableColumnVector, Int) => Unit
  private val DecimalBytes = 16

  private def copier(dataType: DataType, vector: arrow.ValueVector): Option[Copy] = (dataType, vector) match {
    case (IntegerType | DateType, _: arrow.IntVector | _: arrow.DateDayVector) =>
      Some((to, count) => to.putIntsLittleEndian(0, count, bytes(vector, count * 4), 0))
    case (LongType | TimestampType | TimestampNTZType, _: arrow.BigIntVector | _: arrow.TimeStampMicroTZVector | _: arrow.TimeStampMicroVector) =>
      Some((to, count) => to.putLongsLittleEndian(0, count, bytes(vector, count * 8), 0))
    case (FloatType, _: arrow.Float4Vector) =>
      Some((to, count) => to.putFloatsLittleEndian(0, count, bytes(vector, count * 4), 0))
    case (DoubleType, _: arrow.Float8Vector) =>
      Some((to, count) => to.putDoublesLittleEndian(0, count, bytes(vector, count * 8), 0))
    case (BooleanType, bits: arrow.BitVector) =>
      Some((to, count) => (0 until count).foreach(row => to.putBoolean(row, !bits.isNull(row) && bits.get(row) != 0)))
    case (decimal: DecimalType, _: arrow.DecimalVector) if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
      Some((to, count) => copyDecimals(vector.getDataBuffer, to, count, decimal.precision <= Decimal.MAX_INT_DIGITS))
    case (_: StringType | BinaryType, texts: arrow.BaseVariableWidthVector) => Some((to, count) => copyTexts(texts, to, count))
    case _ => None
  }

  private def bytes(vector: arrow.ValueVector, length: Int): Array[Byte] = bytes(vector.getDataBuffer, length)

  private def bytes(buffer: ArrowBuf, length: Int): Array[Byte] = {
    val found = new Array[Byte](length)
    if (length > 0) buffer.getBytes(0, found)
    found
  }

  /** Few digits fill only the lower half of Arrow's sixteen bytes, or a quarter. */
  private def copyDecimals(from: ArrowBuf, to: WritableColumnVector, count: Int, short: Boolean): Unit = {
    var row = 0
    while (row < count) {
      val unscaled = from.getLong(row.toLong * DecimalBytes)
      if (short) to.putInt(row, unscaled.toInt) else to.putLong(row, unscaled)
      row += 1
    }
  }

  private def copyTexts(from: arrow.BaseVariableWidthVector, to: WritableColumnVector, count: Int): Unit = {
    val offsets = from.getOffsetBuffer
    val first = offsets.getInt(0)
    val size = offsets.getInt(count.toLong * 4) - first
    val data = to.arrayData()
    val content = new Array[Byte](size)
    if (size > 0) from.getDataBuffer.getBytes(first.toLong, content)
    data.reserve(size)
    data.putBytes(0, size, content, 0)
    var row = 0
    var start = 0
    while (row < count) {
      val end = offsets.getInt((row + 1L) * 4) - first
      to.putArray(row, start, end - start)
      start = end
      row += 1
    }
  }
}
