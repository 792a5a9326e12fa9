package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** Columns that every table has beside its own; they are shown where a query names them.
  *
  * All but the position are the same for all rows of a slice, and come from the planner.
  */
object HiddenColumns {
  val Position = "_pos"

  private val columns = Seq(
    HiddenColumn("_file", StringType, "the base file of the row's slice, or its first log where it has none"),
    HiddenColumn(Position, LongType, "the row's position in its base file; null for rows that logs brought"),
    HiddenColumn("_partition", StringType, "the partition path"),
    HiddenColumn("_bucket", IntegerType, "the bucket that the file group's id names; null where there are no buckets"),
    HiddenColumn("_file_group_id", StringType, "the file group's id"),
    HiddenColumn("_instant", StringType, "the base instant of the row's slice")
  )

  /** Those that a table shows; its own columns come first. */
  def of(table: StructType): Seq[HiddenColumn] =
    columns.filterNot(column => table.fields.exists(_.name.equalsIgnoreCase(column.name)))

  /** The columns of a scan that are the table's own. */
  def without(schema: StructType, table: StructType): StructType = {
    val hidden = of(table).map(_.name).toSet
    StructType(schema.fields.filterNot(field => hidden(field.name)))
  }

  /** Names of the others. */
  def in(schema: StructType, table: StructType): Seq[String] = {
    val hidden = of(table).map(_.name).toSet
    schema.fieldNames.toSeq.filter(hidden)
  }
}

case class HiddenColumn(name: String, dataType: DataType, override val comment: String) extends MetadataColumn {
  override def isNullable: Boolean = true
}

/** The columns of `shown` over a reader of `own`, after which the position stands if it is asked for.
  *
  * Readers that know no positions give null for them.
  */
class HiddenColumnsReader(reader: PartitionReader[ColumnarBatch], shown: StructType, own: StructType, values: JsonNode)
    extends PartitionReader[ColumnarBatch] {
  private val places = shown.fields.map(field => own.fieldNames.indexOf(field.name))

  override def next(): Boolean = reader.next()

  override def get(): ColumnarBatch = {
    val batch = reader.get()
    val columns = shown.fields.zip(places).map {
      case (_, at) if at >= 0 => batch.column(at)
      case (field, _) if field.name == HiddenColumns.Position => positions(batch)
      case (field, _) => Constants.vector(batch.numRows(), field.dataType, values.get(field.name))
    }
    new ColumnarBatch(columns, batch.numRows())
  }

  override def close(): Unit = reader.close()

  private def positions(batch: ColumnarBatch): ColumnVector =
    if (batch.numCols() > own.length) batch.column(own.length) else HiddenColumnsReader.noPositions(batch.numRows())
}

object HiddenColumnsReader {

  def noPositions(rows: Int): ColumnVector = {
    val found = new ConstantColumnVector(math.max(1, rows), LongType)
    found.setNull()
    found
  }
}
