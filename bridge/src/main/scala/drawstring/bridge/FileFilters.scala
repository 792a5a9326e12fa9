package drawstring.bridge

import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.{And, Not, Or, Predicate}
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.sources
import org.apache.spark.sql.sources.Filter

/** Predicates as filters of Parquet's reader, each true wherever the predicate is.
  *
  * Spark's own conversion keeps one side of an OR, or of a negated AND, whose other side it cannot say: rows would be lost.
  */
object FileFilters {

  def of(predicate: Predicate): Option[Filter] = predicate match {
    case and: And =>
      (of(and.left), of(and.right)) match {
        case (Some(left), Some(right)) => Some(sources.And(left, right))
        case (left, right) => left.orElse(right)
      }
    case or: Or => for (left <- of(or.left); right <- of(or.right)) yield sources.Or(left, right)
    case not: Not => exact(not.child).map(sources.Not)
    case other => leaf(other)
  }

  /** The same predicate, or none. */
  private def exact(predicate: Predicate): Option[Filter] = predicate match {
    case and: And => for (left <- exact(and.left); right <- exact(and.right)) yield sources.And(left, right)
    case or: Or => for (left <- exact(or.left); right <- exact(or.right)) yield sources.Or(left, right)
    case not: Not => exact(not.child).map(sources.Not)
    case other => leaf(other)
  }

  private def leaf(predicate: Predicate): Option[Filter] =
    if (predicate.children.forall(child => child.isInstanceOf[NamedReference] || child.isInstanceOf[Literal[_]])) SparkAccess.toV1Filter(predicate)
    else None
}
