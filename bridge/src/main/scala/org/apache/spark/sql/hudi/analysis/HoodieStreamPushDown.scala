package org.apache.spark.sql.hudi.analysis

import drawstring.bridge.{HiddenColumns, HoodieMicroBatchStream}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.types.StructType

/**
 * Lets a batch of a stream read only the columns that its query needs, of files that may hold rows of it. Spark hands
 * neither columns nor filters to streams of V2. Every condition stays where it is.
 *
 * A stream that a query reads in two places is left whole: Spark takes scans of one stream for equal, whatever they read.
 */
object HoodieStreamPushDown extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = if (!plan.isStreaming) plan
  else {
    val streams = plan.collect { case StreamLeaf(stream) => stream }
    val once = streams.filter(stream => streams.count(_ eq stream) == 1)
    plan.transformDown {
      case chain @ PhysicalOperation(_, conditions, leaf @ StreamLeaf(stream)) if once.exists(_ eq stream) =>
        val needed = references(chain, leaf)
        val columns = StructType(stream.scan.readSchema().filter(field => needed.exists(_.name == field.name)))
        val predicates = conditions.flatMap(SparkAccess.toV2Predicate)
        if (isNarrower(stream, columns, predicates.nonEmpty)) {
          val narrow = stream.narrowed(columns, predicates)
          chain.transformUp { case `leaf` => StreamLeaf.narrowed(leaf, narrow.scan, narrow, column => columns.fieldNames.contains(column.name)) }
        } else chain
    }
  }

  private def isNarrower(stream: HoodieMicroBatchStream, columns: StructType, hasPredicates: Boolean): Boolean =
    HiddenColumns.in(stream.scan.readSchema(), stream.scan.table.schema).isEmpty &&
      (hasPredicates || columns.length < stream.scan.readSchema().length)

  /** The columns that projections and filters above the leaf look at; all, where nothing is projected. */
  private def references(chain: LogicalPlan, leaf: LogicalPlan): Seq[Attribute] = {
    val above = chain.collect { case node if node ne leaf => node }
    if (!above.exists(_.isInstanceOf[Project])) leaf.output
    else {
      val used = AttributeSet(above.flatMap(_.references))
      leaf.output.filter(used.contains)
    }
  }
}
