package drawstring.bridge

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{LocalScan, Statistics, SupportsReportStatistics}
import org.apache.spark.sql.types._

/** What metadata says to an aggregation: rows, and the slices for which it does not speak, if any, for a reason. */
case class AggregationAnswer(rows: JsonNode, rest: Option[ScanPlan], reason: String)

object AggregationAnswer {

  def fromWire(node: JsonNode): Option[AggregationAnswer] =
    Option(node.get("rows")).filterNot(_.isNull).map { rows =>
      val rest = Option(node.get("rest")).filterNot(_.isNull).map(ScanPlan.fromWire)
      AggregationAnswer(rows, rest, node.path("reason").asText(""))
    }
}

/** An aggregation that metadata answered: rows, and no file to be read. */
class HoodieLocalScan(table: LoadedTable, request: ScanRequest, schema: StructType, answer: JsonNode)
    extends LocalScan
    with SupportsReportStatistics {

  override def readSchema(): StructType = schema

  override def rows(): Array[InternalRow] = HoodieLocalScan.rows(answer, schema).map(InternalRow.fromSeq).toArray

  override def description(): String =
    s"hudi ${table.path} answered by metadata: ${schema.catalogString}"

  override def estimateStatistics(): Statistics = AnswerStatistics(answer.size(), schema)

  private def identity = (table.path, table.snapshot, request)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieLocalScan => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}

object HoodieLocalScan {

  /** The rows of an answer, values as Spark keeps them. */
  def rows(answer: JsonNode, schema: StructType): Seq[Seq[Any]] = answer.elements().asScala.map { row =>
    schema.fields.toSeq.zipWithIndex.map { case (field, at) => Values.fromWire(row.get(at), field.dataType) }
  }.toVector

  /** The columns of an aggregation's rows, groups first. None where a column is not found. */
  def schema(table: StructType, aggregation: PushedAggregation): Option[StructType] = {
    val groups = aggregation.groupBy.map(name => typeOf(Seq(name), table).map(StructField(name, _)))
    val values = aggregation.aggregates.map { aggregate =>
      val found = if (aggregate.function == "count") Some(LongType) else aggregate.column.flatMap(typeOf(_, table))
      found.map(StructField((aggregate.function +: aggregate.column.getOrElse(Nil)).mkString("_"), _))
    }
    val fields = groups ++ values
    if (fields.forall(_.isDefined)) Some(StructType(fields.flatten)) else None
  }

  private def typeOf(path: Seq[String], struct: StructType): Option[DataType] =
    struct.fields.find(_.name == path.head).map(_.dataType).flatMap {
      case inner: StructType if path.tail.nonEmpty => typeOf(path.tail, inner)
      case found if path.tail.isEmpty => Some(found)
      case _ => None
    }
}
