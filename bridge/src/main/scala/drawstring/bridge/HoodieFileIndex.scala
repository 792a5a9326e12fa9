package drawstring.bridge

import scala.collection.concurrent.TrieMap

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.Job
import org.apache.spark.TaskContext
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Expression, UnsafeProjection}
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** The V1 read path: Spark's own file source, with files chosen by the planner.
  *
  * No partition schema is declared, because some partition columns are read from the files: a value that a path was
  * derived from need not be the value of the path. Filters on them reach the planner as data filters; constants of
  * the tasks put the path's value in place where it counts.
  */
class HoodieFileIndex(val table: LoadedTable) extends FileIndex {
  @transient private lazy val plans = TrieMap.empty[Set[String], ScanPlan]
  @transient private lazy val special = TrieMap.empty[Path, Unit]

  /** Two, because Spark overwrites relations of one path by deleting what is there before it asks the format.
    * Only sessions without Hudi's catalog get so far; the others write through the planner.
    */
  override def rootPaths: Seq[Path] = Seq(new Path(table.path), new Path(table.path, ".hoodie"))

  override def partitionSchema: StructType = new StructType()

  override def inputFiles: Array[String] = whole.tasks.map(_.path).toArray

  override def sizeInBytes: Long = math.max(whole.bytes, if (whole.tasks.isEmpty) 0L else 1L)

  /** The snapshot is pinned. */
  override def refresh(): Unit = ()

  override def listFiles(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val wire = (partitionFilters ++ dataFilters).flatMap(SparkAccess.toV2Predicate).flatMap(Predicates.toWire)
    val selected = plan(wire)
    Seq(PartitionDirectory(InternalRow.empty, selected.tasks.map(status).toList))
  }

  /** Whether a file is read by the native reader in every plan made so far. */
  def isPlain(path: Path): Boolean = !special.contains(path)

  /** The plan of all files, since what a query selects of them may not be known yet. */
  def whole: ScanPlan = plan(Nil)

  private def plan(filters: Seq[JsonNode]): ScanPlan = plans.getOrElseUpdate(
    filters.map(Wire.text).toSet, {
      val made = table.plan(ScanRequest(filters = filters))
      made.tasks.filterNot(_.isNative).foreach(task => special.put(new Path(task.path), ()))
      made
    }
  )

  private def status(task: SliceTask): FileStatusWithMetadata = {
    val file = new FileStatus(task.size, false, 0, 0L, 0L, new Path(task.path))
    FileStatusWithMetadata(file, Map(HoodieFileIndex.TaskKey -> task))
  }

  private def identity = (table.path, table.snapshot, table.options)

  override def equals(other: Any): Boolean = other match {
    case that: HoodieFileIndex => identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()
}

object HoodieFileIndex {
  val TaskKey = "drawstring_task"

  def relation(spark: SparkSession, table: LoadedTable): HadoopFsRelation = {
    table.checkBatch()
    val index = new HoodieFileIndex(table)
    HadoopFsRelation(index, new StructType(), table.schema, None, new HoodieFileFormat(index), table.options)(spark)
  }
}

/** Reads each file of the V1 path with the reader that its task asks for. */
class HoodieFileFormat(@transient index: HoodieFileIndex) extends ParquetFileFormat {
  override def shortName(): String = "hudi"

  override def toString: String = "Hudi"

  override def isSplitable(spark: SparkSession, options: Map[String, String], path: Path): Boolean = index.isPlain(path)

  /** Vectors of several classes meet in one scan. */
  override def vectorTypes(required: StructType, partition: StructType, conf: SQLConf): Option[Seq[String]] =
    Option(Seq.fill(required.length + partition.length)(classOf[ColumnVector].getName))

  /** Positions in a file mean nothing once logs are merged. */
  override def metadataSchemaFields: Seq[StructField] = FileFormat.BASE_METADATA_FIELDS

  /** Spark would put bare Parquet files beside the table's: rows that no commit knows. */
  override def prepareWrite(
      spark: SparkSession,
      job: Job,
      options: Map[String, String],
      dataSchema: StructType
  ): OutputWriterFactory = throw BridgeErrors.noCatalog(index.table.path)

  override def buildReaderWithPartitionValues(
      spark: SparkSession,
      dataSchema: StructType,
      partitionSchema: StructType,
      requiredSchema: StructType,
      filters: Seq[Filter],
      options: Map[String, String],
      hadoopConf: Configuration
  ): PartitionedFile => Iterator[InternalRow] = {
    val slices = SliceReaderFactory.create(
      spark,
      index.table,
      requiredSchema,
      filters.toArray,
      showsPositions = false,
      index.whole
    )
    val batches = options.get(FileFormat.OPTION_RETURNING_BATCH).contains("true")
    new SliceIterators(slices, requiredSchema, batches)
  }
}

/** From a file of the V1 path to its batches, or rows where Spark wants those. */
class SliceIterators(slices: SliceReaderFactory, schema: StructType, batches: Boolean)
    extends (PartitionedFile => Iterator[InternalRow])
    with Serializable {

  override def apply(file: PartitionedFile): Iterator[InternalRow] = {
    val task = file.otherConstantMetadataColumnValues(HoodieFileIndex.TaskKey).asInstanceOf[SliceTask]
    val reader = slices.open(file, task)
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => reader.close()))
    val found = new ReaderIterator(reader)
    if (batches) found.asInstanceOf[Iterator[InternalRow]] else rows(found)
  }

  private def rows(found: Iterator[ColumnarBatch]): Iterator[InternalRow] = {
    val unsafe = UnsafeProjection.create(schema)
    found.flatMap { batch =>
      val each = batch.rowIterator()
      new Iterator[InternalRow] {
        override def hasNext: Boolean = each.hasNext

        override def next(): InternalRow = unsafe(each.next())
      }
    }
  }
}

/** A partition reader as an iterator; closed at its end. */
class ReaderIterator(reader: PartitionReader[ColumnarBatch]) extends Iterator[ColumnarBatch] {
  private var ready = false
  private var done = false

  override def hasNext: Boolean = {
    if (!ready && !done) {
      ready = reader.next()
      if (!ready) { done = true; reader.close() }
    }
    ready
  }

  override def next(): ColumnarBatch = {
    if (!hasNext) throw new NoSuchElementException
    ready = false
    reader.get()
  }
}
