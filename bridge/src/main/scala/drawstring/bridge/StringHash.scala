package drawstring.bridge

import org.apache.spark.sql.api.java.UDF1

/** Java's hash of a text, of which Hudi makes the numbers of its bucket index; that of null is 0. */
class StringHash extends UDF1[String, Integer] {
  override def call(text: String): Integer = if (text == null) 0 else text.hashCode
}
