package drawstring.bridge

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.{ParquetReadSupport, ParquetToSparkSchemaConverter}
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

/** Reads a file of an older schema: columns whose type was widened since are read under the file's type, `found`, and
  * cast as they are looked at. Columns the file lacks come out null without help.
  */
class Widening(found: Map[String, DataType]) {

  /** The factory for this file; filters on widened columns stay away from it, their literals have the wider type. */
  def adapt(factory: ParquetPartitionReaderFactory): ParquetPartitionReaderFactory =
    if (found.isEmpty) factory
    else {
      val schema = StructType(factory.readDataSchema.map(f => found.get(f.name).fold(f)(t => f.copy(dataType = t))))
      val conf = new Configuration(factory.broadcastedConf.value.value)
      conf.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, schema.json)
      factory.copy(
        broadcastedConf = new LocalBroadcast(new SerializableConfiguration(conf)),
        readDataSchema = schema,
        filters = factory.filters.filterNot(_.references.exists(name => found.contains(name.split('.').head)))
      )
    }

  /** A reader of this file that gives batches of `wanted`. */
  def wrap(reader: PartitionReader[ColumnarBatch], wanted: StructType): PartitionReader[ColumnarBatch] =
    if (found.isEmpty) reader else new WideningReader(reader, wanted, found)
}

object Widening {
  val none = new Widening(Map.empty)
  private val wider: Map[DataType, Set[DataType]] = Map(
    IntegerType -> Set(LongType, FloatType, DoubleType),
    LongType -> Set(FloatType, DoubleType),
    FloatType -> Set(DoubleType)
  )

  /** How to read `file` under `schema`; None when it takes more than widening numbers. */
  def of(file: PartitionedFile, schema: StructType, conf: Configuration): Option[Widening] = {
    val columns = fileSchema(file, conf)
    val pairs = schema.flatMap(field => columns.filter(_.name.equalsIgnoreCase(field.name)).map(field -> _))
    val changed = pairs.filterNot { case (field, found) => found.name == field.name && same(field.dataType, found.dataType) }
    if (changed.forall { case (field, found) => found.name == field.name && widens(found.dataType, field.dataType) })
      Some(new Widening(changed.map { case (field, found) => field.name -> found.dataType }.toMap))
    else None
  }

  private def widens(from: DataType, to: DataType): Boolean = wider.get(from).exists(_.contains(to))

  /** Whether Spark's reader finds all of `wanted` in `found` as it is; nullability aside, and fields may be left out. */
  private def same(wanted: DataType, found: DataType): Boolean = (wanted, found) match {
    case (StructType(w), StructType(f)) => w.forall(a => f.exists(b => a.name == b.name && same(a.dataType, b.dataType)))
    case (ArrayType(w, _), ArrayType(f, _)) => same(w, f)
    case (MapType(wk, wv, _), MapType(fk, fv, _)) => same(wk, fk) && same(wv, fv)
    case _ => wanted == found
  }

  private def fileSchema(file: PartitionedFile, conf: Configuration): StructType = {
    val options = HadoopReadOptions.builder(conf, file.toPath).build()
    val reader =
      try ParquetFileReader.open(HadoopInputFile.fromPath(file.toPath, conf), options)
      catch { case error: Exception => throw BridgeErrors.unreadableFile(file.filePath.toString, error) }
    try new ParquetToSparkSchemaConverter(conf).convert(reader.getFooter.getFileMetaData.getSchema)
    finally reader.close()
  }
}

/** A value that is here already, where Spark's reader wants a broadcast. */
class LocalBroadcast(here: SerializableConfiguration) extends Broadcast[SerializableConfiguration](-1L) {
  override protected def getValue(): SerializableConfiguration = here

  override protected def doUnpersist(blocking: Boolean): Unit = ()

  override protected def doDestroy(blocking: Boolean): Unit = ()
}

/** Batches whose widened columns are cast lazily. */
class WideningReader(reader: PartitionReader[ColumnarBatch], wanted: StructType, found: Map[String, DataType])
    extends PartitionReader[ColumnarBatch] {
  private var source: ColumnarBatch = _
  private var current: ColumnarBatch = _

  override def next(): Boolean = reader.next()

  /** The reader fills the same vectors again for each batch, so that they are wrapped once. */
  override def get(): ColumnarBatch = {
    val batch = reader.get()
    if (batch ne source) {
      source = batch
      current = new ColumnarBatch((0 until batch.numCols()).map(i => widened(i, batch.column(i))).toArray)
    }
    current.setNumRows(batch.numRows())
    current
  }

  override def close(): Unit = reader.close()

  private def widened(index: Int, vector: ColumnVector): ColumnVector =
    if (found.contains(wanted(index).name)) new WidenedVector(vector, wanted(index).dataType) else vector
}

/** A column of numbers under a wider type; a float becomes the double with the same decimal text, as in Hudi. */
class WidenedVector(vector: ColumnVector, wanted: DataType) extends ColumnVector(wanted) {
  private val from = vector.dataType()

  override def close(): Unit = ()

  override def hasNull: Boolean = vector.hasNull

  override def numNulls(): Int = vector.numNulls()

  override def isNullAt(row: Int): Boolean = vector.isNullAt(row)

  override def getLong(row: Int): Long = if (from == IntegerType) vector.getInt(row).toLong else vector.getLong(row)

  override def getFloat(row: Int): Float =
    if (from == IntegerType) vector.getInt(row).toFloat else vector.getLong(row).toFloat

  override def getDouble(row: Int): Double =
    if (from == IntegerType) vector.getInt(row).toDouble
    else if (from == LongType) vector.getLong(row).toDouble
    else WidenedVector.toDouble(vector.getFloat(row))

  override def getInt(row: Int): Int = vector.getInt(row)

  override def getBoolean(row: Int): Boolean = vector.getBoolean(row)

  override def getByte(row: Int): Byte = vector.getByte(row)

  override def getShort(row: Int): Short = vector.getShort(row)

  override def getArray(row: Int): ColumnarArray = vector.getArray(row)

  override def getMap(row: Int): ColumnarMap = vector.getMap(row)

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = vector.getDecimal(row, precision, scale)

  override def getUTF8String(row: Int): UTF8String = vector.getUTF8String(row)

  override def getBinary(row: Int): Array[Byte] = vector.getBinary(row)

  override def getChild(ordinal: Int): ColumnVector = vector.getChild(ordinal)
}

object WidenedVector {

  /** Whole numbers have the same text either way, which spares most columns the detour. */
  def toDouble(value: Float): Double =
    if (value == value.toInt && math.abs(value) < (1 << 24) && value != 0f) value.toDouble
    else if (value.isNaN || value.isInfinite) value.toDouble
    else java.lang.Double.parseDouble(java.lang.Float.toString(value))
}
