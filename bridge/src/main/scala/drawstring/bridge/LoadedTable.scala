package drawstring.bridge

import java.util.Locale

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

/** A table pinned to one snapshot, as the planner described it when it was loaded.
  *
  * `instant` is the newest that is seen, in digits of the timeline, 0 for none; `onlyStreams` says that batch reads are refused.
  * `snapshot` names everything that decides about rows; `session` and `timeline` only serve to open it again.
  */
case class LoadedTable(
    name: String,
    path: String,
    snapshot: String,
    schema: StructType,
    partitionColumns: Seq[String],
    properties: Map[String, String],
    useV2: Boolean,
    pushdowns: Set[String],
    options: Map[String, String],
    grouping: Option[Grouping],
    instant: Long,
    onlyStreams: Boolean
)(session: Map[String, String], timeline: String) {

  /** The same table, loaded again when options of one read ask for something else, such as another instant. */
  def withOptions(extra: Map[String, String]): LoadedTable = {
    val fresh = extra.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }.filter { case (k, v) =>
      k != "path" && k != "paths" && !options.get(k).contains(v)
    }
    if (fresh.isEmpty) this else LoadedTable.load(path, options ++ fresh, session)
  }

  /** The same snapshot, shown under the columns that a query was resolved with. */
  def withSchema(resolved: StructType): LoadedTable = copy(schema = resolved)(session, timeline)

  /** What was set for the store, by the session and by the read, under Hadoop's names. */
  def store: Map[String, String] = StoreSettings.of(session ++ options)

  /** Whether the options of the read leave a push-down on. */
  def pushes(pushdown: String): Boolean = pushdowns.contains(pushdown)

  def pushFilters(filters: Seq[JsonNode]): Seq[String] =
    Wire.strings(Bridge.request("push_filters", filterQuestion(filters)).get("classes"))

  def plan(request: ScanRequest): ScanPlan = ScanPlan.fromWire(Bridge.request("plan_scan", question(request)))

  /** The rows of an aggregation; None where metadata does not prove any. */
  def pushAggregation(request: ScanRequest): Option[AggregationAnswer] =
    AggregationAnswer.fromWire(Bridge.request("push_aggregation", question(request)))

  /** What is known of the request's columns over the slices that it selects. */
  def summariseColumns(request: ScanRequest): JsonNode =
    Bridge.request("summarise_columns", question(request)).get("columns")

  def filterQuestion(filters: Seq[JsonNode]): ObjectNode = Wire.putAll(about(), "filters", filters)

  def question(request: ScanRequest): ObjectNode = about().set[ObjectNode]("request", request.toWire)

  private def about(): ObjectNode = Wire.obj().set[ObjectNode]("table", reference)

  /** Refuses early what the planner would refuse when a batch read is planned. */
  def checkBatch(): Unit = if (onlyStreams) plan(ScanRequest())

  /** Names this snapshot in questions to the planner. */
  def reference: ObjectNode = {
    val node = Wire.obj().put("snapshot", snapshot).put("path", path).put("timeline", timeline)
    Wire.putMap(node, "options", options)
    Wire.putMap(node, "session", session)
  }
}

object LoadedTable {

  /** Opens the table at `path`; option keys are compared without case, as everywhere in Spark. */
  def load(path: String, options: Map[String, String]): LoadedTable =
    load(path, options, sessionSettings ++ StoreSettings.ofSession(path, options))

  def load(path: String, options: Map[String, String], session: Map[String, String]): LoadedTable = {
    val lower = options.map { case (key, value) => key.toLowerCase(Locale.ROOT) -> value } - "path"
    val message = Wire.obj().put("path", path)
    Wire.putMap(message, "options", lower)
    Wire.putMap(message, "session", session)
    fromWire(Bridge.request("load_table", message), lower, session)
  }

  def fromWire(node: JsonNode, options: Map[String, String], session: Map[String, String]): LoadedTable = LoadedTable(
    node.get("name").asText,
    node.get("path").asText,
    node.get("snapshot").asText,
    DataType.fromJson(node.get("schema").asText).asInstanceOf[StructType],
    Wire.strings(node.get("partition_columns")),
    Wire.stringMap(node.get("properties")),
    node.get("use_v2").asBoolean,
    Wire.strings(node.get("pushdowns")).toSet,
    options,
    Grouping.fromWire(node.get("grouping")),
    node.path("instant").asLong(0),
    node.path("only_streams").asBoolean(false)
  )(session, node.get("timeline").asText)

  private def sessionSettings: Map[String, String] =
    SQLConf.get.getAllConfs.filter { case (key, _) => key.startsWith("hoodie.") || key.startsWith("spark.hoodie.") }
}
