package drawstring.bridge

/** How executors start Python workers: the interpreter, and where it finds the drawstring package. */
case class WorkerSettings(python: String, packagePath: String, packageZip: String)

object WorkerSettings {
  @volatile private var settings = WorkerSettings("python3", "", "")

  /** Called when a planner attaches. */
  def set(python: String, packagePath: String, packageZip: String): Unit =
    settings = WorkerSettings(python, packagePath, packageZip)

  /** Starts workers in this JVM, for sessions whose executor it is. */
  def warm(count: Int): Unit = WorkerPool.warm(settings, count)

  def current: WorkerSettings = settings
}
