package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode

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

  def make(errorClass: String, condition: String, message: String): DrawstringBridgeException = {
    val error = Wire.obj().put("class", errorClass).put("condition", condition).put("message", message)
    error.putObject("fields")
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
    "PATH_REQUIRED",
    "No path given. Pass the table's folder: spark.read.format(\"hudi\").load(path), or the option 'path'."
  )
}
