"""One engine, one question, one process: `python -m benchmarks.peers.measure ENGINE QUESTION PLACE RESULT.json`.

A fresh process per question keeps the first answer honest: no other question has filled a cache for it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.engines import ENGINES, QUESTIONS, Engine

REPEATS = 3


def main() -> int:
    """Fill the table if asked for, then measure."""
    name, question, place, result, rows = sys.argv[1:6]
    engine = ENGINES[name]
    spark = engine.session(Path(place).parent, memory="4g")
    spark.sparkContext.setLogLevel("ERROR")
    measured = (
        _filled(engine, spark, Path(place), int(rows))
        if question == "fill"
        else _timed(engine, spark, Path(place), question)
    )
    Path(result).write_text(json.dumps(measured), encoding="utf-8")
    spark.stop()
    return 0


def _filled(engine: Engine, spark: Any, place: Path, rows: int) -> dict[str, Any]:
    started = time.perf_counter()
    engine.fill(spark, place, count=rows)
    return {"seconds": time.perf_counter() - started}


def _timed(engine: Engine, spark: Any, place: Path, question: str) -> dict[str, Any]:
    _warm_up(spark, place.parent)
    seconds, processor = [], []
    for _ in range(1 + REPEATS):
        started, used = time.perf_counter(), processor_seconds()
        QUESTIONS[question](engine.load(spark, place))
        seconds.append(time.perf_counter() - started)
        processor.append(processor_seconds() - used)
    return {
        "first": seconds[0],
        "repeated": min(seconds[1:]),
        "first processor": processor[0],
        "repeated processor": min(processor[1:]),
        "all": seconds,
    }


_seen: dict[int, int] = {}
"""Ticks of every process that was ever seen below this one. Workers that end take theirs along otherwise."""
_seen_lock = threading.Lock()
_WATCH_SECONDS = 0.5


def processor_seconds() -> float:
    """Processor time of this process, the JVM it started and their Python workers, those that ended included.

    Steadier than the clock on a machine that does other work too.
    """
    _start_watching()
    _look()
    with _seen_lock:
        return sum(_seen.values()) / os.sysconf("SC_CLK_TCK")


@cache
def _start_watching() -> None:
    threading.Thread(target=_watch, name="processor time", daemon=True).start()


def _watch() -> None:
    while True:
        time.sleep(_WATCH_SECONDS)
        _look()


def _look() -> None:
    children, ticks = _processes()
    tree = [os.getpid()]
    while tree:
        process = tree.pop()
        tree += children.get(process, [])
        with _seen_lock:
            _seen[process] = max(_seen.get(process, 0), ticks.get(process, 0))


def _processes() -> tuple[dict[int, list[int]], dict[int, int]]:
    """Children and own ticks of every process; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        process = int(stat.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(int(field) for field in fields[11:13])
    return children, ticks


def _warm_up(spark: Any, folder: Path) -> None:
    """Run Spark's own Parquet reader and code generation once, so that no engine pays for them."""
    path = str(folder / "warm-up.parquet")
    spark.range(100_000).selectExpr("id", "id * 2.5 as amount", "cast(id as string) as s").write.mode(
        "overwrite"
    ).parquet(path)
    for _ in range(3):
        spark.read.parquet(path).write.format("noop").mode("overwrite").save()
        spark.read.parquet(path).count()


if __name__ == "__main__":
    sys.exit(main())
