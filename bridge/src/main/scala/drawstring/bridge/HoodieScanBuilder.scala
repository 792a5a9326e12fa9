package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.SortOrder
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.types.StructType

/** Collects what Catalyst pushes down; the planner says which filters it answers for, and answers aggregates.
  *
  * Limits and orders are pushed in part: they choose files, and Spark applies them to the rows of those.
  */
class HoodieScanBuilder(spark: SparkSession, table: LoadedTable)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns
    with SupportsPushDownV2Filters
    with SupportsPushDownLimit
    with SupportsPushDownTopN
    with SupportsPushDownAggregates {
  private var readSchema: StructType = table.schema
  private var pushed = Array.empty[PushedFilter]
  private var limit: Option[Int] = None
  private var order: Seq[PushedOrder] = Nil
  private var answered: Option[(PushedAggregation, Option[HoodieLocalScan])] = None
  private var local: Option[HoodieLocalScan] = None

  override def pruneColumns(requiredSchema: StructType): Unit = readSchema = requiredSchema

  /** Returns what Spark must still apply: everything but the filters that partition values answer exactly. */
  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    val encoded = if (table.pushes("filters")) predicates.map(p => p -> Predicates.toWire(p)) else Array.empty[(Predicate, Option[JsonNode])]
    val known = encoded.collect { case (p, Some(wire)) => p -> wire }
    val classes = if (known.isEmpty) Nil else table.pushFilters(known.map(_._2).toSeq)
    pushed = known.zip(classes).collect { case ((p, wire), kind) if kind != "rest" => PushedFilter(p, wire, kind) }
    val absorbed = pushed.filter(_.isPartition).map(_.predicate).toSet
    predicates.filterNot(absorbed.contains)
  }

  override def pushedPredicates(): Array[Predicate] = pushed.map(_.predicate)

  override def pushLimit(rows: Int): Boolean = {
    if (table.pushes("limit")) limit = Some(rows)
    limit.isDefined
  }

  override def pushTopN(orders: Array[SortOrder], rows: Int): Boolean = {
    val found = if (table.pushes("topn")) PushedOrder.of(orders) else None
    found.foreach { keys => order = keys; limit = Some(rows) }
    found.isDefined
  }

  override def isPartiallyPushed(): Boolean = true

  /** All or nothing: what metadata cannot prove is read. */
  override def supportCompletePushDown(aggregation: Aggregation): Boolean = answer(aggregation).isDefined

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    local = answer(aggregation)
    local.isDefined
  }

  /** Spark asks twice about one aggregation; it is answered once. */
  private def answer(aggregation: Aggregation): Option[HoodieLocalScan] =
    PushedAggregation.of(aggregation).filter(_ => table.pushes("aggregates")).flatMap { asked =>
      if (!answered.exists(_._1 == asked)) answered = Some(asked -> answerOnce(asked))
      answered.flatMap(_._2)
    }

  private def answerOnce(asked: PushedAggregation): Option[HoodieLocalScan] =
    HoodieLocalScan.schema(table.schema, asked).flatMap { schema =>
      val question = request.copy(aggregation = Some(asked))
      table.pushAggregation(question).map(rows => new HoodieLocalScan(table, question, schema, rows))
    }

  private def request: ScanRequest = ScanRequest(filters = pushed.map(_.wire).toSeq, limit = limit, order = order)

  override def build(): Scan = local.getOrElse(new HoodieScan(spark, table, readSchema, pushed.toVector, request))
}

/** A filter the planner uses: `partition` filters are answered by it, `data` filters only help to skip. */
case class PushedFilter(predicate: Predicate, wire: JsonNode, kind: String) {
  def isPartition: Boolean = kind == "partition"

  def toParquet: Option[org.apache.spark.sql.sources.Filter] = if (isPartition) None else SparkAccess.toV1Filter(predicate)
}
