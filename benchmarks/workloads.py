"""The workloads; each yields figures. Sizes shrink with the scale, promises hold for scale 1."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

import drawstring
from benchmarks import tables
from benchmarks.measure import Figure, consume, median_seconds, ratio, seconds
from benchmarks.pushdowns import pushdowns
from benchmarks.tables import Shape
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.schema.meta_columns import META_COLUMNS


@dataclass
class Bench:
    """Where tables lie, how large they are, and the one Spark session of a run."""

    folder: Path
    scale: float = 1.0

    def rows(self, count: int) -> int:
        """A number of rows at this scale."""
        return max(1000, int(count * self.scale))

    def table(self, name: str, make: Callable[[Path], Path]) -> str:
        """The path of a table, made when it is first asked for and kept for later runs at the same scale."""
        path = self.folder / f"{name}-{self.scale:g}"
        if not (self.folder / f"{path.name}.done").exists():
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
            make(path)
            (self.folder / f"{path.name}.done").touch()
        return str(path)

    @cached_property
    def spark(self) -> Any:
        """A session with drawstring."""
        conf = {
            "spark.driver.memory": "6g",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "8",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        session = drawstring.session("drawstring-bench", master="local[2]", conf=conf)
        session.sparkContext.setLogLevel("ERROR")
        return session

    def hudi(self, path: str, **options: str) -> Any:
        """A read of a table, through V2 unless the options say otherwise."""
        reader = self.spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", "true")
        return reader.options(**options).load(path)

    def parquet(self, path: str) -> Any:
        """Spark's own read of the same files."""
        files = sorted(str(file) for file in Path(path).rglob("*.parquet"))
        return self.spark.read.parquet(*files)


def scan(bench: Bench) -> Iterator[Figure]:
    """V2 scans of copy-on-write tables against Spark's Parquet reader over the same files."""
    for columns in (7, 50):
        yield from _scan_columns(bench, columns)


def _scan_columns(bench: Bench, columns: int) -> Iterator[Figure]:
    shape = Shape(8, bench.rows(1_000_000), columns, partitions=4)
    path = bench.table(f"cow{columns}", lambda path: tables.copy_on_write(path, shape))
    hudi, parquet = bench.hudi(path), bench.parquet(path)
    narrow, narrow_parquet = hudi.select("id", "c4"), parquet.select("id", "c4")
    what = f"{shape.rows / 1e6:g} M rows, {columns} columns"
    yield ratio("scan", f"{what}, all", lambda: consume(hudi), lambda: consume(parquet), limit=1.05)
    # A few tenths of a second each: more turns, for the noise is as large as what is measured.
    yield ratio(
        "scan", f"{what}, two", lambda: consume(narrow), lambda: consume(narrow_parquet), limit=1.05, times=15
    )


def planning(bench: Bench) -> Iterator[Figure]:
    """A filtered scan of ten thousand files, planned by Spark and without it."""
    shape = Shape(10_000, 10, 7, partitions=100)
    path = bench.table("files10k", lambda path: tables.copy_on_write(path, shape))
    frame = bench.hudi(path)

    def by_spark() -> None:
        filtered = frame.where("p = '7' AND c4 > 10").select("id", "c4")
        filtered._jdf.queryExecution().executedPlan().toString()

    def by_python() -> None:
        drawstring.open_table(path).snapshot().scan().where("p = '7' AND c4 > 10").plan()

    yield Figure("planning", "10,000 files, filter, warm, in Spark", median_seconds(by_spark), "s", 0.5)
    yield Figure("planning", "10,000 files, filter, warm, open_table", median_seconds(by_python), "s", 0.5)


def listing(bench: Bench) -> Iterator[Figure]:
    """Opening and planning a hundred thousand files that a metadata table lists, in a fresh process."""
    shape = Shape(100_000, 1, 10, partitions=5000)
    path = bench.table("files100k", lambda path: tables.listed(path, shape))
    command = [sys.executable, "-m", "benchmarks.cold_plan", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    tasks, cold, warm, megabytes, found, _, first, second = done.stdout.split()
    detail = f"{int(tasks):,} tasks"
    of_filter = f"{int(found):,} tasks"
    yield Figure("listing", "100,000 files, 5,000 partitions, cold", float(cold), "s", 3.0, detail=detail)
    yield Figure("listing", "100,000 files, 5,000 partitions, warm", float(warm), "s", 0.5)
    yield Figure("listing", "100,000 files, 5,000 partitions, memory", float(megabytes), "MB", 500)
    # The statistics are read with the first filter; what precedes it is counted above.
    yield Figure(
        "listing", "100,000 files, first filter on a column", float(first), "s", 2.0, detail=of_filter
    )
    yield Figure("listing", "100,000 files, next filter on a column", float(second), "s", 0.5)


def bulk_insert(bench: Bench) -> Iterator[Figure]:
    """Bulk insert against Spark's partitioned Parquet write of the same rows."""
    count = bench.rows(8_000_000)
    generated = [f"CAST((id * {7 + n}) % 1000003 AS BIGINT) AS n{n}" for n in range(3)]
    generated += [f"rand({n}) AS d{n}" for n in range(2)]
    generated += [f"concat('text number ', CAST(id % {997 + n} AS STRING)) AS s{n}" for n in range(2)]
    source = bench.spark.range(count).selectExpr("id", "id % 8 AS p", "id AS ts", *generated)
    options = {
        "hoodie.table.name": "bulk",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    with tempfile.TemporaryDirectory(dir=bench.folder) as scratch:
        target = f"{scratch}/table"
        yield ratio(
            "bulk insert",
            f"{count / 1e6:g} M rows, 10 columns, 8 partitions",
            lambda: source.write.format("hudi").options(**options).mode("overwrite").save(f"{target}-hudi"),
            lambda: source.write.partitionBy("p").mode("overwrite").parquet(f"{target}-parquet"),
            limit=1.25,
            times=2,
            warm_up=1,
        )


def merge(bench: Bench) -> Iterator[Figure]:
    """Merge-on-read snapshots against the read-optimised scan of the same table."""
    shape = Shape(16, bench.rows(250_000), 10, partitions=4, updated=0.1)
    path = bench.table("mor", lambda path: tables.merge_on_read(path, shape))
    optimised = bench.hudi(path, **{"hoodie.datasource.query.type": "read_optimized"})
    base = median_seconds(lambda: consume(optimised), warm_up=2)
    what = f"{shape.rows / 1e6:g} M rows, 10 % updated"
    # A merge plan is cached by file names: each of these tables is met for the first time. The first one warms up.
    fresh = [bench.table(f"mor-{n}", lambda path: tables.merge_on_read(path, shape)) for n in range(4)]
    first = statistics.median([seconds(lambda path=path: consume(bench.hudi(path))) for path in fresh][1:])
    yield Figure(
        "merge", f"{what}, first query", first / base, "×", 1.6, detail=f"{first:.2f} s against {base:.2f} s"
    )
    snapshot = bench.hudi(path)
    yield ratio(
        "merge", f"{what}, repeated", lambda: consume(snapshot), lambda: consume(optimised), limit=1.2
    )
    two, two_optimised = snapshot.select("id", "c4"), optimised.select("id", "c4")
    yield ratio(
        "merge", f"{what}, two columns", lambda: consume(two), lambda: consume(two_optimised), limit=1.2
    )
    yield ratio("merge", f"{what}, COUNT(*)", lambda: snapshot.count(), lambda: optimised.count(), limit=1.2)


def evolved(bench: Bench) -> Iterator[Figure]:
    """A scan through an evolved schema (int to long, one column added) against the unevolved table."""
    shape = Shape(8, bench.rows(1_000_000), 7, partitions=4)
    plain = bench.table("cow7", lambda path: tables.copy_on_write(path, shape))
    newer = _evolved_schema(tables.rows_of(Shape(1, 1, 7)).schema)
    changed = bench.table("cow7evolved", lambda path: tables.copy_on_write(path, shape, schema=newer))
    now, before = bench.hudi(changed), bench.hudi(plain)
    what = f"{shape.rows / 1e6:g} M rows, promoted and added column"
    yield ratio("evolved", what, lambda: consume(now), lambda: consume(before), limit=1.15)


def avro(bench: Bench) -> Iterator[Figure]:
    """Log blocks decoded to Arrow and encoded from it, in this process, on one core's worth of work."""
    from benchmarks import avro_decode, avro_encode

    count = bench.rows(200_000)
    for what, measured in (("decoded", avro_decode), ("encoded", avro_encode)):
        speed = measured.rows_per_second(count)
        yield Figure("avro", f"{count:,} records of 8 columns, {what}", speed, "rows/s", 1e6, at_least=True)


def _evolved_schema(schema: pa.Schema) -> pa.Schema:
    position = schema.get_field_index("c6")
    widened = schema.set(position, pa.field("c6", pa.int64()))
    return widened.append(pa.field("added", pa.string()))


def streams(bench: Bench) -> Iterator[Figure]:
    """What a trigger of a streaming read costs the driver on a table of a hundred thousand files."""
    commits, files = 1000, 100
    path = bench.table("commits1000", lambda path: tables.many_commits(path, commits=commits, files=files))
    stream = drawstring.open_table(path).stream()
    newest = stream.newest_offset()
    before = StreamOffset(str(int(newest.time) - 10_000))
    what = f"{commits * files:,} files, {commits:,} instants"

    def one_commit() -> None:
        assert len(stream.batch(before, stream.next_offset(before)).scan().plan().tasks) == files

    few = tables.many_commits
    small = bench.table("commits1000few", lambda path: few(path, commits=commits, files=1, last=files))
    other = drawstring.open_table(small).stream()

    def one_commit_of_few() -> None:
        assert len(other.batch(before, other.next_offset(before)).scan().plan().tasks) == files

    empty = median_seconds(lambda: stream.next_offset(newest), warm_up=2, times=9)
    yield Figure("streams", f"{what}, empty trigger", empty * 1000, "ms", 50)
    behind = median_seconds(lambda: stream.backlog(newest), warm_up=2, times=9)
    yield Figure("streams", f"{what}, backlog of none", behind * 1000, "ms", 50)
    yield ratio(
        "streams",
        f"{what}, a batch of one commit of {files} files, against 2,000 files in as many instants",
        one_commit,
        one_commit_of_few,
        limit=1.1,
        times=15,
    )


def changes(bench: Bench) -> Iterator[Figure]:
    """The changes of an upsert of a tenth of the rows, against reading what it touched, as it was and as it is."""
    rows = bench.rows(2_000_000)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = bench.table(f"changes-{kind.lower()}", lambda path, kind=kind: _updated(path, kind, rows))  # type: ignore[misc]
        table = drawstring.open_table(path)
        write = table.timeline.completed_writes[0]
        begin, first = write.completion_time, write.requested_time
        found = table.changes(begin).to_arrow(["_rowkind"])
        assert found.num_rows == 2 * (rows // 10), found.num_rows

        def told(table: drawstring.Table = table, begin: str | None = begin) -> int:
            return int(table.changes(begin).to_arrow().num_rows)

        def scanned(table: drawstring.Table = table, first: str = first) -> None:
            for instant in (first, None):
                table.snapshot(instant).scan().to_arrow()

        what = f"{rows / 1e6:g} M rows, {kind.lower().replace('_', '-')}, a tenth updated, against two scans"
        yield ratio("changes", what, told, scanned, limit=2.0)


def _updated(path: Path, kind: str, rows: int) -> Path:
    data = tables.rows_of(Shape(1, rows, 10)).drop_columns(list(META_COLUMNS))
    options = {
        "hoodie.table.name": "changes",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": kind,
    }
    shutil.rmtree(path)
    table = drawstring.create_table(str(path), data.schema, options=options)
    table.write(data, operation="bulk_insert", options=options)
    table.write(data.take(pa.array(range(3, rows, 10))), operation="upsert", options=options)
    return path


WORKLOADS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "scan": scan,
    "planning": planning,
    "listing": listing,
    "bulk_insert": bulk_insert,
    "merge": merge,
    "evolved": evolved,
    "pushdowns": pushdowns,
    "avro": avro,
    "streams": streams,
    "changes": changes,
}
