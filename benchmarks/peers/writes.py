"""Writes beside the peers: `make bench-peers ARGS='--writes'`, with `--merge-on-read` to such tables.

Each engine writes the same rows (4 M × 10 columns, 8 partitions, 16 files) in a process of its own, then upserts some
of them (5 %, merge-on-read 10 %), 100 of them, and deletes 1 %. Iceberg and Delta do it by MERGE and DELETE,
copy-on-write or with delete files and deletion vectors; Parquet only writes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers import mor_table
from benchmarks.peers.engines import COLUMNS, ENGINES, Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENGINES_ASKED = ("parquet", "hudi", "drawstring", "iceberg", "delta")
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
STEPS = ("bulk write", "upsert", "upsert 100 rows", "delete 1 %")
_SQL = {
    "iceberg": "using iceberg partitioned by (p) tblproperties ('format-version'='2', {modes})",
    "delta": "using delta partitioned by (p) location '{place}' "
    "tblproperties ('delta.enableDeletionVectors'='{vectors}')",
}
_EVERY = {COPY_ON_WRITE: 20, MERGE_ON_READ: 10}
"""One row of so many is upserted."""
_CHANGED = "select id, p, cast({ts} as bigint) as ts, concat('new-', name) as name, city, amount + 1 as amount, price, "
_CHANGED += "quantity + 1 as quantity, event_time, md5(note) as note from source where {chosen}"
_HUDI = {
    "hoodie.table.name": "bench_writes",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bulkinsert.sort.mode": "NONE",
}


def report(folder: Path, rows: int, engines: list[str], kind: str = COPY_ON_WRITE) -> str:
    """Measure every engine, one after the other, and return the table."""
    figures = {name: _measured(name, folder, rows, kind) for name in engines}
    lines = [f"{'seconds':20}" + "".join(f"{name:>14}" for name in figures)]
    for step in STEPS:
        cells = "".join(
            f"{found[step]:14.2f}" if step in found else f"{'-':>14}" for found in figures.values()
        )
        lines.append(f"{step:20}{cells}")
    ours, hudi = figures.get("drawstring"), figures.get("hudi")
    if ours and hudi:
        lines.append(f"{'x Hudi, as fast':20}" + ", ".join(f"{s}: {hudi[s] / ours[s]:.1f}" for s in STEPS))
    return "\n".join(lines)


def _measured(name: str, folder: Path, rows: int, kind: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as temporary:
        result = Path(temporary) / "result.json"
        command = [
            sys.executable,
            "-m",
            "benchmarks.peers.writes",
            name,
            str(folder),
            str(result),
            str(rows),
            kind,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not result.exists():
            raise RuntimeError(f"{name}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        found: dict[str, float] = json.loads(result.read_text(encoding="utf-8"))
    print(f"{name}: {found}", flush=True)
    return found


def main() -> int:
    """Measure one engine in this process."""
    name, folder, result, rows, kind = sys.argv[1:6]
    engine = ENGINES.get(name) or Engine(name)
    place = Path(folder).resolve() / f"writes-{name}"
    shutil.rmtree(place, ignore_errors=True)
    spark = engine.session(place, memory="6g")
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(1000).selectExpr("sum(id)").collect()
    seconds = {}
    for step, act in _steps(engine, spark, place, int(rows), kind):
        start = time.perf_counter()
        act()
        seconds[step] = time.perf_counter() - start
    Path(result).write_text(json.dumps(seconds), encoding="utf-8")
    spark.stop()
    shutil.rmtree(place, ignore_errors=True)
    return 0


def _steps(
    engine: Engine, spark: SparkSession, place: Path, count: int, kind: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    source = mor_table.rows(spark, count)
    source.createOrReplaceTempView("source")
    some = spark.sql(_CHANGED.format(ts=20, chosen=f"id % {_EVERY[kind]} = 3"))
    hundred = spark.sql(_CHANGED.format(ts=30, chosen=f"id % {count // 100} = 7"))
    gone = source.where("id % 100 = 5")
    if engine.name == "parquet":
        yield "bulk write", lambda: source.write.partitionBy("p").parquet(str(place / "t"))
    elif engine.name in _SQL:
        yield from _by_sql(engine, spark, place, kind, some, hundred)
    else:
        write = _hudi_writer(place, kind)
        yield "bulk write", lambda: write(source, "bulk_insert", "overwrite")
        yield "upsert", lambda: write(some, "upsert")
        yield "upsert 100 rows", lambda: write(hundred, "upsert")
        yield "delete 1 %", lambda: write(gone, "delete")


def _hudi_writer(place: Path, kind: str) -> Callable[..., None]:
    def write(rows: DataFrame, operation: str, mode: str = "append") -> None:
        fixed = {"hoodie.datasource.write.table.type": kind, "hoodie.datasource.write.operation": operation}
        options = {**_HUDI, **fixed}
        rows.write.format("hudi").options(**options).mode(mode).save(str(place / "t"))

    return write


def _by_sql(
    engine: Engine, spark: SparkSession, place: Path, kind: str, some: DataFrame, hundred: DataFrame
) -> Iterator[tuple[str, Callable[[], Any]]]:
    table = engine.table
    if table.startswith("bench."):
        spark.sql("create namespace if not exists bench.db")
    merged = kind == MERGE_ON_READ
    mode = "merge-on-read" if merged else "copy-on-write"
    modes = ", ".join(f"'write.{what}.mode'='{mode}'" for what in ("merge", "update", "delete"))
    vectors = str(merged).lower()
    made = _SQL[engine.name].format(place=place / "t", modes=modes, vectors=vectors)
    spark.sql(f"create table {table} ({COLUMNS}) {made}")
    merge = (
        f"merge into {table} t using {{rows}} u on t.id = u.id and t.p = u.p when matched then update set *"
    )
    some.createOrReplaceTempView("some")
    hundred.createOrReplaceTempView("hundred")
    yield "bulk write", lambda: spark.sql(f"insert into {table} select * from source")
    yield "upsert", lambda: spark.sql(merge.format(rows="some"))
    yield "upsert 100 rows", lambda: spark.sql(merge.format(rows="hundred"))
    yield "delete 1 %", lambda: spark.sql(f"delete from {table} where id % 100 = 5")


if __name__ == "__main__":
    sys.exit(main())
