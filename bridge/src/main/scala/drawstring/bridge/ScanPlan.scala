package drawstring.bridge

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode

/** How one file slice is read; `context` and `payload` are for the Python worker alone.
  *
  * `projection` says how the base file comes to the table's schema; None when it has it, or lacks columns at most.
  * `constants` are values of columns that rows show whatever the base file holds, `hidden` those of metadata columns,
  * as JSON. `key` is what all of its rows have in common, where that was asked for.
  */
case class SliceTask(
    mode: String,
    path: String,
    size: Long,
    bytes: Long,
    rows: Option[Long],
    context: String,
    payload: String,
    projection: Option[FileProjection],
    constants: Option[Constants] = None,
    hidden: Option[String] = None,
    key: Option[JsonNode] = None
) extends Serializable {
  def isNative: Boolean = mode == SliceTask.Native

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
    estimatedRows: Option[Long],
    bytes: Long,
    files: Long,
    skipped: Map[String, Long],
    planningMillis: Long
) {

  /** Slices skipped for one of the reasons. */
  def skippedBy(reasons: String*): Long = reasons.map(skipped.getOrElse(_, 0L)).sum

  def projections: Seq[FileProjection] = tasks.flatMap(_.projection).distinct

  def constantColumns: Set[String] = tasks.flatMap(_.constants).distinct.flatMap(_.columns).toSet
}

object ScanPlan {
  val empty: ScanPlan = ScanPlan(Nil, Some(0L), Some(0L), 0L, 0L, Map.empty, 0L)

  def fromWire(node: JsonNode): ScanPlan = {
    val contexts = node.get("contexts").elements().asScala.map(Wire.text).toVector
    val projections = node.get("projections").elements().asScala.map(p => FileProjection(Wire.text(p))).toVector
    val constants = node.get("constants").elements().asScala.map(c => Constants(Wire.text(c))).toVector
    ScanPlan(
      node.get("tasks").elements().asScala.map(task(_, contexts, projections, constants)).toVector,
      Wire.optionalLong(node.get("rows")),
      Wire.optionalLong(node.get("estimated_rows")),
      node.get("bytes").asLong,
      node.get("files").asLong,
      node.get("skipped").fields().asScala.map(entry => entry.getKey -> entry.getValue.asLong).toMap,
      node.get("planning_ms").asLong
    )
  }

  private def present(node: JsonNode): Option[JsonNode] = Option(node).filterNot(_.isNull)

  private def task(
      node: JsonNode,
      contexts: Vector[String],
      projections: Vector[FileProjection],
      constants: Vector[Constants]
  ): SliceTask = {
    val context = node.get("context").asInt
    SliceTask(
      node.get("mode").asText,
      node.get("path").asText,
      node.get("size").asLong,
      node.get("bytes").asLong,
      Wire.optionalLong(node.get("rows")),
      if (context < 0) "null" else contexts(context),
      Wire.text(node.get("payload")),
      projections.lift(node.get("projection").asInt),
      constants.lift(node.get("constants").asInt),
      present(node.get("hidden")).map(Wire.text),
      present(node.get("key"))
    )
  }
}
