package org.apache.spark.sql.hudi.catalog

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.util.LongAccumulator

/** Rows that are collected only if they are few: no pass over them need tell so before.
  *
  * `rows` has all rows of a task up to its share of the bytes; once they were collected, `areAll` tells whether any
  * task had more.
  */
class FewRows(data: DataFrame, mostBytes: Long) {
  private val cut = data.sparkSession.sparkContext.longAccumulator

  val rows: DataFrame = Sessions.changedRows(data, FewRows.bounded(_, mostBytes, cut))

  def areAll: Boolean = cut.isZero
}

object FewRows {

  /** Whether the rows can be begun and begun anew for little: nothing stands before the first of them but a scan. */
  def startAtOnce(data: DataFrame): Boolean = !Sessions.plan(data).exists {
    case _: ProjectExec | _: FilterExec | _: UnionExec | _: ColumnarToRowExec => false
    case _: WholeStageCodegenExec | _: InputAdapter => false
    case _: RangeExec | _: LocalTableScanExec | _: FileSourceScanExec | _: BatchScanExec => false
    case _ => true
  }

  private def bounded(rows: RDD[InternalRow], mostBytes: Long, cut: LongAccumulator): RDD[InternalRow] = {
    // Rows are seldom spread evenly.
    val share = 2 * mostBytes / math.max(1, rows.getNumPartitions)
    rows.mapPartitions(new FirstRows(_, share, cut))
  }
}

private class FirstRows(rows: Iterator[InternalRow], share: Long, cut: LongAccumulator) extends Iterator[InternalRow] {
  private var left = share

  override def hasNext: Boolean = rows.hasNext && {
    if (left <= 0 && cut.isZero) cut.add(1)
    left > 0
  }

  override def next(): InternalRow = {
    val row = rows.next()
    left -= row.asInstanceOf[UnsafeRow].getSizeInBytes
    row
  }
}
