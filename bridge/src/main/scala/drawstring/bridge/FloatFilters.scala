package drawstring.bridge

import org.apache.spark.sql.sources._
import org.apache.spark.sql.types._

/** Filters on float and double columns, made safe for Parquet's reader.
  *
  * Spark holds NaN to be equal to itself and greater than everything, and -0.0 equal to 0.0. Parquet knows neither: it
  * compares zeros by their sign, and the bounds that some writers leave in footers pass NaN over.
  */
object FloatFilters {

  /** The filters as they may be pushed to any file: comparisons with NaN are left to Spark, those with zero mean both. */
  def signless(filters: Array[Filter]): Array[Filter] = filters.flatMap(weakened(_, signlessLeaf))

  /** What is left of the filters for files whose bounds may leave NaN out: nothing that is true for NaN. */
  def withoutNaN(filters: Array[Filter], schema: StructType): Array[Filter] =
    filters.flatMap(weakened(_, leaf => if (isFloating(leaf, schema)) falseForNaN(leaf) else Some(leaf)))

  /** The filter with its leaves replaced; None for a leaf allows every row, so its place in the tree decides. */
  private def weakened(filter: Filter, leaf: Filter => Option[Filter]): Option[Filter] = filter match {
    case And(left, right) =>
      (weakened(left, leaf), weakened(right, leaf)) match {
        case (Some(l), Some(r)) => Some(And(l, r))
        case (l, r) => l.orElse(r)
      }
    case Or(left, right) => for (l <- weakened(left, leaf); r <- weakened(right, leaf)) yield Or(l, r)
    // A part that allows more rows would make its negation allow fewer: the whole stays, or goes.
    case Not(part) => if (weakened(part, leaf).contains(part)) Some(filter) else None
    case other => leaf(other)
  }

  private def signlessLeaf(filter: Filter): Option[Filter] = filter match {
    case In(_, values) if values.exists(isNaN) => None
    case comparison if operand(comparison).exists(isNaN) => None
    case EqualTo(name, value) if isZero(value) => Some(bothZeros(value)(EqualTo(name, _)))
    case EqualNullSafe(name, value) if isZero(value) => Some(bothZeros(value)(EqualNullSafe(name, _)))
    case GreaterThanOrEqual(name, value) if isZero(value) => Some(GreaterThanOrEqual(name, zeros(value)._1))
    case LessThanOrEqual(name, value) if isZero(value) => Some(LessThanOrEqual(name, zeros(value)._2))
    // Spark drops one of two values that it holds to be equal from a list, so the zeros stand beside it.
    case In(name, values) if values.exists(isZero) =>
      val zero = bothZeros(values.find(isZero).get)(EqualTo(name, _))
      val others = values.filterNot(isZero)
      Some(if (others.isEmpty) zero else Or(zero, In(name, others)))
    case other => Some(other)
  }

  /** A leaf that NaN does not satisfy; the operand is no NaN, see `signless`. */
  private def falseForNaN(filter: Filter): Option[Filter] = filter match {
    case _: EqualTo | _: EqualNullSafe | _: LessThan | _: LessThanOrEqual | _: In | _: IsNull | _: IsNotNull => Some(filter)
    case _ => None
  }

  private def operand(filter: Filter): Option[Any] = filter match {
    case EqualTo(_, value) => Some(value)
    case EqualNullSafe(_, value) => Some(value)
    case GreaterThan(_, value) => Some(value)
    case GreaterThanOrEqual(_, value) => Some(value)
    case LessThan(_, value) => Some(value)
    case LessThanOrEqual(_, value) => Some(value)
    case _ => None
  }

  private def bothZeros(value: Any)(make: Any => Filter): Filter = {
    val (minus, plus) = zeros(value)
    Or(make(minus), make(plus))
  }

  private def zeros(value: Any): (Any, Any) = value match {
    case _: java.lang.Float => (-0.0f, 0.0f)
    case _ => (-0.0d, 0.0d)
  }

  private def isZero(value: Any): Boolean = value match {
    case number: java.lang.Float => number.floatValue == 0.0f
    case number: java.lang.Double => number.doubleValue == 0.0d
    case _ => false
  }

  private def isNaN(value: Any): Boolean = value match {
    case number: java.lang.Float => number.isNaN
    case number: java.lang.Double => number.isNaN
    case _ => false
  }

  /** Whether a leaf is about a float or a double; a column that is not found may be one. */
  private def isFloating(filter: Filter, schema: StructType): Boolean =
    filter.v2references.exists(path => typeOf(path.toSeq, schema).forall(found => found == FloatType || found == DoubleType))

  private def typeOf(path: Seq[String], struct: StructType): Option[DataType] =
    struct.fields.find(_.name.equalsIgnoreCase(path.head)).map(_.dataType).flatMap {
      case inner: StructType if path.tail.nonEmpty => typeOf(path.tail, inner)
      case found if path.tail.isEmpty => Some(found)
      case _ => None
    }
}
