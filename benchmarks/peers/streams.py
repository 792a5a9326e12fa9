"""A backlog of commits as a stream, by Hudi's source and by drawstring's: `make bench-peers ARGS='--streams'`.

Both read one table, of 100 commits of 40,000 rows × 10 columns each, from its first commit to its last, into a sink
that throws rows away; all columns, then two of them. Each engine and question has a process of its own, and is asked
once to warm up. The clock's seconds stand beside the processor's, which a busy machine disturbs less.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import drawstring
from benchmarks.peers.engines import ENGINES
from benchmarks.peers.measure import processor_seconds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS, ROWS, COLUMNS = 100, 40_000, 10
QUESTIONS = {"all columns": None, "two columns": ("id", "c3")}
_OPTIONS = {
    "hoodie.table.name": "backlog",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.operation": "bulk_insert",
    # Everything stays to be read.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
_TURNS = 3


def report(folder: Path, commits: int) -> str:
    """Make the table if it is missing, measure both engines in turns and return the figures."""
    place = _filled(folder, commits)
    lines = [f"a backlog of {commits} commits × {ROWS:,} rows: seconds of the clock, of the processor"]
    for question in QUESTIONS:
        figures = {name: _measured(name, question, place) for name in ("hudi", "drawstring")}
        for name, (clock, processor) in figures.items():
            speed = commits * ROWS / clock
            lines.append(f"{question:14}{name:12}{clock:8.2f}{processor:8.2f}   {speed:12,.0f} rows/s")
        pairs = zip(figures["hudi"], figures["drawstring"], strict=True)
        ratios = [theirs / max(ours, 0.01) for theirs, ours in pairs]
        lines.append(
            f"{question:14}drawstring is {ratios[0]:.2f} times as fast, by the processor {ratios[1]:.2f}"
        )
    return "\n".join(lines)


def _filled(folder: Path, commits: int) -> Path:
    place = (folder / f"backlog-{commits}").resolve()
    done = place.parent / f"{place.name}.done"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        table = drawstring.create_table(str(place), _rows(0).schema, options=_OPTIONS)
        for number in range(commits):
            table.write(_rows(number), options=_OPTIONS)
        done.touch()
    return place


def _rows(number: int) -> pa.Table:
    """The rows of one commit: keys, and columns of four types."""
    keys = np.arange(number * ROWS, (number + 1) * ROWS)
    chosen = np.random.default_rng(number)
    columns: dict[str, Any] = {"id": keys}
    makes = (
        lambda: chosen.integers(0, 1000, ROWS),
        lambda: chosen.random(ROWS),
        lambda: pa.array(chosen.integers(0, 10_000, ROWS)).cast(pa.string()),
    )
    for column in range(1, COLUMNS):
        columns[f"c{column}"] = makes[column % len(makes)]()
    return pa.table(columns)


def _measured(name: str, question: str, place: Path) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.peers.streams", name, question, str(place), str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not result.exists():
            raise RuntimeError(f"{name}, {question}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        turns = json.loads(result.read_text(encoding="utf-8"))
    print(f"{name}, {question}: {turns}", flush=True)
    clock, processor = (min(values) for values in zip(*turns, strict=True))
    return clock, processor


def main() -> int:
    """Measure one engine in this process."""
    name, question, place, result = sys.argv[1:5]
    spark = ENGINES[name].session(Path(place).parent, memory="4g")
    spark.sparkContext.setLogLevel("ERROR")
    turns = []
    for _ in range(1 + _TURNS):
        started, used = time.perf_counter(), processor_seconds()
        rows = _drained(spark, place, QUESTIONS[question])
        turns.append((time.perf_counter() - started, processor_seconds() - used))
        assert rows == int(place.rsplit("-", 1)[1]) * ROWS, f"{rows:,} rows came"
    Path(result).write_text(json.dumps(turns[1:]), encoding="utf-8")
    spark.stop()
    return 0


def _drained(spark: SparkSession, place: str, columns: tuple[str, ...] | None) -> int:
    """Read everything that is there, and return how many rows came."""
    frame = spark.readStream.format("hudi").load(place)
    chosen = frame.select(*columns) if columns else frame
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = chosen.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


if __name__ == "__main__":
    sys.exit(main())
