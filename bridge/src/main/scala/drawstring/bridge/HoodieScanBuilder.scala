package drawstring.bridge

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownV2Filters}
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.types.StructType

/** Collects what Catalyst pushes down; the planner says which filters it answers for. */
class HoodieScanBuilder(spark: SparkSession, table: LoadedTable)
    extends ScanBuilder
    with SupportsPushDownRequiredColumns
    with SupportsPushDownV2Filters {
  private var readSchema: StructType = table.schema
  private var pushed = Array.empty[PushedFilter]

  override def pruneColumns(requiredSchema: StructType): Unit = readSchema = requiredSchema

  /** Returns what Spark must still apply: everything but the filters that partition values answer exactly. */
  override def pushPredicates(predicates: Array[Predicate]): Array[Predicate] = {
    val encoded = predicates.map(p => p -> Predicates.toWire(p))
    val known = encoded.collect { case (p, Some(wire)) => p -> wire }
    val classes = if (known.isEmpty) Nil else table.pushFilters(known.map(_._2).toSeq)
    pushed = known.zip(classes).collect { case ((p, wire), kind) if kind != "rest" => PushedFilter(p, wire, kind) }
    val absorbed = pushed.filter(_.isPartition).map(_.predicate).toSet
    predicates.filterNot(absorbed.contains)
  }

  override def pushedPredicates(): Array[Predicate] = pushed.map(_.predicate)

  override def build(): Scan = new HoodieScan(spark, table, readSchema, pushed.toVector)
}

/** A filter the planner uses: `partition` filters are answered by it, `data` filters only help to skip. */
case class PushedFilter(predicate: Predicate, wire: JsonNode, kind: String) {
  def isPartition: Boolean = kind == "partition"

  def toParquet: Option[org.apache.spark.sql.sources.Filter] = if (isPartition) None else SparkAccess.toV1Filter(predicate)
}
