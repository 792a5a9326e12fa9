package drawstring.bridge

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions, ParquetReadSupport}
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory
import org.apache.spark.sql.hudi.SparkAccess
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.SerializableConfiguration

/** Opens slices on executors: plain files natively, merged ones by hiding and appending, odd ones as Arrow.
  *
  * With `showsPositions` a column follows the schema's: each row's position in its base file, if it has one.
  * `projected` has the readers of files of other schemas than the table's.
  */
case class SliceReaderFactory(
    files: BaseFiles,
    projected: Map[FileProjection, ProjectedFiles],
    root: String,
    schema: StructType,
    workers: WorkerSettings,
    store: Map[String, String],
    showsPositions: Boolean
) {

  /** Asks a worker for its part of a slice, if it has any. */
  def start(task: SliceTask): Option[WorkerCall] =
    if (task.isNative) None else Some(WorkerCall.start(workers, request(task)))

  /** Asks a worker ahead of time for a merge plan, if one is idle. */
  def startAhead(task: SliceTask): Option[WorkerCall] =
    if (task.isMerge) WorkerCall.startIdle(workers, request(task)) else None

  def open(file: PartitionedFile, task: SliceTask): PartitionReader[ColumnarBatch] =
    open(SliceSplit(file, task), start(task), new ReadCounts)

  /** Opens a slice whose worker was asked before. */
  def open(split: SliceSplit, worker: Option[WorkerCall], counts: ReadCounts): PartitionReader[ColumnarBatch] =
    try
      worker match {
        case None => base(split, showsPositions)
        case Some(call) if !split.task.isMerge => new ArrowReader(call)
        // Rows that are only counted need not be read.
        case Some(call) if schema.isEmpty && !showsPositions => new CountedReader(call, counts)
        case Some(call) =>
          val positioned = showsPositions || hasGaps(split)
          new MergedReader(base(split, positioned), call, MergedShape(positioned, showsPositions, split.appends), counts)
      }
    catch { case error: Throwable => worker.foreach(_.close()); throw error }

  private def base(split: SliceSplit, positioned: Boolean): PartitionReader[ColumnarBatch] =
    Constants.over(new DictionaryReader(fileRows(split, positioned)), split.task, schema)

  private def fileRows(split: SliceSplit, positioned: Boolean): PartitionReader[ColumnarBatch] = split.task.projection match {
    case Some(projection) => projected(projection).open(split.file, root, positioned)
    case None => files.open(split.file, root, positioned)
  }

  /** Whether rows of the base file may be passed over, so that they cannot be counted from its first on. */
  private def hasGaps(split: SliceSplit): Boolean =
    !split.isWhole || split.task.projection.fold(files)(projected(_).files).isFiltered

  private def request(task: SliceTask): String = {
    val message = Wire.obj().put("kind", if (task.isMerge) "merge" else "read").put("root", root).put("schema", schema.json)
    message.put("credits", WorkerCall.credits).put("cache", SparkAccess.scratchFolder)
    Wire.putMap(message, "store", store)
    message.putRawValue("context", Wire.raw(task.context))
    message.putRawValue("task", Wire.raw(task.payload))
    Wire.seal(message)
  }
}

/** Readers of base files of one schema with the same filters.
  *
  * `positioned` also gives each row's position in its file; there is one where it may be asked for.
  */
case class FilteredFiles(plain: ParquetPartitionReaderFactory, positioned: Option[ParquetPartitionReaderFactory]) {

  def factory(withPositions: Boolean): ParquetPartitionReaderFactory = if (withPositions) positioned.get else plain
}

/** Readers of base files of one schema; `cautious` for files whose bounds may leave NaN out, if that makes a difference. */
case class BaseFiles(trusting: FilteredFiles, cautious: Option[FilteredFiles]) {

  def isFiltered: Boolean = trusting.plain.filters.nonEmpty

  def open(file: PartitionedFile, root: String, positioned: Boolean): PartitionReader[ColumnarBatch] =
    new GuardedReader(file, root, () => read(file, filtered(file).factory(positioned)))

  private def read(file: PartitionedFile, factory: ParquetPartitionReaderFactory): PartitionReader[ColumnarBatch] =
    new NamesCheckedReader(factory.buildColumnarReader(file), factory.filters.nonEmpty, () => FooterNames.check(file.toPath, conf))

  private def filtered(file: PartitionedFile): FilteredFiles =
    cautious.filterNot(_ => Footers.boundsCoverNaN(file.toPath, conf)).getOrElse(trusting)

  private def conf: Configuration = trusting.plain.broadcastedConf.value.value
}

object SliceReaderFactory {

  def create(
      spark: SparkSession,
      table: LoadedTable,
      schema: StructType,
      given: Array[Filter],
      showsPositions: Boolean,
      plan: ScanPlan
  ): SliceReaderFactory = {
    // Of these columns rows do not show what the file holds, so its statistics say nothing about them.
    val constant = plan.constantColumns
    val filters = FloatFilters.signless(given).filterNot(_.references.exists(name => constant.exists(_.equalsIgnoreCase(name))))
    val merges = plan.tasks.exists(_.isMerge)
    def files(tableSchema: StructType, read: StructType, usable: Array[Filter]): BaseFiles = {
      val positioned = showsPositions || merges
      def filtered(pushed: Array[Filter]): FilteredFiles = FilteredFiles(
        parquet(spark, table.store, tableSchema, read, pushed),
        if (positioned) Some(parquet(spark, table.store, tableSchema, withPosition(read), pushed)) else None
      )
      val cautious = FloatFilters.withoutNaN(usable, tableSchema)
      BaseFiles(filtered(usable), if (cautious.sameElements(usable)) None else Some(filtered(cautious)))
    }
    def projectedFiles(projection: FileProjection): ProjectedFiles = {
      val cut = projection.cut(schema)
      ProjectedFiles(cut, files(cut.file, cut.file, cut.usable(filters)))
    }
    SliceReaderFactory(
      files(table.schema, schema, filters),
      plan.projections.map(projection => projection -> projectedFiles(projection)).toMap,
      table.path,
      schema,
      WorkerSettings.current,
      table.store,
      showsPositions
    )
  }

  private def withPosition(schema: StructType): StructType =
    schema.add(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME, LongType)

  private def parquet(
      spark: SparkSession,
      store: Map[String, String],
      tableSchema: StructType,
      schema: StructType,
      filters: Array[Filter]
  ): ParquetPartitionReaderFactory = {
    val conf = spark.sparkContext.broadcast(new SerializableConfiguration(hadoopConf(spark, store, schema)))
    ParquetPartitionReaderFactory(vectorised, conf, tableSchema, schema, new StructType(), filters, None, options)
  }

  /** A scan says that it gives batches before it knows its files: they are read so whatever the session prefers. */
  private def vectorised: SQLConf = {
    val conf = SQLConf.get.clone()
    conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_ENABLED, true)
    conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_NESTED_COLUMN_ENABLED, true)
    conf
  }

  /** Hudi writes proleptic Gregorian dates without saying so in the footer: nothing is to be rebased. */
  private def options: ParquetOptions =
    new ParquetOptions(Map("datetimeRebaseMode" -> "CORRECTED", "int96RebaseMode" -> "CORRECTED"), SQLConf.get)

  /** What `ParquetScan` sets for the same factory. */
  private def hadoopConf(spark: SparkSession, store: Map[String, String], schema: StructType): Configuration = {
    val conf = SQLConf.get
    val hadoop = new Configuration(spark.sparkContext.hadoopConfiguration)
    store.foreach { case (key, value) => hadoop.set(key, value) }
    hadoop.set(ParquetInputFormat.READ_SUPPORT_CLASS, classOf[ParquetReadSupport].getName)
    // Hudi's writers and drawstring's store a checksum with each page; Parquet ignores them unless told otherwise.
    hadoop.setBoolean(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, true)
    hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, schema.json)
    hadoop.set("org.apache.spark.sql.parquet.row.attributes", schema.json)
    hadoop.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, conf.sessionLocalTimeZone)
    hadoop.setBoolean(SQLConf.NESTED_SCHEMA_PRUNING_ENABLED.key, conf.nestedSchemaPruningEnabled)
    hadoop.setBoolean(SQLConf.CASE_SENSITIVE.key, conf.caseSensitiveAnalysis)
    hadoop.setBoolean(SQLConf.PARQUET_BINARY_AS_STRING.key, conf.isParquetBinaryAsString)
    hadoop.setBoolean(SQLConf.PARQUET_INT96_AS_TIMESTAMP.key, conf.isParquetINT96AsTimestamp)
    hadoop.setBoolean(SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED.key, true)
    hadoop.setBoolean(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG.key, false)
    hadoop
  }
}
