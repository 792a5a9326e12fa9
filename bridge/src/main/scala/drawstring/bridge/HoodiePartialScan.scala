package drawstring.bridge

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** An aggregation that metadata answers for a part of the slices: its rows, and those of the other slices.
  *
  * Spark adds up what a scan gives for each group, so a row of a slice stands for itself: it counts as one, and its
  * value is the least and the greatest.
  */
class HoodiePartialScan(
    spark: SparkSession,
    table: LoadedTable,
    request: ScanRequest,
    shape: PartialShape,
    answer: AggregationAnswer,
    filters: Vector[PushedFilter]
) extends Scan
    with Batch
    with SupportsReportStatistics {
  private val rest: ScanPlan = answer.rest.get

  override def readSchema(): StructType = shape.schema

  override def toBatch: Batch = this

  override def columnarSupportMode(): Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.SUPPORTED

  override def planInputPartitions(): Array[InputPartition] = {
    val share = ScanStatistics.share(shape.read, table.schema)
    val read = SplitPacking.pack(rest.tasks, SplitPacking.slots(spark), PackingRule(share, dividesMerged = false))
    val rows = HoodieLocalScan.rows(answer.rows, shape.schema).map(_.toArray).toArray
    (AnsweredPartition(rows) +: read).toArray
  }

  override def createReaderFactory(): PartitionReaderFactory =
    PartialReaderFactory(HoodieScan.slices(spark, table, shape.read, filters, rest, withPositions = false), shape)

  override def description(): String =
    s"hudi ${table.path} answered by metadata but for ${rest.tasks.size} file slices (${answer.reason}): ${shape.schema.catalogString}"

  /** A slice whose rows nobody counted is taken to have as many as its bytes would hold. */
  override def estimateStatistics(): Statistics = {
    val read = rest.rows.orElse(rest.estimatedRows).getOrElse(rest.bytes / (table.schema.defaultSize + 8L))
    AnswerStatistics(answer.rows.size() + math.max(1L, read), shape.schema)
  }

  override def supportedCustomMetrics(): Array[CustomMetric] = ScanMetrics.supported

  override def reportDriverMetrics(): Array[CustomTaskMetric] = ScanMetrics.of(rest, table)

  private def identity = (table.path, table.snapshot, request)

  override def equals(other: Any): Boolean = other match {
    case that: HoodiePartialScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}

/** The rows that metadata gave. */
case class AnsweredPartition(rows: Array[Array[Any]]) extends InputPartition

/** What a partial aggregation reads of a slice, and what it makes of each row: the place of a column, or a count. */
case class PartialShape(schema: StructType, read: StructType, places: Seq[PartialColumn])

/** A column of a partial aggregation: the values of the one at `place`, or what they count; none counts rows. */
case class PartialColumn(counts: Boolean, place: Option[Int])

object PartialShape {

  /** None where a field within a column is asked for. */
  def of(table: StructType, schema: StructType, aggregation: PushedAggregation): Option[PartialShape] = {
    val named = aggregation.aggregates.flatMap(_.column)
    if (named.exists(_.length != 1)) None
    else {
      val read = (aggregation.groupBy ++ named.map(_.head)).distinct
      val groups = aggregation.groupBy.map(name => PartialColumn(counts = false, Some(read.indexOf(name))))
      val values = aggregation.aggregates.map { each =>
        PartialColumn(each.function == "count", each.column.map(path => read.indexOf(path.head)))
      }
      Some(PartialShape(schema, StructType(read.map(table(_))), groups ++ values))
    }
  }
}

case class PartialReaderFactory(slices: SliceReaderFactory, shape: PartialShape) extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("drawstring reads columnar batches")

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = partition match {
    case AnsweredPartition(rows) => new AnsweredReader(rows.iterator, shape.schema)
    case HoodieInputPartition(_, splits) => new PartialReader(new ChainedReader(slices, splits.iterator), shape)
  }
}

/** Each row as a batch of its own; there are as many as groups. */
class AnsweredReader(rows: Iterator[Array[Any]], schema: StructType) extends PartitionReader[ColumnarBatch] {
  override def next(): Boolean = rows.hasNext

  override def get(): ColumnarBatch = {
    val columns = rows.next().zip(schema.fields).map { case (value, field) => Constants.vector(1, field.dataType, value) }
    new ColumnarBatch(columns, 1)
  }

  override def close(): Unit = ()
}

class PartialReader(reader: PartitionReader[ColumnarBatch], shape: PartialShape) extends PartitionReader[ColumnarBatch] {
  override def next(): Boolean = reader.next()

  override def get(): ColumnarBatch = {
    val batch = reader.get()
    // Rows of which nothing is read are one row that counts for all of them.
    if (shape.read.isEmpty) new ColumnarBatch(shape.places.map(_ => count(1, batch.numRows())).toArray, 1)
    else new ColumnarBatch(shape.places.map(column(_, batch)).toArray, batch.numRows())
  }

  override def close(): Unit = reader.close()

  override def currentMetricsValues(): Array[CustomTaskMetric] = reader.currentMetricsValues()

  private def column(wanted: PartialColumn, batch: ColumnarBatch): ColumnVector = (wanted.counts, wanted.place) match {
    case (false, place) => batch.column(place.get)
    case (true, None) => count(batch.numRows(), 1)
    case (true, Some(place)) => new PresenceVector(batch.column(place))
  }

  private def count(rows: Int, value: Long): ColumnVector = Constants.vector(rows, LongType, value: Any)
}

/** 1 where a column has a value, 0 where it is null. */
class PresenceVector(from: ColumnVector) extends CastVector(from, LongType) {
  override def hasNull: Boolean = false

  override def numNulls(): Int = 0

  override def isNullAt(row: Int): Boolean = false

  override def getLong(row: Int): Long = if (from.isNullAt(row)) 0L else 1L
}
