package drawstring.bridge

import scala.util.control.NonFatal

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A merged slice of a row, read while nobody waits: the JVM loads Arrow and the readers at their first use. */
object WarmUp {

  /** Reads it from an idle worker and tells how many rows came. What goes wrong here is told when a query reads. */
  def run(settings: WorkerSettings): Int =
    try WorkerCall.startIdle(settings, Wire.seal(Wire.obj().put("kind", "warm_up"))).fold(0)(read)
    catch { case NonFatal(_) => -1 }

  private def read(call: WorkerCall): Int = {
    val reader = new MergedReader(NoRows, call, MergedShape(positioned = false, showsPositions = false, appends = true), new ReadCounts)
    var rows = 0
    try while (reader.next()) rows += reader.get().numRows()
    finally reader.close()
    rows
  }

  private object NoRows extends PartitionReader[ColumnarBatch] {
    override def next(): Boolean = false

    override def get(): ColumnarBatch = throw new NoSuchElementException

    override def close(): Unit = ()
  }
}
