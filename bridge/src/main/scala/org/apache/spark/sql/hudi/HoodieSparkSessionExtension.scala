package org.apache.spark.sql.hudi

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.hudi.analysis._

/**
 * The session extension that Hudi's guide has people configure.
 *
 * It chooses between the V2 and the V1 way to read, and smooths SQL where Hudi's differs from Spark's. Answers do not
 * depend on it: without it catalog tables are read through V2.
 */
class HoodieSparkSessionExtension extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectParser((_, parser) => InstantLiterals.wrap(parser))
    extensions.injectResolutionRule(session => HoodieInserts(session))
    extensions.injectResolutionRule(session => HoodieDataSourceV2ToV1Fallback(session))
    extensions.injectPostHocResolutionRule(session => HoodiePurge(session))
    extensions.injectPostHocResolutionRule(session => HoodieTableLike(session))
    extensions.injectTableFunction(HoodieTableChanges.description)
    extensions.injectPostHocResolutionRule(_ => HoodiePathFunctions)
    extensions.injectPlannerStrategy(_ => HoodieMetadataAnswers)
    extensions.injectPreCBORule(_ => HoodieNullConditions)
    extensions.injectPreCBORule(_ => HoodieStreamPushDown)
  }
}
