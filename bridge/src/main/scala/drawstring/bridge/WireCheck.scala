package drawstring.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.collection.JavaConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.connector.expressions.{Cast => SparkCast, _}
import org.apache.spark.sql.connector.expressions.aggregate.{Aggregation, CountStar, Max}
import org.apache.spark.sql.connector.expressions.filter.{And, Predicate}
import org.apache.spark.sql.types.{DataType, DateType, LongType}

/** Reads golden messages as the bridge does and prints what it understood, one line each; for requests, what it would
  * send. Run by a contract test.
  */
object WireCheck {

  def main(arguments: Array[String]): Unit = {
    val files = Files.list(Paths.get(arguments.head)).iterator().asScala.toSeq.sortBy(_.getFileName.toString)
    val messages = files.filter(_.toString.endsWith(".json"))
    messages.foreach(file => println(s"${name(file)} ${understood(file)}"))
    val loaded = messages.find(name(_) == "table_loaded").get
    requests(LoadedTable.fromWire(Wire.parse(read(loaded)), Map.empty, Map("hoodie.metadata.enable" -> "false"))).foreach {
      case (kind, message) => println(s"sends $kind ${Wire.seal(message)}")
    }
  }

  /** The requests of the golden files, as Spark's push-downs lead to them. */
  private def requests(table: LoadedTable): Seq[(String, ObjectNode)] = {
    val day = new Predicate("=", Array[Expression](column("day"), DayLiteral))
    val present = new Predicate("IS_NOT_NULL", Array[Expression](column("st", "x")))
    val ids = new Predicate("IN", Array[Expression](column("id"), Expressions.literal(1), Expressions.literal(7)))
    val order = Expressions.sort(column("st", "x"), SortDirection.DESCENDING, NullOrdering.NULLS_LAST)
    val grouped = new Aggregation(Array(new CountStar, new Max(column("day"))), Array[Expression](column("day")))
    val year = new Predicate("=", Array[Expression](new Extract("YEAR", column("day")), Expressions.literal(2024)))
    val wide = new Predicate("<", Array[Expression](new SparkCast(column("id"), LongType), Expressions.literal(7L)))
    val part = new GeneralScalarExpression("SUBSTRING", Array[Expression](column("st", "x"), Expressions.literal(1), Expressions.literal(2)))
    val upper = new Predicate("IS_NULL", Array[Expression](new GeneralScalarExpression("UPPER", Array[Expression](part))))
    val filters = Seq(Predicates.toWire(new And(day, present)).get)
    val top = ScanRequest(None, filters, Some(10), PushedOrder.of(Array(order)).get, None, RuntimeFilters.toWire(Array(ids)), Seq("_file", "_bucket"), grouped = true)
    Seq(
      "push_filters" -> table.filterQuestion(filters ++ Seq(year, wide, upper).flatMap(Predicates.toWire)),
      "plan_scan" -> table.question(top),
      "push_aggregation" -> table.question(ScanRequest(aggregation = PushedAggregation.of(grouped))),
      "summarise_columns" -> table.question(ScanRequest(columns = Some(Seq("id"))))
    )
  }

  /** 4 October 2024, as Spark keeps days. */
  private object DayLiteral extends Literal[Integer] {
    override def value(): Integer = 20000

    override def dataType(): DataType = DateType

    override def children(): Array[Expression] = Array.empty
  }

  private def column(path: String*): NamedReference = Expressions.column(path.mkString("."))

  private def read(file: Path): String = new String(Files.readAllBytes(file), UTF_8)

  private def understood(file: Path): String = {
    val text = read(file)
    name(file) match {
      case "table_loaded" =>
        val table = LoadedTable.fromWire(Wire.answer("load_table", text), Map.empty, Map.empty)
        s"${table.name} ${table.snapshot} ${table.schema.simpleString} ${table.partitionColumns.mkString(",")} ${table.useV2} ${table.grouping.map(g => s"${g.columns.mkString(",")}:${g.buckets.getOrElse("-")}").getOrElse("-")}"
      case "filters_pushed" => Wire.strings(Wire.answer("push_filters", text).get("classes")).mkString(",")
      case "scan_planned" =>
        val plan = ScanPlan.fromWire(Wire.answer("plan_scan", text))
        s"${plan.tasks.map(t => s"${t.mode}:${t.size}:${t.rows.getOrElse("-")}${t.projection.map(_ => ":cast").getOrElse("")}${t.constants.map(c => ":" + c.text).getOrElse("")}${t.hidden.map(":" + _).getOrElse("")}${t.key.map(":" + _).getOrElse("")}").mkString(",")} ${plan.rows.getOrElse("-")} ${plan.estimatedRows.getOrElse("-")} ${plan.files} ${plan.skippedBy("partition")}"
      case "aggregation_pushed" | "aggregation_pushed_in_part" =>
        val answer = AggregationAnswer.fromWire(Wire.answer("push_aggregation", text)).get
        s"${Wire.text(answer.rows)} ${answer.rest.map(_.tasks.size).getOrElse("-")} ${answer.reason}".trim
      case "columns_summarised" => Wire.text(Wire.answer("summarise_columns", text).get("columns"))
      case "error" =>
        try { Wire.answer("load_table", text); "no error" }
        catch { case error: DrawstringBridgeException => s"${error.errorClass} ${error.condition}" }
      case _ => s"version ${Wire.parse(text).path("version").asInt}"
    }
  }

  private def name(file: Path): String = file.getFileName.toString.stripSuffix(".json")
}
