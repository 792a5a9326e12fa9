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

/** A plain base file; a failure to open or to read it names the file. */
class GuardedReader(file: PartitionedFile, open: () => PartitionReader[ColumnarBatch]) extends PartitionReader[ColumnarBatch] {
  private val reader = guarded(open())

  override def next(): Boolean = guarded(reader.next())

  override def get(): ColumnarBatch = reader.get()

  override def close(): Unit = reader.close()

  private def guarded[T](work: => T): T =
    try work
    catch {
      case error: DrawstringBridgeException => throw error
      case NonFatal(error) if !Thread.currentThread().isInterrupted =>
        throw BridgeErrors.unreadableFile(file.filePath.toString, error)
    }
}

/** A slice that a Python worker reads as a whole. */
class ArrowReader(call: WorkerCall) extends PartitionReader[ColumnarBatch] {
  private val batches = new ArrowBatches(call)

  override def next(): Boolean = batches.next()

  override def get(): ColumnarBatch = batches.get

  override def close(): Unit = batches.close()
}

/** A base file without the rows that its logs supersede, then the log records that win.
  *
  * The last column of the base's batches is the row's position in the file.
  */
class MergedReader(base: PartitionReader[ColumnarBatch], call: WorkerCall) extends PartitionReader[ColumnarBatch] {
  private lazy val hidden = BitSet.valueOf(call.bitmap())
  private lazy val appended = new ArrowBatches(call)
  private var inBase = true
  private var current: ColumnarBatch = _

  override def next(): Boolean = {
    while (inBase) {
      if (!base.next()) inBase = false
      else if (showVisible(base.get())) return true
    }
    val more = appended.next()
    if (more) current = appended.get
    more
  }

  override def get(): ColumnarBatch = current

  override def close(): Unit =
    try base.close()
    finally if (inBase) call.close() else appended.close()

  /** Sets `current` to the visible rows of `batch`; false when none is left. */
  private def showVisible(batch: ColumnarBatch): Boolean = {
    val columns = (0 until batch.numCols() - 1).map(batch.column).toArray
    val rows = visibleRows(batch.column(batch.numCols() - 1), batch.numRows())
    current =
      if (rows == null) new ColumnarBatch(columns, batch.numRows())
      else new ColumnarBatch(columns.map(new SelectedVector(_, rows): ColumnVector), rows.length)
    current.numRows() > 0
  }

  /** The rows to keep, or null for all of them. */
  private def visibleRows(positions: ColumnVector, count: Int): Array[Int] = {
    val next = if (count == 0) -1 else hidden.nextSetBit(positions.getLong(0).toInt)
    if (next < 0 || next > positions.getLong(count - 1)) null
    else {
      val rows = new Array[Int](count)
      var kept = 0
      var row = 0
      while (row < count) {
        if (!hidden.get(positions.getLong(row).toInt)) { rows(kept) = row; kept += 1 }
        row += 1
      }
      if (kept == count) null else java.util.Arrays.copyOf(rows, kept)
    }
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
