package org.apache.spark.sql.hudi.analysis

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}

import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Expression, Literal}
import org.apache.spark.sql.catalyst.parser.ParserInterface
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types.{StringType, TimestampType}

/**
 * `TIMESTAMP AS OF '20260822103000000'`: Hudi takes an instant there, Spark would try to read it as a timestamp and
 * fail. The parsed plan asks for it as a version instead. Times that are computed, or name their zone, are marked as
 * moments: see `ComputedTime`.
 *
 * A proxy, because the parser's interface grows with every version of Spark and only its plans matter here.
 */
object InstantLiterals {
  private val instant = "\\d{14}(\\d{3})?".r.pattern
  private val zoned = ":\\d\\d.*([zZ]|[+-]\\d\\d:?\\d\\d)$".r.pattern

  def wrap(parser: ParserInterface): ParserInterface = {
    val handler = new InvocationHandler {
      override def invoke(proxy: Any, method: Method, arguments: Array[AnyRef]): AnyRef =
        try rewrite(method.invoke(parser, arguments: _*))
        catch { case wrapped: InvocationTargetException => throw wrapped.getCause }
    }
    val loader = Option(getClass.getClassLoader).getOrElse(classOf[ParserInterface].getClassLoader)
    Proxy.newProxyInstance(loader, Array(classOf[ParserInterface]), handler).asInstanceOf[ParserInterface]
  }

  private def rewrite(parsed: AnyRef): AnyRef = parsed match {
    case plan: LogicalPlan => plan.transformDownWithSubqueries {
        case travel @ RelationTimeTravel(_, Some(Instant(text)), None) =>
          travel.copy(timestamp = None, version = Some(text))
        case travel @ RelationTimeTravel(_, Some(time), None) if isMoment(time) =>
          travel.copy(timestamp = Some(ComputedTime(Cast(time, TimestampType, None, EvalMode.LEGACY))))
      }
    case other => other
  }

  private def isMoment(time: Expression): Boolean = time match {
    case Literal(value, StringType) => value != null && zoned.matcher(value.toString).find()
    case _: Literal | _: ComputedTime => false
    case _ => true
  }

  private object Instant {
    def unapply(expression: Expression): Option[String] = expression match {
      case Literal(value, StringType) if value != null && instant.matcher(value.toString).matches() => Some(value.toString)
      case _ => None
    }
  }
}
