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
   * Small pages that are kept from one request to the next: Arrow's allocator clears two megabytes for every little
   * piece otherwise, and all of them give memory back only to ask for it again, which took half of the time of a
   * merge plan. And no threads for linear algebra, which nobody does here.
   */
  private val allocation = Map(
    "MIMALLOC_ALLOW_THP" -> "0",
    "MIMALLOC_PURGE_DELAY" -> "10000",
    "MALLOC_MMAP_THRESHOLD_" -> (32 << 20).toString,
    "MALLOC_TRIM_THRESHOLD_" -> (64 << 20).toString,
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
    val thread = new Thread(() => start(settings, count), "drawstring-warm-workers")
    thread.setDaemon(true)
    thread.start()
  }

  private def start(settings: WorkerSettings, count: Int): Unit = {
    (1 to count).foreach(_ => giveBack(new Worker(settings)))
    WarmUp.run(settings)
  }
}

/** One request to a worker and its answer: frames of a kind byte, a length and that many bytes.
  *
  * The worker sends at most `credits` Arrow frames ahead of what is consumed here, which bounds memory on both
  * sides and lets `close` end an answer early without killing the process.
  */
class WorkerCall private (worker: Worker) {
  private var finished = false

  /** Bytes of the current Arrow frame that are still in the pipe. */
  private var unread = 0

  /** The hidden rows of the base file, the first frame of a merge plan: how many rows it has, then a bit for each. */
  def hiddenRows(): HiddenRows = {
    val kind = nextFrame()
    if (kind != 'B') throw BridgeErrors.workerProtocol(kind)
    val bytes = ByteBuffer.wrap(body())
    new HiddenRows(bytes.getLong, java.util.Arrays.copyOfRange(bytes.array(), java.lang.Long.BYTES, bytes.capacity()))
  }

  /** The bytes of the Arrow stream, straight from the pipe: copies of whole frames would fill fresh memory. */
  def arrow(): InputStream = new InputStream {
    override def read(): Int = if (fill()) { unread -= 1; piped(worker.replies.readUnsignedByte()) } else -1

    override def read(target: Array[Byte], offset: Int, length: Int): Int =
      if (length == 0) 0
      else if (!fill()) -1
      else {
        val count = math.min(length, unread)
        piped(worker.replies.readFully(target, offset, count))
        unread -= count
        count
      }

    private def fill(): Boolean = {
      while (unread == 0 && !finished) if (nextFrame() == 'A') send('+') else passOver()
      unread > 0
    }
  }

  /** Gives the worker back; an answer that is not read to its end is called off first. A killed task does not wait. */
  def close(): Unit = if (!finished) {
    if (Option(TaskContext.get()).exists(_.isInterrupted())) discard()
    else
      try {
        send('!')
        while (!finished) nextFrame()
      } catch { case _: Exception => discard() }
  }

  /** Goes to the next frame and tells its kind; what was not read of the last one is passed over. */
  private def nextFrame(): Char = {
    passOver()
    val kind = piped(worker.replies.readByte().toChar)
    unread = piped(worker.replies.readInt())
    kind match {
      case 'Z' => release()
      case 'E' =>
        val error = Wire.parse(new String(body(), UTF_8))
        release()
        throw BridgeErrors.fromWire(error)
      case _ =>
    }
    kind
  }

  private def passOver(): Unit = while (unread > 0) {
    piped(worker.replies.readByte())
    unread -= 1 + worker.replies.skipBytes(unread - 1)
  }

  private def body(): Array[Byte] = {
    val bytes = new Array[Byte](unread)
    piped(worker.replies.readFully(bytes))
    unread = 0
    bytes
  }

  /** Reads from the pipe; when it breaks, the worker is gone. */
  private def piped[T](read: => T): T =
    try read
    catch {
      case error: IOException =>
        val ending = worker.ending
        discard()
        throw BridgeErrors.workerDied(ending, error)
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
