package drawstring.bridge

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.random.BernoulliCellSampler

/** A part of the rows, each chosen by itself: those whose random number lies between the bounds. */
case class Sample(lower: Double, upper: Double, seed: Long) {

  def share: Double = math.max(0.0, upper - lower)

  /** `reader` of one partition, cut to the rows that Spark would choose of it. */
  def over(reader: PartitionReader[ColumnarBatch], partition: Int): PartitionReader[ColumnarBatch] = {
    val sampler = new BernoulliCellSampler[Int](lower, upper)
    sampler.setSeed(seed + partition)
    new SampledReader(reader, () => sampler.sample() > 0)
  }
}

class SampledReader(reader: PartitionReader[ColumnarBatch], isChosen: () => Boolean) extends PartitionReader[ColumnarBatch] {
  private var current: ColumnarBatch = _

  override def next(): Boolean = {
    while (reader.next()) {
      current = chosen(reader.get())
      if (current.numRows() > 0) return true
    }
    false
  }

  override def get(): ColumnarBatch = current

  override def close(): Unit = reader.close()

  override def currentMetricsValues() = reader.currentMetricsValues()

  private def chosen(batch: ColumnarBatch): ColumnarBatch = {
    val rows = new Array[Int](batch.numRows())
    var found = 0
    var row = 0
    while (row < batch.numRows()) {
      if (isChosen()) { rows(found) = row; found += 1 }
      row += 1
    }
    SelectedVector.batch(Array.tabulate(batch.numCols())(batch.column), rows, found)
  }
}
