package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.SortOrder
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.types.StructType

/** Collects what Catalyst pushes down; the planner says which filters it answers for, and answers aggregates.
  *
  * Orders are pushed in part: they choose files, and Spark applies them to the rows of those. So are limits, unless
  * one task can read all that is left.
  */
class HoodieScanBuilder(spark: SparkSession, table: LoadedTable)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns
    with SupportsPushDownV2Filters
    with SupportsPushDownLimit
    with SupportsPushDownTopN
    with SupportsPushDownTableSample
    with SupportsPushDownAggregates {
  /** Of metadata columns files know nothing. */
  private val hidden = HiddenColumns.of(table.schema).map(_.name).toSet
  private var readSchema: StructType = table.schema
  private var pushed = Array.empty[PushedFilter]
  private var limit: Option[Int] = None
  private var limited: Option[ScanPlan] = None
  private var order: Seq[PushedOrder] = Nil
  private var sampled = false
  private var sample: Option[Sample] = None
  private var answered: Option[(PushedAggregation, Option[Scan])] = None
  private var aggregated: Option[Scan] = None

  override def pruneColumns(requiredSchema: StructType): Unit = readSchema = requiredSchema

  /** Returns what Spark must still apply: everything but the filters that partition values answer exactly.
    *
    * Filters come after a sample: files that they left out would change which of the other rows are chosen.
    */
  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    val own = if (table.pushes("filters") && sample.isEmpty) predicates.filterNot(Predicates.columns(_).exists(hidden)) else Array.empty[Predicate]
    val encoded = own.map(p => p -> Predicates.toWire(p))
    val known = encoded.collect { case (p, Some(wire)) => p -> wire }
    val classes = if (known.isEmpty) Nil else table.pushFilters(known.map(_._2).toSeq)
    pushed = known.zip(classes).collect { case ((p, wire), kind) if kind != "rest" => PushedFilter(p, wire, kind) }
    val absorbed = pushed.filter(_.isPartition).map(_.predicate).toSet
    predicates.filterNot(absorbed.contains)
  }

  override def pushedPredicates(): Array[Predicate] = pushed.map(_.predicate)

  override def pushLimit(rows: Int): Boolean = {
    if (table.pushes("limit") && sample.isEmpty) {
      limit = Some(limit.fold(rows)(math.min(_, rows)))
      limited = Some(table.plan(request)).filter(TaskLimit.fits)
    }
    limit.isDefined
  }

  /** Rows are chosen as Spark would choose them; how many of a file are left is not known before it is read. */
  override def pushTableSample(lower: Double, upper: Double, withReplacement: Boolean, seed: Long): Boolean = {
    sampled = true
    if (table.pushes("sample") && !withReplacement) sample = Some(Sample(lower, upper, seed))
    sample.isDefined
  }

  override def pushTopN(orders: Array[SortOrder], rows: Int): Boolean = {
    val found = if (table.pushes("topn") && sample.isEmpty && limited.isEmpty) PushedOrder.of(orders).filterNot(_.exists(key => hidden(key.column.head))) else None
    found.foreach { keys => order = keys; limit = Some(rows) }
    found.isDefined
  }

  override def isPartiallyPushed(): Boolean = limited.isEmpty

  /** Where metadata does not speak for some slices, those are read, and Spark adds up. */
  override def supportCompletePushDown(aggregation: Aggregation): Boolean =
    answer(aggregation).exists(_.isInstanceOf[HoodieLocalScan])

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    aggregated = answer(aggregation)
    aggregated.isDefined
  }

  /** Spark asks twice about one aggregation; it is answered once. */
  private def answer(aggregation: Aggregation): Option[Scan] =
    PushedAggregation.of(aggregation).filter(_ => table.pushes("aggregates") && sample.isEmpty).flatMap { asked =>
      if (!answered.exists(_._1 == asked)) answered = Some(asked -> answerOnce(asked))
      answered.flatMap(_._2)
    }

  private def answerOnce(asked: PushedAggregation): Option[Scan] =
    HoodieLocalScan.schema(table.schema, asked).flatMap { schema =>
      val question = request.copy(aggregation = Some(asked))
      table.pushAggregation(question).flatMap { answer =>
        if (answer.rest.isEmpty) Some(new HoodieLocalScan(table, question, schema, answer.rows))
        else PartialShape.of(table.schema, schema, asked).map { shape =>
          new HoodiePartialScan(spark, table, question, shape, answer, pushed.toVector)
        }
      }
    }

  private def request: ScanRequest = ScanRequest(filters = pushed.map(_.wire).toSeq, limit = limit, order = order)

  override def build(): Scan =
    aggregated.getOrElse(new HoodieScan(spark, table, readSchema, pushed.toVector, request, sample, limited, sampled))
}

/** A filter the planner uses: `partition` filters are answered by it, `data` filters only help to skip. */
case class PushedFilter(predicate: Predicate, wire: JsonNode, kind: String) {
  def isPartition: Boolean = kind == "partition"

  def toParquet: Option[org.apache.spark.sql.sources.Filter] = if (isPartition) None else FileFilters.of(predicate)
}
