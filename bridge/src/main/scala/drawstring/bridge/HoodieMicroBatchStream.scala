package drawstring.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.util
import java.util.Optional
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.collection.JavaConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.types.StructType

/** Where a query stands, as the planner wrote it and as checkpoints keep it. */
case class HoodieOffset(override val json: String) extends Offset

/** A table as a stream of commits.
  *
  * The planner decides what each batch takes; the bridge keeps the time, and reads slices as batch scans do.
  */
class HoodieMicroBatchStream(val scan: HoodieScan, checkpoint: String)
    extends MicroBatchStream
    with SupportsTriggerAvailableNow
    with ReportsSourceMetrics {
  private lazy val stream: StreamQuestions = StreamQuestions.open(scan.table)
  private var until: Option[String] = None
  private var lastBatch: Long = System.nanoTime()
  @volatile private var planned: ScanPlan = ScanPlan.empty

  /** What the batch in work reads. */
  def plan: ScanPlan = planned

  /** Kept in a file as Hudi's source keeps it: after a restart `latest` must not be a later one. */
  override def initialOffset(): Offset = {
    val file = new StartFile(new Path(checkpoint, "0"), scan.spark.sparkContext.hadoopConfiguration)
    HoodieOffset(file.orElse(stream.initial()))
  }

  override def deserializeOffset(json: String): Offset = HoodieOffset(json)

  /** Anything but "all available": the planner knows the limits. */
  override def getDefaultReadLimit: ReadLimit = ReadLimit.maxRows(Long.MaxValue)

  override def prepareForTriggerAvailableNow(): Unit = until = Some(stream.newest())

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("drawstring decides where a batch ends by where it begins")

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val waited = if (until.isEmpty) Some(NANOSECONDS.toMillis(System.nanoTime() - lastBatch)) else None
    val limited = !limit.isInstanceOf[ReadAllAvailable]
    val end = stream.next(start.json(), limited, if (limited) waited else None, until)
    // Nothing, not the same offset: a query that has no checkpoint yet would take that for a batch.
    if (end == start.json()) null
    else {
      lastBatch = System.nanoTime()
      HoodieOffset(end)
    }
  }

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = planFor(scan, start, end)

  override def createReaderFactory(): PartitionReaderFactory = scan.readerFactory(planned)

  /** The same stream for a query that needs some columns only, of rows that the predicates do not rule out. */
  def narrowed(columns: StructType, predicates: Seq[Predicate]): NarrowedStream =
    new NarrowedStream(this, scan.narrowed(this, columns, predicates))

  private[bridge] def planFor(narrow: HoodieScan, start: Offset, end: Offset): Array[InputPartition] = {
    planned = stream.plan(start.json(), end.json(), narrow.filters.map(_.wire))
    SplitPacking.pack(planned.tasks, SplitPacking.slots(scan.spark)).toArray
  }

  /** How far the table reaches, in progress reports. */
  override def reportLatestOffset(): Offset = HoodieOffset(stream.seen())

  override def metrics(consumed: Optional[Offset]): util.Map[String, String] =
    if (consumed.isPresent) stream.backlog(consumed.get().json()).asJava else util.Collections.emptyMap()

  override def commit(end: Offset): Unit = ()

  override def stop(): Unit = stream.close()

  override def equals(other: Any): Boolean = other match {
    case narrow: NarrowedStream => narrow.whole eq this
    case _ => super.equals(other)
  }

  override def hashCode(): Int = System.identityHashCode(this)

  /** What progress reports call the source. */
  override def toString: String = s"HoodieMicroBatchStream[${scan.table.path}]"
}

/** A stream in one batch, less wide; equal to the whole one, because by that Spark finds the figures of a source. */
class NarrowedStream(val whole: HoodieMicroBatchStream, val scan: HoodieScan) extends MicroBatchStream {
  override def initialOffset(): Offset = whole.initialOffset()

  override def deserializeOffset(json: String): Offset = whole.deserializeOffset(json)

  override def latestOffset(): Offset = whole.latestOffset()

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = whole.planFor(scan, start, end)

  override def createReaderFactory(): PartitionReaderFactory = scan.readerFactory(whole.plan)

  override def commit(end: Offset): Unit = whole.commit(end)

  override def stop(): Unit = whole.stop()

  override def equals(other: Any): Boolean = other match {
    case narrow: NarrowedStream => narrow.whole eq whole
    case stream: HoodieMicroBatchStream => stream eq whole
    case _ => false
  }

  override def hashCode(): Int = whole.hashCode()

  override def toString: String = whole.toString
}

/** A small file that is written once, in the form of Spark's metadata logs: a version, then one line. */
private class StartFile(path: Path, conf: Configuration) {
  private val version = "v1\n"

  def orElse(found: => String): String = {
    val files = path.getFileSystem(conf)
    if (files.exists(path)) read(files)
    else {
      val text = found
      files.mkdirs(path.getParent)
      val fresh = new Path(path.getParent, s".${path.getName}.${java.util.UUID.randomUUID()}.tmp")
      val out = files.create(fresh, false)
      try out.write((version + text).getBytes(UTF_8))
      finally out.close()
      if (!files.rename(fresh, path)) files.delete(fresh, false)
      read(files)
    }
  }

  private def read(files: FileSystem): String = {
    val in = files.open(path)
    try {
      val bytes = new Array[Byte](files.getFileStatus(path).getLen.toInt)
      in.readFully(bytes)
      new String(bytes, UTF_8).stripPrefix(version).trim
    } finally in.close()
  }
}
