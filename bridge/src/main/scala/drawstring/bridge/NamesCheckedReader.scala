package drawstring.bridge

import java.io.IOException

import scala.collection.JavaConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.ParquetReadOptions
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.vectorized.ColumnarBatch

/** A base file of which `check` looks at the footer where columns seem to be missing.
  *
  * No checksum covers footers. A column with a flipped bit in its name would be null in all rows, and a filter on it
  * would find none: so files whose rows are all passed over by a filter are looked at too.
  */
class NamesCheckedReader(reader: PartitionReader[ColumnarBatch], isFiltered: Boolean, check: () => Unit)
    extends PartitionReader[ColumnarBatch] {
  private var isFirst = true

  override def next(): Boolean = {
    val more = reader.next()
    if (isFirst) {
      isFirst = false
      if (if (more) mayLackColumns(reader.get()) else isFiltered) check()
    }
    more
  }

  override def get(): ColumnarBatch = reader.get()

  override def close(): Unit = reader.close()

  /** Columns that a file lacks come as vectors that say that they are null throughout. */
  private def mayLackColumns(batch: ColumnarBatch): Boolean = (0 until batch.numCols()).map(batch.column).exists {
    case vector: WritableColumnVector => vector.isAllNull
    case _ => false
  }
}

/** What footers say beside their row groups. */
object Footers {

  def read(file: Path, conf: Configuration): FileMetaData = {
    val options = ParquetReadOptions.builder().withMetadataFilter(ParquetMetadataConverter.SKIP_ROW_GROUPS).build()
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf), options)
    try reader.getFileMetaData
    finally reader.close()
  }

  private val ParquetMr = raw"parquet-mr version (\d+)\.(\d+).*".r

  /** Whether bounds of floats speak of all values: parquet-mr, by which Spark and Hudi write, leaves none where one is
    * NaN, since 1.10. Others, pyarrow among them, give the bounds of the rest.
    */
  def boundsCoverNaN(file: Path, conf: Configuration): Boolean = read(file, conf).getCreatedBy match {
    case ParquetMr(major, minor) => major.toInt > 1 || minor.toInt >= 10
    case _ => false
  }
}

object FooterNames {
  private val AvroSchema = "parquet.avro.schema"
  private val MetaColumns =
    Set("commit_time", "commit_seqno", "record_key", "partition_path", "file_name").map("_hoodie_" + _)

  /** Throws when the footer lacks a column that the Avro schema in it names, or one of Hudi's beside its others. */
  def check(file: Path, conf: Configuration): Unit = {
    val footer = Footers.read(file, conf)
    val found = footer.getSchema.getFields.asScala.map(_.getName).toSet
    val told = avroNames(footer) ++ (if (found.exists(MetaColumns)) MetaColumns else Set.empty)
    told.find(name => !found(name)).foreach { name =>
      throw new IOException(s"its footer has a damaged name: the column $name is missing from it")
    }
  }

  /** The names in the Avro schema that Hudi's writer leaves; none where it left none, or one that cannot be read. */
  private def avroNames(footer: FileMetaData): Set[String] = {
    val text = Option(footer.getKeyValueMetaData.get(AvroSchema))
    val fields: Option[JsonNode] = text.flatMap(schema => Try(Wire.parse(schema).path("fields")).toOption)
    fields.map(_.elements().asScala.map(_.path("name").asText()).filter(_.nonEmpty).toSet).getOrElse(Set.empty)
  }
}
