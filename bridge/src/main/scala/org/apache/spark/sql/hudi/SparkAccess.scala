package org.apache.spark.sql.hudi

import java.io.File

import org.apache.arrow.memory.BufferAllocator
import org.apache.spark.SparkEnv
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy
import org.apache.spark.sql.internal.connector.PredicateUtils
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.util.Utils

/** The few things of Spark that only its own packages may touch. */
object SparkAccess {

  def newAllocator(name: String): BufferAllocator = ArrowUtils.rootAllocator.newChildAllocator(name, 0, Long.MaxValue)

  def toV1Filter(predicate: Predicate): Option[Filter] = PredicateUtils.toV1(predicate)

  /** None also where Spark fails over a condition: over NULL within AND, OR and NOT. */
  def toV2Predicate(expression: Expression): Option[Predicate] =
    try DataSourceV2Strategy.translateFilterV2(expression)
    catch { case _: AssertionError => None }

  @volatile private var scratch: File = _

  /** A folder of this executor, gone with its JVM; a context that stops takes it along, and the next gets another. */
  def scratchFolder: String = synchronized {
    if (scratch == null || !scratch.isDirectory)
      scratch = Utils.createTempDir(Utils.getLocalDir(SparkEnv.get.conf), "drawstring")
    scratch.getAbsolutePath
  }

  def parallelism(spark: SparkSession): Int = spark.sparkContext.defaultParallelism

  def showInputFile(path: String, start: Long, length: Long): Unit = InputFileBlockHolder.set(path, start, length)

  def hideInputFile(): Unit = InputFileBlockHolder.unset()
}
