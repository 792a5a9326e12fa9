"""Writes beside the peers: `make bench-peers ARGS='--writes'`; `--kinds` chooses the kinds of tables.

Each engine writes the same rows (4 M × 10 columns, 8 partitions, 16 files) in a process of its own, then upserts some
of them (5 %, merge-on-read 10 %), 100 of them, deletes 1 %, and compacts what is merge-on-read. Iceberg and Delta do it
by MERGE and DELETE, copy-on-write or with delete files and deletion vectors, Paimon by INSERT into a table with a
primary key; Parquet only writes. The clock's seconds stand beside the processor's, which a busy machine disturbs less.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from benchmarks.peers import processes
from benchmarks.peers.engines import ENGINES, Engine
from benchmarks.peers.measure import processor_seconds
from benchmarks.peers.write_steps import STEPS, steps

Seconds = dict[str, tuple[float, float]]
"""By step: of the clock, of the processor."""


def report(folder: Path, rows: int, engines: list[str], kind: str) -> str:
    """Measure every engine, one after the other, and return the table."""
    figures = {name: _measured(name, folder, rows, kind) for name in engines}
    (folder / f"writes-{kind}.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    head = "".join(f"{name:>16}" for name in figures)
    lines = [f"{kind + ', clock and processor':36}{head}"]
    for step in STEPS:
        cells = [
            f"{'/'.join(f'{s:.2f}' for s in found.get(step, ())) or '-':>16}" for found in figures.values()
        ]
        lines.append(f"{step:36}{''.join(cells)}")
    lines += [
        f"drawstring against {name}, times as fast: " + _ratios(figures[name], figures["drawstring"])
        for name in figures
        if "drawstring" in figures and name != "drawstring"
    ]
    return "\n".join(lines)


def _ratios(other: Seconds, ours: Seconds) -> str:
    return ", ".join(
        f"{step} {other[step][0] / ours[step][0]:.2f} ({other[step][1] / max(ours[step][1], 0.01):.2f})"
        for step in STEPS
        if step in other and step in ours
    )


def _measured(name: str, folder: Path, rows: int, kind: str) -> Seconds:
    found: Seconds = processes.measured("benchmarks.peers.writes", name, folder, rows, kind) or {}
    print(f"{name}, {kind}: {found}", flush=True)
    return found


def main() -> int:
    """Measure one engine in this process."""
    name, result, folder, rows, kind = sys.argv[1:6]
    engine = ENGINES.get(name) or Engine(name)
    place = Path(folder).resolve() / f"writes-{name}"
    shutil.rmtree(place, ignore_errors=True)
    spark = engine.session(place, memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(1000).selectExpr("sum(id)").collect()
    seconds: Seconds = {}
    for step, act in steps(engine, spark, place, int(rows), kind):
        start, used = time.perf_counter(), processor_seconds()
        act()
        seconds[step] = time.perf_counter() - start, processor_seconds() - used
        # After every step: an engine that fails in one has shown the ones before.
        Path(result).write_text(json.dumps(seconds), encoding="utf-8")
    spark.stop()
    shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
