package drawstring.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.collection.JavaConverters._

/** Reads golden messages as the bridge does and prints what it understood, one line each; run by a contract test. */
object WireCheck {

  def main(arguments: Array[String]): Unit = {
    val files = Files.list(Paths.get(arguments.head)).iterator().asScala.toSeq.sortBy(_.getFileName.toString)
    files.filter(_.toString.endsWith(".json")).foreach(file => println(s"${name(file)} ${understood(file)}"))
  }

  private def understood(file: Path): String = {
    val text = new String(Files.readAllBytes(file), UTF_8)
    name(file) match {
      case "table_loaded" =>
        val table = LoadedTable.fromWire(Wire.answer("load_table", text), Map.empty, Map.empty)
        s"${table.name} ${table.snapshot} ${table.schema.simpleString} ${table.partitionColumns.mkString(",")} ${table.useV2}"
      case "filters_pushed" => Wire.strings(Wire.answer("push_filters", text).get("classes")).mkString(",")
      case "scan_planned" =>
        val plan = ScanPlan.fromWire(Wire.answer("plan_scan", text))
        s"${plan.tasks.map(t => s"${t.mode}:${t.size}:${t.rows.getOrElse("-")}${t.projection.map(_ => ":cast").getOrElse("")}${t.constants.map(c => ":" + c.text).getOrElse("")}").mkString(",")} ${plan.rows.getOrElse("-")} ${plan.files}"
      case "error" =>
        try { Wire.answer("load_table", text); "no error" }
        catch { case error: DrawstringBridgeException => s"${error.errorClass} ${error.condition}" }
      case _ => s"version ${Wire.parse(text).path("version").asInt}"
    }
  }

  private def name(file: Path): String = file.getFileName.toString.stripSuffix(".json")
}
