package org.apache.spark.sql.hudi.catalog

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.LogicalRDD

/** The session as the class that has the catalog and the caches. */
private[sql] object Sessions {
  type Classic = ClassicSession

  def classic(spark: SparkSession): Classic = spark.asInstanceOf[Classic]

  def active: Classic = classic(SparkSession.active)

  /** A batch of a stream as rows that any query may be made of: Spark's own plan of it must run as it is. */
  def batchRows(data: DataFrame): DataFrame = {
    val batch = data.asInstanceOf[Dataset[_]]
    Dataset.ofRows(batch.sparkSession, LogicalRDD.fromDataset(batch.queryExecution.toRdd, batch, isStreaming = false))
  }
}
