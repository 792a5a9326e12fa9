package drawstring.bridge

import org.apache.spark.sql.{Dataset, Row}

/** What Python implements: all knowledge of tables. Messages are versioned JSON; see `Wire`. */
trait Planner {

  /** Answers one question; errors come back as a message, never as an exception. */
  def request(kind: String, json: String): String

  /** Writes `data` as `json` describes. */
  def write(data: Dataset[Row], json: String): String
}
