package drawstring.bridge

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.FunctionCatalog
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.types._
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** `bucket(buckets, key)`: the bucket of Hudi's simple bucket index that a key falls into. */
object HoodieBucketFunction extends UnboundFunction {
  override val name: String = "bucket"

  override def description(): String = "bucket(buckets, key): the bucket of Hudi's simple bucket index"

  override def bind(input: StructType): BoundFunction = {
    val types = input.fields.map(_.dataType)
    types match {
      case Array(IntegerType, key @ (IntegerType | LongType)) => new HoodieBucket(key)
      case Array(IntegerType, key: StringType) => new HoodieBucket(key)
      case _ => throw new UnsupportedOperationException(s"bucket(int, int, bigint or string), not ${input.catalogString}")
    }
  }

  /** Java's hash of a list of one text, without its sign. */
  def bucket(key: String, buckets: Int): Int =
    ((31 + (if (key == null) 0 else key.hashCode)) & Int.MaxValue) % buckets
}

class HoodieBucket(key: DataType) extends ScalarFunction[Integer] {
  override def inputTypes(): Array[DataType] = Array(IntegerType, key)

  override def resultType(): DataType = IntegerType

  override def isResultNullable: Boolean = false

  override def name(): String = "bucket"

  override def canonicalName(): String = "drawstring.bucket(int, key)"

  override def produceResult(input: InternalRow): Integer = {
    val value = if (input.isNullAt(1)) null else input.get(1, key)
    HoodieBucketFunction.bucket(if (value == null) null else value.toString, input.getInt(0))
  }

  override def equals(other: Any): Boolean = other.isInstanceOf[HoodieBucket]

  override def hashCode(): Int = canonicalName().hashCode
}

/** The functions for tables that were loaded by their path, which no catalog stands behind. */
object HoodieFunctions extends FunctionCatalog {
  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = ()

  override def name(): String = "hudi"

  override def listFunctions(namespace: Array[String]): Array[Identifier] =
    Array(Identifier.of(Array.empty, HoodieBucketFunction.name))

  override def loadFunction(ident: Identifier): UnboundFunction = find(ident).getOrElse(
    throw new org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException(ident))

  /** Ours among the functions that transforms name. */
  def find(ident: Identifier): Option[UnboundFunction] =
    if (ident.namespace().isEmpty && ident.name() == HoodieBucketFunction.name) Some(HoodieBucketFunction) else None
}
