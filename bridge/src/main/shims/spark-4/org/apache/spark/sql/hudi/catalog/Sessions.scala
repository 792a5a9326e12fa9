package org.apache.spark.sql.hudi.catalog

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}

/** The session as the class that has the catalog and the caches. */
private[sql] object Sessions {
  type Classic = ClassicSession

  def classic(spark: SparkSession): Classic = spark.asInstanceOf[Classic]

  def active: Classic = classic(SparkSession.active)
}
