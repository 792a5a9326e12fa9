package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/** What the bridge asks the planner about one stream, which the planner knows by its name. */
class StreamQuestions(name: String) {

  def initial(): String = offset("stream_initial_offset", message)

  def newest(): String = offset("stream_newest_offset", message)

  /** As far as the table reached when it was last looked at. */
  def seen(): String = offset("stream_seen_offset", message)

  def next(start: String, limited: Boolean, waitedMillis: Option[Long], until: Option[String]): String = {
    val asked = message.put("start", start).put("limited", limited)
    waitedMillis.foreach(asked.put("waited_ms", _))
    until.foreach(asked.put("until", _))
    offset("stream_next_offset", asked)
  }

  def plan(start: String, end: String, filters: Seq[JsonNode]): ScanPlan = {
    val asked = message.put("start", start).put("end", end)
    val array = asked.putArray("filters")
    filters.foreach(array.add)
    ScanPlan.fromWire(Bridge.request("stream_plan_batch", asked))
  }

  def backlog(position: String): Map[String, String] =
    Wire.stringMap(Bridge.request("stream_backlog", message.put("position", position)).get("metrics"))

  def close(): Unit = if (Bridge.attached) Bridge.request("stream_close", message)

  private def message: ObjectNode = Wire.obj().put("stream", name)

  private def offset(kind: String, asked: ObjectNode): String = Bridge.request(kind, asked).get("offset").asText
}

object StreamQuestions {
  def open(table: LoadedTable): StreamQuestions = {
    val asked = Wire.obj()
    asked.set[ObjectNode]("table", table.reference)
    new StreamQuestions(Bridge.request("stream_open", asked).get("stream").asText)
  }
}
