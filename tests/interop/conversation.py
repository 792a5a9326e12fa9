"""An engine that is asked one action after the other, a line of JSON each way: `python conversation.py hudi`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
_ANSWER = "ANSWER "
Action = dict[str, Any]


class EngineError(RuntimeError):
    """What an engine raised."""


class Engine:
    """One engine at work in a process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests" / "interop")]
        environment = {**os.environ, "TZ": "UTC", "PYTHONPATH": os.pathsep.join(paths)}
        self._errors = folder / "stderr"
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, __file__, name],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("w"),
            text=True,
        )

    def ask(self, **action: Any) -> Any:
        """Run one action and return its answer; raises `EngineError` with what the engine raised.

        Threads may ask at once: they take turns.
        """
        with self._turn:
            return self._ask(action)

    def _ask(self, action: Action) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(action) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_ANSWER):
                answer = json.loads(line[len(_ANSWER) :])
                if "error" in answer:
                    raise EngineError(answer["error"])
                return answer["answer"]
        raise EngineError(f"the engine ended: {self._errors.read_text()[-4000:]}")

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _session(engine: str) -> SparkSession:
    if engine == "hudi":
        from hudi_session import hudi_session

        return hudi_session("interop", java_options="-XX:TieredStopAtLevel=1")
    import drawstring

    conf = {
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={Path.cwd()}",
    }
    return drawstring.session("interop", master="local[2]", conf=conf)


def _act(spark: SparkSession, action: Action) -> Any:
    if action["do"] == "write":
        frame = spark.createDataFrame([tuple(row) for row in action["rows"]], action["schema"])
        frame = frame.selectExpr(*action["select"]) if action.get("select") else frame
        frame.write.format("hudi").options(**action["options"]).mode(action.get("mode", "append")).save(
            action["path"]
        )
        return "written"
    if action["do"] == "sql":
        spark.sql(action["statement"]).collect()
        return "done"
    if action["do"] == "reads":
        return _reads(spark, action)
    if action["do"] == "stream":
        return _streamed(spark, action)
    if action["do"] == "sink":
        return _sunk(spark, action)
    frame = spark.read.format("hudi").options(**action["options"]).load(action["path"])
    if action["where"]:
        frame = frame.where(action["where"])
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    return {"schema": frame.schema.simpleString(), "rows": json.loads(json.dumps(rows, default=str))}


def _reads(spark: SparkSession, action: Action) -> Any:
    answers = []
    for read in action["reads"]:
        # Settings of the session win over options where Hudi asks them first.
        for key, value in read.get("conf", {}).items():
            spark.conf.set(key, value)
        frame = spark.read.format("hudi").options(**read.get("options", {})).load(action["path"])
        if read.get("where"):
            frame = frame.where(read["where"])
        answers.append([list(row) for row in frame.select(*action["columns"]).collect()])
        for key in read.get("conf", {}):
            spark.conf.unset(key)
    return answers


def _streamed(spark: SparkSession, action: Action) -> Any:
    target, checkpoint = f"{action['folder']}/rows", f"{action['folder']}/checkpoint"
    frame = spark.readStream.format("hudi").options(**action["options"]).load(action["path"])
    writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(once=True).start(target).awaitTermination()
    offsets = sorted(Path(checkpoint, "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    rows = [row.asDict(recursive=True) for row in spark.read.parquet(target).collect()]
    return {
        "rows": json.loads(json.dumps(rows, default=str)),
        "offset": offsets[-1].read_text(encoding="utf-8").splitlines()[-1],
    }


def _sunk(spark: SparkSession, action: Action) -> str:
    reader = spark.readStream.schema(action["schema"]).option("maxFilesPerTrigger", 1)
    writer = reader.json(action["source"]).writeStream.format("hudi").options(**action["options"])
    writer = writer.option("checkpointLocation", action["checkpoint"]).trigger(availableNow=True)
    writer.start(action["path"]).awaitTermination()
    return "written"


def _told(error: Exception) -> str:
    """What an engine raised, short, with the causes that stand at the end of a long Java stack."""
    text = f"{type(error).__name__}: {error}"
    causes = [line for line in text.splitlines() if line.startswith("Caused by")]
    return "\n".join([text[:2000], *dict.fromkeys(causes)])[:4000]


def main() -> int:
    """Answer until the questions end."""
    spark = _session(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = {"answer": _act(spark, json.loads(line))}
        except Exception as error:
            answer = {"error": _told(error)}
        print(_ANSWER + json.dumps(answer, default=str), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
