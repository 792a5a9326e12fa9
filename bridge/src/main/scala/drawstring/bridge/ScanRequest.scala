package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.expressions.{NamedReference, NullOrdering, SortDirection, SortOrder}
import org.apache.spark.sql.connector.expressions.aggregate._

/** What a scan is asked for; `drawstring.spark.wire.ScanRequest` says the same in Python. */
case class ScanRequest(
    columns: Option[Seq[String]] = None,
    filters: Seq[JsonNode] = Nil,
    limit: Option[Int] = None,
    order: Seq[PushedOrder] = Nil,
    aggregation: Option[PushedAggregation] = None,
    runtimeFilters: Seq[JsonNode] = Nil,
    hiddenColumns: Seq[String] = Nil,
    grouped: Boolean = false
) {

  def toWire: ObjectNode = {
    val node = Wire.obj()
    columns.fold[Any](node.putNull("columns"))(names => Wire.putStrings(node, "columns", names))
    Wire.putAll(node, "filters", filters)
    limit.fold(node.putNull("limit"))(rows => node.put("limit", rows))
    // Spark keeps OFFSET for itself, and asks for as many rows more.
    node.put("offset", 0)
    Wire.putAll(node, "order", order.map(_.toWire))
    aggregation.fold[Any](node.putNull("aggregation"))(asked => node.set[ObjectNode]("aggregation", asked.toWire))
    Wire.putAll(node, "runtime_filters", runtimeFilters)
    Wire.putStrings(node, "hidden_columns", hiddenColumns)
    node.put("grouped", grouped)
  }
}

/** One column of an ORDER BY. */
case class PushedOrder(column: Seq[String], descending: Boolean, nullsFirst: Boolean) {

  def toWire: ObjectNode =
    Wire.putStrings(Wire.obj(), "column", column).put("descending", descending).put("nulls_first", nullsFirst)
}

object PushedOrder {

  /** None where an expression is sorted by, which files know nothing of. */
  def of(orders: Array[SortOrder]): Option[Seq[PushedOrder]] = {
    val found = orders.toSeq.map(order => order.expression match {
      case column: NamedReference =>
        val descending = order.direction == SortDirection.DESCENDING
        Some(PushedOrder(column.fieldNames.toSeq, descending, order.nullOrdering == NullOrdering.NULLS_FIRST))
      case _ => None
    })
    if (found.nonEmpty && found.forall(_.isDefined)) Some(found.flatten) else None
  }
}

/** COUNT, MIN or MAX of a column; COUNT of none counts rows. */
case class PushedAggregate(function: String, column: Option[Seq[String]]) {

  def toWire: ObjectNode = {
    val node = Wire.obj().put("function", function)
    column.fold(node.putNull("column"))(path => Wire.putStrings(node, "column", path))
  }
}

case class PushedAggregation(aggregates: Seq[PushedAggregate], groupBy: Seq[String]) {

  def toWire: ObjectNode = {
    val node = Wire.obj()
    Wire.putAll(node, "aggregates", aggregates.map(_.toWire))
    Wire.putStrings(node, "group_by", groupBy)
  }
}

object PushedAggregation {

  /** None for what metadata never answers: other functions, DISTINCT, expressions. */
  def of(aggregation: Aggregation): Option[PushedAggregation] = {
    val aggregates = aggregation.aggregateExpressions.toSeq.map(aggregate)
    val groups = aggregation.groupByExpressions.toSeq.map {
      case column: NamedReference if column.fieldNames.length == 1 => Some(column.fieldNames.head)
      case _ => None
    }
    if (aggregates.forall(_.isDefined) && groups.forall(_.isDefined)) Some(PushedAggregation(aggregates.flatten, groups.flatten))
    else None
  }

  private def aggregate(function: AggregateFunc): Option[PushedAggregate] = function match {
    case _: CountStar => Some(PushedAggregate("count", None))
    case count: Count if !count.isDistinct => on("count", count.column)
    case min: Min => on("min", min.column)
    case max: Max => on("max", max.column)
    case _ => None
  }

  private def on(function: String, column: AnyRef): Option[PushedAggregate] = column match {
    case reference: NamedReference => Some(PushedAggregate(function, Some(reference.fieldNames.toSeq)))
    case _ => None
  }
}
