"""An engine that is asked one action after the other, a line of JSON each way: `python conversation.py hudi`.

`engine.run` starts a process for each list of actions; where engines take turns, each stays up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
_ANSWER = "ANSWER "
Action = dict[str, Any]


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
        """Run one action and return its answer; raises RuntimeError with what the engine raised.

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
                    raise RuntimeError(f"{action}: {answer['error']}")
                return answer["answer"]
        raise RuntimeError(f"the engine ended: {self._errors.read_text()[-4000:]}")

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _write(spark: SparkSession, action: Action) -> Any:
    frame = spark.createDataFrame([tuple(row) for row in action["rows"]], action["schema"])
    frame.write.format("hudi").options(**action["options"]).mode("append").save(action["path"])
    return "written"


def _read(spark: SparkSession, action: Action) -> Any:
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


def main() -> int:
    """Answer until the questions end."""
    from engine import _session, told

    spark = _session(sys.argv[1])
    for line in sys.stdin:
        action = json.loads(line)
        try:
            answer = {"answer": {"write": _write, "read": _read}[action["do"]](spark, action)}
        except Exception as error:
            answer = {"error": told(error)}
        print(_ANSWER + json.dumps(answer, default=str), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
