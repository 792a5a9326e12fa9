package drawstring.bridge

import java.lang.reflect.Field

import scala.util.Try

import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.unsafe.types.UTF8String

/** The texts of a column's dictionary, each made when it is first met; Spark copies one out for every row. */
class DictionaryTexts {
  private var dictionary: Dictionary = _
  private var texts = Array.empty[UTF8String]

  /** `vector` with its texts kept, or as it is when it has no dictionary of texts. */
  def over(vector: ColumnVector): ColumnVector = vector match {
    case found: WritableColumnVector if found.hasDictionary && found.dataType().isInstanceOf[StringType] =>
      DictionaryTexts.dictionaryOf(found).fold(vector) { used =>
        if (used ne dictionary) { dictionary = used; texts = new Array(DictionaryTexts.FirstSize) }
        new DictionaryVector(found, this)
      }
    case _ => vector
  }

  def apply(id: Int): UTF8String = {
    val known = if (id < texts.length) texts(id) else null
    if (known != null) known else make(id)
  }

  private def make(id: Int): UTF8String = {
    if (id >= texts.length) texts = java.util.Arrays.copyOf(texts, math.max(id + 1, texts.length * 2))
    texts(id) = UTF8String.fromBytes(dictionary.decodeToBinary(id))
    texts(id)
  }
}

object DictionaryTexts {
  private val FirstSize = 256

  /** Spark shows that a vector has a dictionary, but not whether it is still the same one. */
  private lazy val field: Option[Field] = Try {
    val found = classOf[WritableColumnVector].getDeclaredField("dictionary")
    found.setAccessible(true)
    found
  }.toOption

  private def dictionaryOf(vector: WritableColumnVector): Option[Dictionary] =
    field.flatMap(found => Option(found.get(vector).asInstanceOf[Dictionary]))
}

final class DictionaryVector(val from: WritableColumnVector, texts: DictionaryTexts) extends CastVector(from, from.dataType()) {
  private val ids = from.getDictionaryIds

  override def getUTF8String(row: Int): UTF8String = if (from.isNullAt(row)) null else textAt(row)

  /** The text of a row that is not null. */
  def textAt(row: Int): UTF8String = texts(ids.getDictId(row))
}

/** A base file whose dictionary texts are made once. */
class DictionaryReader(reader: PartitionReader[ColumnarBatch]) extends PartitionReader[ColumnarBatch] {
  private var texts = Array.empty[DictionaryTexts]

  override def next(): Boolean = reader.next()

  override def get(): ColumnarBatch = {
    val batch = reader.get()
    if (texts.length != batch.numCols()) texts = Array.fill(batch.numCols())(new DictionaryTexts)
    val columns = Array.tabulate(batch.numCols())(i => texts(i).over(batch.column(i)))
    new ColumnarBatch(columns, batch.numRows())
  }

  override def close(): Unit = reader.close()
}
