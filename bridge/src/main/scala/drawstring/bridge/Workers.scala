package drawstring.bridge

import java.io._
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ConcurrentLinkedDeque, TimeUnit}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger}

import org.apache.spark.{SparkEnv, SparkFiles, TaskContext}

/** A Python process beside this executor. It ends when its standard input does, so it cannot outlive the JVM. */
class Worker(val settings: WorkerSettings) {
  private val process = start()
  val requests = new DataOutputStream(new BufferedOutputStream(process.getOutputStream, 1 << 16))
  val replies = new DataInputStream(new BufferedInputStream(process.getInputStream, 1 << 18))

  def isAlive: Boolean = process.isAlive

  def destroy(): Unit = process.destroyForcibly()

  /** Why the process ended, for an error message. */
  def ending: String =
    if (process.waitFor(2, TimeUnit.SECONDS)) s"exit code ${process.exitValue()}" else "still running"

  private def start(): Process = {
    val builder = new ProcessBuilder(settings.python, "-m", "drawstring.spark.worker")
    builder.environment().put("PYTHONPATH", Worker.pythonPath(settings))
    builder.environment().put("PYTHONUNBUFFERED", "1")
    Worker.allocation.foreach { case (name, value) => builder.environment().putIfAbsent(name, value) }
    builder.redirectError(ProcessBuilder.Redirect.INHERIT)
    try builder.start()
    catch { case error: IOException => throw BridgeErrors.workerNotStarted(settings.python, error) }
  }
}

object Worker {

  /**
   * Small pages, kept for a second: Arrow's allocator clears two megabytes for every little piece otherwise, which took
   * half of the time of a merge plan. And no threads for linear algebra, which nobody does here.
   */
  private val allocation = Map(
    "MIMALLOC_ALLOW_THP" -> "0",
    "MIMALLOC_PURGE_DELAY" -> "1000",
    "OPENBLAS_NUM_THREADS" -> "1")

  /** A package sent by the driver comes first, so that both ends run the same version. */
  def pythonPath(settings: WorkerSettings): String = {
    val shipped =
      if (settings.packageZip.isEmpty || SparkEnv.get == null) None
      else Some(SparkFiles.get(settings.packageZip)).filter(new File(_).exists())
    (shipped.toSeq ++ Seq(settings.packagePath) ++ sys.env.get("PYTHONPATH")).filter(_.nonEmpty).mkString(File.pathSeparator)
  }
}

/** The idle workers of this JVM; a task borrows one for each slice. */
object WorkerPool {
  private val idle = new ConcurrentLinkedDeque[Worker]()
  private val idleCount = new AtomicInteger(0)
  private val warmed = new AtomicBoolean(false)
  private val maxIdle = math.max(4, Runtime.getRuntime.availableProcessors() * 2)

  def borrow(settings: WorkerSettings): Worker = borrowIdle(settings).getOrElse(new Worker(settings))

  /** A worker that has nothing to do, if there is one: to start another would take longer than it could save. */
  def borrowIdle(settings: WorkerSettings): Option[Worker] = {
    var worker = idle.pollFirst()
    while (worker != null) {
      idleCount.decrementAndGet()
      if (worker.isAlive && worker.settings == settings) return Some(worker)
      worker.destroy()
      worker = idle.pollFirst()
    }
    None
  }

  def giveBack(worker: Worker): Unit =
    if (idleCount.incrementAndGet() <= maxIdle) idle.addFirst(worker)
    else {
      idleCount.decrementAndGet()
      worker.destroy()
    }

  /** Starts workers before they are needed: Python takes longer to start than a small slice to read. */
  def warm(settings: WorkerSettings, count: Int): Unit = if (warmed.compareAndSet(false, true)) {
    val thread = new Thread(() => (1 to count).foreach(_ => giveBack(new Worker(settings))), "drawstring-warm-workers")
    thread.setDaemon(true)
    thread.start()
  }
}

/** One request to a worker and its answer: frames of a kind byte, a length and that many bytes.
  *
  * The worker sends at most `credits` Arrow frames ahead of what is consumed here, which bounds memory on both
  * sides and lets `close` end an answer early without killing the process.
  */
class WorkerCall private (worker: Worker) {
  private var finished = false

  /** The hidden rows of the base file, the first frame of a merge plan: how many rows it has, then a bit for each. */
  def hiddenRows(): HiddenRows = {
    val (kind, body) = frame()
    if (kind != 'B') throw BridgeErrors.workerProtocol(kind)
    val bytes = ByteBuffer.wrap(body)
    new HiddenRows(bytes.getLong, java.util.Arrays.copyOfRange(body, java.lang.Long.BYTES, body.length))
  }

  /** The bytes of the Arrow stream. */
  def arrow(): InputStream = new InputStream {
    private var chunk = Array.emptyByteArray
    private var at = 0

    override def read(): Int = if (fill()) { at += 1; chunk(at - 1) & 0xff } else -1

    override def read(target: Array[Byte], offset: Int, length: Int): Int =
      if (length == 0) 0
      else if (!fill()) -1
      else {
        val count = math.min(length, chunk.length - at)
        System.arraycopy(chunk, at, target, offset, count)
        at += count
        count
      }

    private def fill(): Boolean = {
      while (at == chunk.length && !finished) {
        val (kind, body) = frame()
        if (kind == 'A') { chunk = body; at = 0; send('+') }
      }
      at < chunk.length
    }
  }

  /** Gives the worker back; an answer that is not read to its end is called off first. A killed task does not wait. */
  def close(): Unit = if (!finished) {
    if (Option(TaskContext.get()).exists(_.isInterrupted())) discard()
    else
      try {
        send('!')
        while (!finished) frame()
      } catch { case _: Exception => discard() }
  }

  private def frame(): (Char, Array[Byte]) = {
    val (kind, body) =
      try {
        val kind = worker.replies.readByte().toChar
        val body = new Array[Byte](worker.replies.readInt())
        worker.replies.readFully(body)
        (kind, body)
      } catch {
        case error: IOException =>
          val ending = worker.ending
          discard()
          throw BridgeErrors.workerDied(ending, error)
      }
    kind match {
      case 'Z' => release()
      case 'E' =>
        release()
        throw BridgeErrors.fromWire(Wire.parse(new String(body, UTF_8)))
      case _ =>
    }
    (kind, body)
  }

  private def send(signal: Char): Unit = {
    worker.requests.writeByte(signal)
    worker.requests.flush()
  }

  private def release(): Unit = if (!finished) {
    finished = true
    WorkerPool.giveBack(worker)
  }

  private def discard(): Unit = if (!finished) {
    finished = true
    worker.destroy()
  }
}

object WorkerCall {
  val credits = 4

  def start(settings: WorkerSettings, request: String): WorkerCall = ask(WorkerPool.borrow(settings), request)

  def startIdle(settings: WorkerSettings, request: => String): Option[WorkerCall] =
    WorkerPool.borrowIdle(settings).map(ask(_, request))

  private def ask(worker: Worker, request: String): WorkerCall = {
    val bytes = request.getBytes(UTF_8)
    try {
      worker.requests.writeByte('R')
      worker.requests.writeInt(bytes.length)
      worker.requests.write(bytes)
      worker.requests.flush()
    } catch {
      case error: IOException =>
        val ending = worker.ending
        worker.destroy()
        throw BridgeErrors.workerDied(ending, error)
    }
    new WorkerCall(worker)
  }
}
