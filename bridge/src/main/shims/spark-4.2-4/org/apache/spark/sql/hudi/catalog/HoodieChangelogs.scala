package org.apache.spark.sql.hudi.catalog

import java.util.Optional

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import drawstring.bridge.{Bridge, HoodieScanBuilder, LoadedTable, Wire}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.catalog.ChangelogContext.DeduplicationMode
import org.apache.spark.sql.connector.catalog.ChangelogRange._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** `SELECT … FROM t CHANGES …` and `spark.read.changes(t)`: the changelog read, between the bounds that Spark was given. */
private[sql] trait HoodieChangelogs extends TableCatalog {
  protected def hoodieEntry(ident: Identifier): Option[CatalogTable]

  override def loadChangelog(ident: Identifier, context: ChangelogContext, options: CaseInsensitiveStringMap): Changelog =
    hoodieEntry(ident) match {
      case Some(entry) =>
        val asked = Wire.stringMap(Bridge.request("changelog_options", ChangelogQuestion.of(context)).get("options"))
        new HoodieChangelog(entry, HoodieEntries.load(entry, options.asCaseSensitiveMap().asScala.toMap ++ asked))
      case None => super.loadChangelog(ident, context, options)
    }
}

/** Rows come as they must be shown: updates with both images, nothing carried over, net where net changes were asked for. */
private[sql] class HoodieChangelog(entry: CatalogTable, val loaded: LoadedTable) extends Changelog {
  override def name(): String = entry.identifier.unquotedString

  override def columns(): Array[Column] = CatalogV2Util.structTypeToV2Columns(loaded.schema)

  override def containsCarryoverRows(): Boolean = false

  override def containsIntermediateChanges(): Boolean = false

  override def representsUpdateAsDeleteAndInsert(): Boolean = false

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new HoodieScanBuilder(Sessions.active, loaded.withOptions(options.asCaseSensitiveMap().asScala.toMap))

  override def equals(other: Any): Boolean = other match {
    case that: HoodieChangelog => loaded == that.loaded
    case _ => false
  }

  override def hashCode(): Int = loaded.snapshot.hashCode
}

private object ChangelogQuestion {
  def of(context: ChangelogContext): ObjectNode = {
    val range = context.range
    val asked = Wire.obj()
      .put("net", context.deduplicationMode == DeduplicationMode.NET_CHANGES)
      .put("start_inclusive", range.startingBoundInclusive)
      .put("end_inclusive", range.endingBoundInclusive)
    range match {
      case versions: VersionRange =>
        asked.put("start", versions.startingVersion)
        present(versions.endingVersion).foreach(asked.put("end", _))
      case times: TimestampRange =>
        asked.put("start_micros", times.startingTimestamp)
        present(times.endingTimestamp).foreach(micros => asked.put("end_micros", micros.longValue))
      case _ => ()
    }
    asked
  }

  private def present[T](found: Optional[T]): Option[T] = if (found.isPresent) Some(found.get) else None
}
