package drawstring.bridge

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode

/** How one file slice is read; `context` and `payload` are for the Python worker alone. A base file that is not `exact`
  * may have an older schema than the table.
  */
case class SliceTask(
    mode: String,
    path: String,
    size: Long,
    bytes: Long,
    rows: Option[Long],
    context: String,
    payload: String,
    exact: Boolean
) extends Serializable {
  def isNative: Boolean = mode == SliceTask.Native

  /** Whether parts of the file can be read apart; a file that may turn out to need a worker cannot. */
  def isSplittable: Boolean = isNative && exact

  def isMerge: Boolean = mode == SliceTask.Merge
}

object SliceTask {
  val Native = "native"
  val Merge = "merge"
  val Arrow = "arrow"
}

/** The planner's answer to a scan: the slices to read, and what was skipped on the way. */
case class ScanPlan(
    tasks: Seq[SliceTask],
    rows: Option[Long],
    bytes: Long,
    files: Long,
    skippedByPartition: Long,
    skippedByStatistics: Long,
    planningMillis: Long
)

object ScanPlan {

  def fromWire(node: JsonNode): ScanPlan = {
    val contexts = node.get("contexts").elements().asScala.map(Wire.text).toVector
    ScanPlan(
      node.get("tasks").elements().asScala.map(task(_, contexts)).toVector,
      Wire.optionalLong(node.get("rows")),
      node.get("bytes").asLong,
      node.get("files").asLong,
      node.get("skipped_by_partition").asLong,
      node.get("skipped_by_statistics").asLong,
      node.get("planning_ms").asLong
    )
  }

  private def task(node: JsonNode, contexts: Vector[String]): SliceTask = {
    val context = node.get("context").asInt
    SliceTask(
      node.get("mode").asText,
      node.get("path").asText,
      node.get("size").asLong,
      node.get("bytes").asLong,
      Wire.optionalLong(node.get("rows")),
      if (context < 0) "null" else contexts(context),
      Wire.text(node.get("payload")),
      node.get("exact").asBoolean
    )
  }
}
