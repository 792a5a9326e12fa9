package org.apache.spark.sql.hudi.analysis

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnaryExpression}
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.types.{DataType, TimestampType}

/**
 * A time of `TIMESTAMP AS OF` that is computed, such as `current_timestamp()`: a moment, to be found on the timeline in
 * the zone of its instants. A time that is written down names the digits of an instant instead, as in Hudi.
 *
 * Catalogs are handed microseconds only, on the thread that evaluated them: there a note says which they are.
 */
case class ComputedTime(child: Expression) extends UnaryExpression with CodegenFallback {
  override def dataType: DataType = TimestampType

  override def eval(input: InternalRow): Any = {
    val time = child.eval(input)
    ComputedTime.last.set(Option(time))
    time
  }

  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
}

object ComputedTime {
  private val last = ThreadLocal.withInitial[Option[Any]](() => None)

  /** Whether the catalog was handed these microseconds because they were computed; the note is used up. */
  def isMoment(micros: Long): Boolean = {
    val noted = last.get().contains(micros)
    last.remove()
    noted
  }
}
