package drawstring.bridge

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import com.fasterxml.jackson.databind.util.RawValue

import scala.collection.JavaConverters._

/** Messages to and from the planner: JSON objects that carry the version of the protocol. */
object Wire {
  val version = 1
  private val mapper = new ObjectMapper()

  def obj(): ObjectNode = mapper.createObjectNode()

  def arr(): ArrayNode = mapper.createArrayNode()

  def parse(text: String): JsonNode = mapper.readTree(text)

  def raw(json: String): RawValue = new RawValue(json)

  def text(node: JsonNode): String = mapper.writeValueAsString(node)

  def seal(message: ObjectNode): String = text(message.put("version", version))

  /** The planner's answer as an object, or the error that it stands for. */
  def answer(kind: String, reply: String): JsonNode = {
    val node = parse(reply)
    if (node.path("version").asInt(-1) != version) throw BridgeErrors.wrongVersion(kind, node.path("version").asText)
    if (node.has("error")) throw BridgeErrors.fromWire(node.get("error"))
    node
  }

  def strings(node: JsonNode): Seq[String] = node.elements().asScala.map(_.asText).toList

  def stringMap(node: JsonNode): Map[String, String] =
    node.fields().asScala.map(e => e.getKey -> e.getValue.asText).toMap

  def putMap(target: ObjectNode, name: String, values: Iterable[(String, String)]): ObjectNode = {
    val node = target.putObject(name)
    values.toSeq.sortBy(_._1).foreach { case (key, value) => node.put(key, value) }
    target
  }

  def putStrings(target: ObjectNode, name: String, values: Seq[String]): ObjectNode = {
    val array = target.putArray(name)
    values.foreach(value => array.add(value))
    target
  }

  def putAll(target: ObjectNode, name: String, values: Seq[JsonNode]): ObjectNode = {
    val array = target.putArray(name)
    values.foreach(value => array.add(value))
    target
  }

  def optionalLong(node: JsonNode): Option[Long] = if (node != null && node.isIntegralNumber) Some(node.asLong) else None
}
