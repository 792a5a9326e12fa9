package drawstring.bridge

import java.util.BitSet

import scala.util.control.NonFatal

import org.apache.arrow.memory.BufferAllocator
import org.apache.arrow.vector.ValueVector
import org.apache.arrow.vector.ipc.ArrowStreamReader
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** A plain base file; a failure to open or to read it names the file.
  *
  * So does a lack of memory: left alone it would end the executor, and in local mode the driver.
  */
class GuardedReader(file: PartitionedFile, root: String, open: () => PartitionReader[ColumnarBatch])
    extends PartitionReader[ColumnarBatch] {
  private val reader = guarded(open())

  override def next(): Boolean = guarded(reader.next())

  override def get(): ColumnarBatch = reader.get()

  override def close(): Unit = reader.close()

  private def guarded[T](work: => T): T =
    try work
    catch {
      case error: DrawstringBridgeException => throw error
      case error: OutOfMemoryError => throw BridgeErrors.unreadableFile(file.toPath, root, error)
      case NonFatal(error) if !Thread.currentThread().isInterrupted =>
        throw BridgeErrors.unreadableFile(file.toPath, root, error)
    }
}

/** A slice that a Python worker reads as a whole. */
class ArrowReader(call: WorkerCall) extends PartitionReader[ColumnarBatch] {
  private val batches = new ArrowBatches(call)

  override def next(): Boolean = batches.next()

  override def get(): ColumnarBatch = batches.get

  override def close(): Unit = batches.close()
}

/** A merged slice whose rows are only counted: the merge plan knows how many there are. */
class CountedReader(call: WorkerCall, counts: ReadCounts) extends PartitionReader[ColumnarBatch] {
  private lazy val plan = call.hiddenRows()
  private lazy val appended = new ArrowBatches(call)
  private var inBase = true
  private var current: ColumnarBatch = _

  override def next(): Boolean = {
    if (inBase) {
      val visible = plan.visible
      inBase = false
      current = new ColumnarBatch(Array.empty[ColumnVector], visible)
      if (visible > 0) return true
    }
    val more = appended.next()
    if (more) {
      current = appended.get
      counts.merged(current.numRows())
    }
    more
  }

  override def get(): ColumnarBatch = current

  override def close(): Unit = if (inBase) call.close() else appended.close()
}

/** Which rows of a base file are hidden, of how many. */
class HiddenRows(val count: Long, bits: Array[Byte]) {
  private val hidden = BitSet.valueOf(bits)

  def visible: Int = java.lang.Math.toIntExact(count - hidden.cardinality())

  /** Which of `count` rows from `first` on are visible, counted from `first`; null for all of them. */
  def visibleFrom(first: Int, count: Int): Array[Int] = {
    val end = first + count
    var next = hidden.nextSetBit(first)
    if (next < 0 || next >= end) return null
    val rows = new Array[Int](count)
    var found = 0
    var row = first
    while (row < end) {
      val stop = if (next < 0 || next > end) end else next
      while (row < stop) { rows(found) = row - first; found += 1; row += 1 }
      row += 1
      next = hidden.nextSetBit(row)
    }
    java.util.Arrays.copyOf(rows, found)
  }

  /** Which of `count` rows at these rising positions are visible; null for all of them. */
  def visibleAt(positions: ColumnVector, count: Int): Array[Int] =
    if (count == 0 || !meets(positions.getLong(0).toInt, positions.getLong(count - 1).toInt)) null
    else {
      val rows = new Array[Int](count)
      var found = 0
      var row = 0
      while (row < count) {
        if (!hidden.get(positions.getLong(row).toInt)) { rows(found) = row; found += 1 }
        row += 1
      }
      if (found == count) null else java.util.Arrays.copyOf(rows, found)
    }

  private def meets(first: Int, last: Int): Boolean = {
    val next = hidden.nextSetBit(first)
    next >= 0 && next <= last
  }
}

/** How a merged slice is read.
  *
  * With `positioned` the last column of the base's batches is the row's position in the file; else they come
  * without gaps from the file's first row on. `showsPositions` keeps that column; rows that logs `append` have none.
  */
case class MergedShape(positioned: Boolean, showsPositions: Boolean, appends: Boolean)

/** A base file without the rows that its logs supersede, then the log records that win. */
class MergedReader(base: PartitionReader[ColumnarBatch], call: WorkerCall, shape: MergedShape, counts: ReadCounts)
    extends PartitionReader[ColumnarBatch] {
  private lazy val hidden = call.hiddenRows()
  private lazy val appended = new ArrowBatches(call)
  private val copies = new AppendedRows
  private var inBase = true
  private var read = 0
  private var current: ColumnarBatch = _

  override def next(): Boolean = {
    while (inBase) {
      if (!base.next()) inBase = false
      else if (showVisible(base.get())) return true
    }
    val more = shape.appends && appended.next()
    if (more) {
      current = SelectedVector.all(withoutPositions(copied(appended.get), appended.get.numRows()), appended.get.numRows())
      counts.merged(current.numRows())
    }
    more
  }

  override def get(): ColumnarBatch = current

  override def close(): Unit =
    try base.close()
    finally if (inBase || !shape.appends) call.close() else appended.close()

  private def withoutPositions(columns: Array[ColumnVector], rows: Int): Array[ColumnVector] =
    if (shape.showsPositions) columns :+ HiddenColumnsReader.noPositions(rows) else columns

  private def copied(batch: ColumnarBatch): Array[ColumnVector] = copies.copied(columnsOf(batch), batch.numRows())

  /** Sets `current` to the visible rows of `batch`; false when none is left. */
  private def showVisible(batch: ColumnarBatch): Boolean = {
    val columns = columnsOf(batch).take(if (shape.positioned && !shape.showsPositions) batch.numCols() - 1 else batch.numCols())
    val rows = visibleRows(batch)
    current =
      if (rows == null) SelectedVector.all(columns, batch.numRows()) else SelectedVector.batch(columns, rows, rows.length)
    current.numRows() > 0
  }

  private def columnsOf(batch: ColumnarBatch): Array[ColumnVector] = Array.tabulate(batch.numCols())(batch.column)

  /** The rows to keep, or null for all of them. */
  private def visibleRows(batch: ColumnarBatch): Array[Int] = {
    val count = batch.numRows()
    val first = read
    read += count
    if (shape.positioned) hidden.visibleAt(batch.column(batch.numCols() - 1), count) else hidden.visibleFrom(first, count)
  }
}

/** An Arrow vector that belongs to its stream: Spark closes vectors after each batch, the stream fills them again. */
class BorrowedVector(vector: ValueVector) extends ArrowColumnVector(vector) {
  override def close(): Unit = ()
}

/** The Arrow stream of a worker's answer as Spark batches; a batch is valid until the next is asked for. */
class ArrowBatches(call: WorkerCall) {
  private val allocator: BufferAllocator = SparkAccess.newAllocator("drawstring reader")
  private lazy val stream = new ArrowStreamReader(call.arrow(), allocator)
  private var opened = false
  private var current: ColumnarBatch = _

  def next(): Boolean = {
    opened = true
    while (stream.loadNextBatch()) {
      val root = stream.getVectorSchemaRoot
      if (root.getRowCount > 0) {
        val columns = new Array[ColumnVector](root.getFieldVectors.size)
        columns.indices.foreach(i => columns(i) = new BorrowedVector(root.getFieldVectors.get(i)))
        current = new ColumnarBatch(columns, root.getRowCount)
        return true
      }
    }
    false
  }

  def get: ColumnarBatch = current

  def close(): Unit =
    try if (opened) stream.close(false)
    finally
      try call.close()
      finally allocator.close()
}
