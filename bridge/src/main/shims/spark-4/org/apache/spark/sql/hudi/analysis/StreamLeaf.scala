package org.apache.spark.sql.hudi.analysis

import drawstring.bridge.{HoodieMicroBatchStream, HoodieScan}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation

/** The node of a plan that reads a batch of a Hudi table's stream, as the whole table. */
private[sql] object StreamLeaf {
  def unapply(plan: LogicalPlan): Option[HoodieMicroBatchStream] = plan match {
    case leaf: StreamingDataSourceV2ScanRelation => leaf.stream match {
        case whole: HoodieMicroBatchStream => Some(whole)
        case _ => None
      }
    case _ => None
  }

  def narrowed(leaf: LogicalPlan, scan: HoodieScan, stream: MicroBatchStream, kept: Attribute => Boolean): LogicalPlan =
    leaf match {
      case whole: StreamingDataSourceV2ScanRelation =>
        whole.copy(scan = scan, stream = stream, output = whole.output.filter(kept))
    }
}
