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
  * `positioned` also reads each row's position in its file, which survives skipped row groups; None when no
  * slice needs merging. `projected` has the readers of files of other schemas.
  */
case class SliceReaderFactory(
    native: ParquetPartitionReaderFactory,
    positioned: Option[ParquetPartitionReaderFactory],
    projected: Map[FileProjection, ProjectedFiles],
    root: String,
    schema: StructType,
    workers: WorkerSettings
) {

  def open(file: PartitionedFile, task: SliceTask): PartitionReader[ColumnarBatch] = task.mode match {
    case SliceTask.Native => base(file, task)
    case SliceTask.Merge =>
      val rows = base(file, task)
      try new MergedReader(rows, WorkerCall.start(workers, request("merge", task)))
      catch { case error: Throwable => rows.close(); throw error }
    case _ => new ArrowReader(WorkerCall.start(workers, request("read", task)))
  }

  private def base(file: PartitionedFile, task: SliceTask): PartitionReader[ColumnarBatch] = task.projection match {
    case Some(projection) => projected(projection).open(file, task.isMerge)
    case None =>
      val factory = if (task.isMerge) positioned.get else native
      new GuardedReader(file, () => factory.buildColumnarReader(file))
  }

  private def request(kind: String, task: SliceTask): String = {
    val message = Wire.obj().put("kind", kind).put("root", root).put("schema", schema.json)
    message.put("credits", WorkerCall.credits).put("cache", SparkAccess.scratchFolder)
    message.putRawValue("context", Wire.raw(task.context))
    message.putRawValue("task", Wire.raw(task.payload))
    Wire.seal(message)
  }
}

object SliceReaderFactory {

  def create(
      spark: SparkSession,
      table: LoadedTable,
      schema: StructType,
      filters: Array[Filter],
      withPositions: Boolean,
      projections: Seq[FileProjection]
  ): SliceReaderFactory = {
    def positioned(read: StructType, usable: Array[Filter]): Option[ParquetPartitionReaderFactory] =
      if (withPositions) Some(parquet(spark, table.schema, withPosition(read), usable)) else None
    def files(projection: FileProjection): ProjectedFiles = {
      val cut = projection.cut(schema)
      val usable = cut.usable(filters)
      ProjectedFiles(cut, parquet(spark, cut.file, cut.file, usable), positioned(cut.file, usable))
    }
    SliceReaderFactory(
      parquet(spark, table.schema, schema, filters),
      positioned(schema, filters),
      projections.distinct.map(projection => projection -> files(projection)).toMap,
      table.path,
      schema,
      WorkerSettings.current
    )
  }

  private def withPosition(schema: StructType): StructType =
    schema.add(ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME, LongType)

  private def parquet(
      spark: SparkSession,
      tableSchema: StructType,
      schema: StructType,
      filters: Array[Filter]
  ): ParquetPartitionReaderFactory = {
    val conf = spark.sparkContext.broadcast(new SerializableConfiguration(hadoopConf(spark, schema)))
    ParquetPartitionReaderFactory(SQLConf.get, conf, tableSchema, schema, new StructType(), filters, None, options)
  }

  /** Hudi writes proleptic Gregorian dates without saying so in the footer: nothing is to be rebased. */
  private def options: ParquetOptions =
    new ParquetOptions(Map("datetimeRebaseMode" -> "CORRECTED", "int96RebaseMode" -> "CORRECTED"), SQLConf.get)

  /** What `ParquetScan` sets for the same factory. */
  private def hadoopConf(spark: SparkSession, schema: StructType): Configuration = {
    val conf = SQLConf.get
    val hadoop = new Configuration(spark.sparkContext.hadoopConfiguration)
    hadoop.set(ParquetInputFormat.READ_SUPPORT_CLASS, classOf[ParquetReadSupport].getName)
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
