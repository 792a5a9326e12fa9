package org.apache.spark.sql.hudi.catalog

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{LogicalRDD, SparkPlan}

/** The session as the class that has the catalog and the caches. */
private[sql] object Sessions {
  type Classic = SparkSession

  def classic(spark: SparkSession): Classic = spark

  def active: Classic = SparkSession.active

  /** A batch of a stream as rows that any query may be made of: Spark's own plan of it must run as it is. */
  def batchRows(data: DataFrame): DataFrame = changedRows(data, identity)

  /** The rows as `change` leaves them. */
  def changedRows(data: DataFrame, change: RDD[InternalRow] => RDD[InternalRow]): DataFrame = {
    val changed = change(data.queryExecution.toRdd)
    Dataset.ofRows(data.sparkSession, LogicalRDD.fromDataset(changed, data, isStreaming = false))
  }

  def plan(data: DataFrame): SparkPlan = data.queryExecution.executedPlan
}
