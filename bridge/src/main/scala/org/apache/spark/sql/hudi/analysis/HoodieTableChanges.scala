package org.apache.spark.sql.hudi.analysis

import java.util.Locale

import drawstring.bridge.BridgeErrors
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.hudi.catalog.Sessions

/** `hudi_table_changes('table or path', 'latest_state' | 'cdc' | 'changelog', 'begin' [, 'end'])` in FROM.
  *
  * Hudi's function, and beyond it the changelog with row kinds. It is the incremental read that the options spell.
  */
object HoodieTableChanges {
  private val name = "hudi_table_changes"
  private val kinds = Seq("latest_state", "cdc", "changelog")

  val description: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan) =
    (FunctionIdentifier(name), new ExpressionInfo(getClass.getName.stripSuffix("$"), name), build)

  private def build(arguments: Seq[Expression]): LogicalPlan = {
    if (arguments.size < 3 || arguments.size > 4) throw wrong(s"${arguments.size} arguments")
    val table :: kind :: begin :: end = arguments.map(text).toList
    val bounds = Map("hoodie.datasource.read.begin.instanttime" -> begin) ++
      end.map("hoodie.datasource.read.end.instanttime" -> _)
    Sessions.active.read.format("hudi").options(options(kind) ++ bounds).load(path(table)).queryExecution.analyzed
  }

  private def options(kind: String): Map[String, String] = kind.toLowerCase(Locale.ROOT) match {
    case "changelog" => Map("hoodie.datasource.read.changelog" -> "true")
    case known if kinds.contains(known) =>
      Map("hoodie.datasource.query.type" -> "incremental", "hoodie.datasource.query.incremental.format" -> known)
    case other => throw BridgeErrors.invalidOption(s"$name (second argument)", other, kinds: _*)
  }

  /** A name without slashes is a table of the catalog. */
  private def path(table: String): String =
    if (table.contains("/")) table
    else {
      val state = Sessions.active.sessionState
      state.catalog.getTableMetadata(state.sqlParser.parseTableIdentifier(table)).location.toString
    }

  private def text(argument: Expression): String =
    if (argument.resolved && argument.foldable) Option(argument.eval()).map(_.toString).getOrElse(throw wrong("null"))
    else throw wrong(s"'${argument.sql}'")

  private def wrong(found: String) = BridgeErrors.make(
    "InvalidInput",
    "INVALID_ARGUMENTS",
    s"$name takes a table or path, one of ${kinds.mkString(", ")}, a begin ('earliest' for all) and perhaps an end, each as " +
      s"text; found $found.",
    "found" -> found)
}
