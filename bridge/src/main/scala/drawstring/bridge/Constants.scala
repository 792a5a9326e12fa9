package drawstring.bridge

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.types.UTF8String

/** Values of columns that all rows of a file show, as the planner wrote them: JSON, by column. */
case class Constants(text: String) {

  def columns: Seq[String] = Wire.parse(text).fieldNames().asScala.toSeq

  /** The columns of `schema` that have one, with their positions; empty when the scan reads none of them. */
  def in(schema: StructType): Seq[(Int, DataType, JsonNode)] = {
    val values = Wire.parse(text)
    schema.fields.toSeq.zipWithIndex.collect { case (field, at) if values.has(field.name) => (at, field.dataType, values.get(field.name)) }
  }
}

object Constants {

  /** `reader` with the constants in place of what the file holds. */
  def over(reader: PartitionReader[ColumnarBatch], task: SliceTask, schema: StructType): PartitionReader[ColumnarBatch] = {
    val found = task.constants.map(_.in(schema)).getOrElse(Nil)
    if (found.isEmpty) reader else new ConstantsReader(reader, found)
  }

  def vector(rows: Int, dataType: DataType, value: JsonNode): ColumnVector =
    vector(rows, dataType, Values.fromWire(value, dataType))

  /** `value` as Spark keeps it. */
  def vector(rows: Int, dataType: DataType, value: Any): ColumnVector = {
    val made = new ConstantColumnVector(rows, dataType)
    if (value == null) made.setNull() else made.setNotNull()
    (value, dataType) match {
      case (null, _) =>
      case (found: Boolean, _) => made.setBoolean(found)
      case (found: Byte, _) => made.setByte(found)
      case (found: Short, _) => made.setShort(found)
      case (found: Int, _) => made.setInt(found)
      case (found: Long, _) => made.setLong(found)
      case (found: Float, _) => made.setFloat(found)
      case (found: Double, _) => made.setDouble(found)
      case (found: Decimal, decimal: DecimalType) => made.setDecimal(found, decimal.precision)
      case (found: UTF8String, _) => made.setUtf8String(found)
      case (_, other) => throw BridgeErrors.unknownCast("constant", "json", other.catalogString)
    }
    made
  }
}

class ConstantsReader(reader: PartitionReader[ColumnarBatch], constants: Seq[(Int, DataType, JsonNode)])
    extends PartitionReader[ColumnarBatch] {

  override def next(): Boolean = reader.next()

  override def get(): ColumnarBatch = {
    val batch = reader.get()
    val columns = (0 until batch.numCols()).map(batch.column).toArray
    constants.foreach { case (at, dataType, value) => columns(at) = Constants.vector(batch.numRows(), dataType, value) }
    new ColumnarBatch(columns, batch.numRows())
  }

  override def close(): Unit = reader.close()
}
