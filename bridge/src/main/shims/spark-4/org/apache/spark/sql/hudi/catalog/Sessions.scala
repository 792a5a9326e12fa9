package org.apache.spark.sql.hudi.catalog

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/** The session as the class that has the catalog and the caches. */
private[sql] object Sessions {
  type Classic = ClassicSession

  def classic(spark: SparkSession): Classic = spark.asInstanceOf[Classic]

  def active: Classic = classic(SparkSession.active)

  /** A batch of a stream as rows that any query may be made of: Spark's own plan of it must run as it is. */
  def batchRows(data: DataFrame): DataFrame = changedRows(data, identity)

  /** The rows as `change` leaves them. */
  def changedRows(data: DataFrame, change: RDD[InternalRow] => RDD[InternalRow]): DataFrame = {
    val rows = data.asInstanceOf[Dataset[_]]
    val changed = change(rows.queryExecution.toRdd)
    Dataset.ofRows(rows.sparkSession, LogicalRDD.fromDataset(changed, rows, isStreaming = false))
  }

  def plan(data: DataFrame): SparkPlan = data.asInstanceOf[Dataset[_]].queryExecution.executedPlan
}
