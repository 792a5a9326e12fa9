package org.apache.spark.sql.hudi.analysis

import drawstring.bridge.HoodieReadableTable
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * Hides unknown truth values from what Spark hands to sources of V2: it makes `(n = 40.5) IS NOT TRUE` of a whole
 * number `NOT ((n IS NULL AND NULL) <=> TRUE)`, and then fails for a NULL that is no predicate.
 */
object HoodieNullConditions extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan =
    if (plan.exists(isHudi)) plan.transformAllExpressions {
      case and @ And(left, right) if isNull(left) || isNull(right) => and.withNewChildren(Seq(hidden(left), hidden(right)))
      case or @ Or(left, right) if isNull(left) || isNull(right) => or.withNewChildren(Seq(hidden(left), hidden(right)))
      case not @ Not(child) if isNull(child) => not.withNewChildren(Seq(UnknownTruth()))
    }
    else plan

  private def isHudi(plan: LogicalPlan): Boolean = plan match {
    case relation: DataSourceV2Relation => relation.table.isInstanceOf[HoodieReadableTable]
    case _ => false
  }

  private def isNull(condition: Expression): Boolean = condition == Literal(null, BooleanType)

  private def hidden(condition: Expression): Expression = if (isNull(condition)) UnknownTruth() else condition
}

/** NULL as a condition, which no source is asked about. */
case class UnknownTruth() extends LeafExpression {
  override def nullable: Boolean = true

  override def dataType: DataType = BooleanType

  override def eval(input: InternalRow): Any = null

  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode =
    Literal(null, BooleanType).genCode(context)

  override def toString: String = "NULL"
}
