package org.apache.spark.sql.hudi.catalog

import org.apache.spark.sql.SparkSession

/** The session as the class that has the catalog and the caches. */
private[sql] object Sessions {
  type Classic = SparkSession

  def classic(spark: SparkSession): Classic = spark

  def active: Classic = SparkSession.active
}
