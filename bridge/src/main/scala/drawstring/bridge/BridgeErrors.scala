package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.Path

/** A drawstring error in the JVM. Its message ends with the error as JSON, which Python turns back into the class. */
class DrawstringBridgeException(val errorClass: String, val condition: String, text: String, val json: String)
    extends RuntimeException(s"[$condition] $text") {
  def wireJson: String = json
}

object BridgeErrors {

  def fromWire(error: JsonNode): DrawstringBridgeException = new DrawstringBridgeException(
    error.path("class").asText("DrawstringError"),
    error.path("condition").asText("DRAWSTRING_ERROR"),
    error.path("message").asText(),
    Wire.text(error)
  )

  def make(errorClass: String, condition: String, message: String, fields: (String, String)*): DrawstringBridgeException = {
    val error = Wire.obj().put("class", errorClass).put("condition", condition).put("message", message)
    val node = error.putObject("fields")
    fields.foreach { case (name, value) => node.put(name, value) }
    fromWire(error)
  }

  def notAttached(): DrawstringBridgeException = make(
    "BridgeError",
    "PLANNER_NOT_ATTACHED",
    "No drawstring planner is attached to this Spark application. Start the session with " +
      "drawstring.session(\"app\"), build it with drawstring.configure(SparkSession.builder).getOrCreate(), " +
      "or call drawstring.attach(spark) on the running one."
  )

  def wrongVersion(kind: String, found: String): DrawstringBridgeException = make(
    "BridgeError",
    "WIRE_VERSION_MISMATCH",
    s"The planner answered '$kind' in protocol version '$found', the bridge speaks ${Wire.version}. " +
      "The bridge jar and the Python package differ: restart the session with one drawstring version."
  )

  def missingPath(): DrawstringBridgeException = make(
    "InvalidOption",
    "PATH_MISSING",
    "No path given. Pass the table's folder: spark.read.format(\"hudi\").load(path), or the option 'path'.",
    "key" -> "path"
  )

  def severalPaths(paths: String): DrawstringBridgeException = make(
    "InvalidOption",
    "SEVERAL_PATHS",
    s"Several paths are given: $paths. A read takes the base path of one table: load each table by itself and join " +
      "them with DataFrame.unionByName, or load one table and filter it by its partition columns.",
    "key" -> "paths",
    "value" -> paths
  )

  def addedPartition(): DrawstringBridgeException = make(
    "UnsupportedTable",
    "ADD_PARTITION_UNSUPPORTED",
    "ALTER TABLE ... ADD PARTITION on a Hudi table is not supported: a partition appears with its first row. Insert one."
  )

  def invalidOption(key: String, value: String, allowed: String*): DrawstringBridgeException = {
    val error = Wire.obj().put("class", "InvalidOption").put("condition", "INVALID_OPTION_VALUE")
    error.put("message", s"Option $key has the value '$value'; expected one of ${allowed.mkString(", ")}.")
    val fields = error.putObject("fields").put("key", key).put("value", value)
    val words = fields.putArray("allowed")
    allowed.foreach(words.add(_: String))
    fromWire(error)
  }

  def unreadableFile(file: Path, root: String, cause: Throwable): DrawstringBridgeException = {
    val instant = file.getName.stripSuffix(".parquet").split('_').last
    val folder = file.getParent.toUri.getPath
    val partition = folder.stripPrefix(new Path(root).toUri.getPath).stripPrefix("/")
    val error = Wire.obj().put("class", "CorruptTable").put("condition", "UNREADABLE_BASE_FILE")
    error.put(
      "message",
      s"Cannot read base file $file (partition '$partition', instant $instant): ${reason(cause)}. Expected a whole " +
        "Parquet file; restore it or roll back its commit."
    )
    error.putObject("fields").put("file", file.toString).put("partition", partition).put("instant", instant)
    withCause(fromWire(error), cause)
  }

  /** A damaged page header can ask for any amount of memory; so can a file that is whole and large. */
  private def reason(cause: Throwable): String = cause match {
    case error: OutOfMemoryError =>
      s"it asks for more memory than the executor has ($error), because it is damaged or because " +
        "spark.executor.memory is small for it"
    case other => other.toString
  }

  def workerNotStarted(python: String, cause: Throwable): DrawstringBridgeException = withCause(
    make(
      "BridgeError",
      "WORKER_NOT_STARTED",
      s"Cannot start '$python' on an executor: ${cause.getMessage}. Set spark.pyspark.python to an interpreter that " +
        "exists on every executor and has pyarrow.",
      "python" -> python
    ),
    cause
  )

  def workerDied(ending: String, cause: Throwable): DrawstringBridgeException = withCause(
    make(
      "BridgeError",
      "WORKER_DIED",
      s"A drawstring worker beside the executor ended in the middle of its work ($ending). The executor's standard " +
        "error says why; an interpreter without pyarrow and too little memory are the usual causes."
    ),
    cause
  )

  def workerProtocol(kind: Char): DrawstringBridgeException =
    make(
      "BridgeError",
      "WORKER_PROTOCOL",
      s"A drawstring worker sent a frame '$kind' where it is not expected. The bridge jar and the executors' Python " +
        "package differ: restart the session with one drawstring version."
    )

  def unknownCast(kind: String, found: String, wanted: String): DrawstringBridgeException = make(
    "BridgeError",
    "UNKNOWN_CONVERSION",
    s"The planner asks for the conversion '$kind' from $found to $wanted, which the bridge does not know. " +
      "The bridge jar and the Python package differ: restart the session with one drawstring version."
  )

  private def withCause(error: DrawstringBridgeException, cause: Throwable): DrawstringBridgeException = {
    error.initCause(cause)
    error
  }

  def noV1Stream(): DrawstringBridgeException = make(
    "InvalidOption",
    "STREAM_NEEDS_V2",
    "Streams of Hudi tables are read through DataSource V2 only. Take hudi out of " +
      "spark.sql.streaming.disabledV2MicroBatchReaders."
  )

  def noCatalog(path: String): DrawstringBridgeException = make(
    "BridgeError",
    "CATALOG_NOT_CONFIGURED",
    s"Cannot insert into the Hudi table at $path by name: this session's spark_catalog does not know Hudi. Set " +
      "spark.sql.catalog.spark_catalog=org.apache.spark.sql.hudi.catalog.HoodieCatalog when the session starts " +
      "(drawstring.session does), or write by path: df.write.format(\"hudi\").mode(\"append\").save(path). " +
      "Nothing was written.",
    "path" -> path
  )
}
