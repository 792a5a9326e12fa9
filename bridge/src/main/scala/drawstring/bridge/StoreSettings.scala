package drawstring.bridge

import scala.collection.JavaConverters._
import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileSystem
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.internal.SQLConf

/** Settings of stores, such as `fs.s3a.endpoint`: driver, workers and Spark's own reader go by the same ones. */
object StoreSettings {
  private val HadoopPrefix = "spark.hadoop."

  /** Tells the planner that Hadoop has no file system for the path, so that workers read every slice. */
  private val OnlyWorkers = "drawstring.store.only.workers"

  /** The settings of stores among others, by Hadoop's names. */
  def of(settings: Map[String, String]): Map[String, String] =
    settings.map { case (key, value) => key.stripPrefix(HadoopPrefix) -> value }.filter { case (key, _) => key.startsWith("fs.") }

  /** What the session says about the store of a path, and whether Hadoop knows it; nothing for local paths. */
  def ofSession(path: String, options: Map[String, String]): Map[String, String] = scheme(path) match {
    case None => Map.empty
    case Some(name) =>
      val hadoop = SparkSession.active.sparkContext.hadoopConfiguration
      val found = given(hadoop) ++ of(SQLConf.get.getAllConfs)
      val conf = new Configuration(hadoop)
      (found ++ of(options)).foreach { case (key, value) => conf.set(key, value) }
      if (Try(FileSystem.getFileSystemClass(name, conf)).isSuccess) found else found + (OnlyWorkers -> "true")
  }

  private def scheme(path: String): Option[String] = path.split("://", 2) match {
    case Array(name, _) if name != "file" && name != "memory" => Some(name)
    case _ => None
  }

  /** What somebody set: Hadoop's defaults are the other readers' too, or mean nothing to them. */
  private def given(conf: Configuration): Map[String, String] = conf.iterator().asScala
    .filter(entry => entry.getKey.startsWith("fs.") && !isDefault(conf, entry.getKey))
    .map(entry => entry.getKey -> conf.get(entry.getKey))
    .toMap

  private def isDefault(conf: Configuration, key: String): Boolean =
    Option(conf.getPropertySources(key)).exists(_.lastOption.exists(_.endsWith("-default.xml")))
}
