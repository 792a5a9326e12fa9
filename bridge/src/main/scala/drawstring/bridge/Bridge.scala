package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.{Dataset, Row}

/** The JVM's end of the connection to the planner; one per JVM. */
object Bridge {
  @volatile private var planner: Planner = _

  def attach(planner: Planner): Unit = this.planner = planner

  def detach(): Unit = planner = null

  def attached: Boolean = planner != null

  def request(kind: String, message: ObjectNode): JsonNode =
    Wire.answer(kind, current.request(kind, Wire.seal(message)))

  def write(data: Dataset[Row], message: ObjectNode): JsonNode =
    Wire.answer("write", current.write(data, Wire.seal(message)))

  private def current: Planner = Option(planner).getOrElse(throw BridgeErrors.notAttached())
}
