"""Push-downs beside the peers: `make bench-peers ARGS='--pushdowns'`; `--rows 8000000 --files 200` for a shorter run.

Each engine writes the same rows into a table of its own, clustered by `id`, which nothing updates, and a quarter of
them into a table of 16 buckets where it has those. One process per engine then asks every question until the JVM is
warm, and the medians after that are compared. The clock's seconds stand beside the processor's, which a busy machine
disturbs less.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.measure import consume, seconds
from benchmarks.peers import processes
from benchmarks.peers.engines import ENGINES, Engine
from benchmarks.peers.measure import processor_seconds
from benchmarks.pushdowns import BUCKET_INDEX, BUCKETS, JOINS, queries, settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 30_000_000
WARM_UPS = 3
SLOW = ("full scan", "projection of two columns")
WIDE, BUCKETED = "wide", "bucketed"
_COLUMNS = {
    "id": "id",
    "ts": "cast(10 as bigint)",
    **{f"c{n}": f"concat('text number ', cast(id * {n + 7} % 1009 as string))" for n in (3, 7, 11)},
    **{f"c{n}": f"id * {n + 7919} % 1000000007" for n in (4, 8)},
    **{f"c{n}": f"rand({n})" for n in (5, 9)},
    **{f"c{n}": f"cast(id * {n + 31} % 1000 as int)" for n in (2, 6, 10)},
}
_SQL = {
    "iceberg": {
        WIDE: "using iceberg tblproperties ('format-version'='2', 'write.distribution-mode'='none')",
        BUCKETED: f"using iceberg partitioned by (bucket({BUCKETS}, id)) tblproperties ('format-version'='2')",
    },
    "paimon": {
        WIDE: "tblproperties ('bucket'='-1')",
        BUCKETED: f"tblproperties ('bucket'='{BUCKETS}', 'bucket-key'='id')",
    },
}
_HUDI_WRITES = {
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.bulkinsert.sort.mode": "NONE",
}
_ICEBERG_JOINS = {
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
Figures = dict[str, tuple[float, float]]
"""By question: seconds of the clock, of the processor."""


@dataclass(frozen=True)
class Size:
    """How large the clustered table is."""

    rows: int
    files: int

    def __str__(self) -> str:
        return f"{self.rows / 1e6:g}M-{self.files}"


@dataclass(frozen=True)
class Place:
    """The tables of one engine."""

    engine: Engine
    spark: SparkSession
    folder: Path

    @property
    def by_name(self) -> bool:
        return self.engine.name in _SQL

    def write(self, name: str, frame: DataFrame) -> None:
        """Make a table of the rows."""
        if self.by_name:
            self.spark.sql("create namespace if not exists bench.db")
            columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)
            self.spark.sql(f"create table bench.db.{name} ({columns}) {_SQL[self.engine.name][name]}")
            frame.createOrReplaceTempView("source")
            self.spark.sql(f"insert into bench.db.{name} select * from source")
        elif self.engine.name == "delta":
            frame.write.format("delta").save(str(self.folder / name))
        else:
            options = {
                **_HUDI_WRITES,
                "hoodie.table.name": name,
                **(BUCKET_INDEX if name == BUCKETED else {}),
            }
            frame.write.format("hudi").options(**options).mode("overwrite").save(str(self.folder / name))

    def read(self, name: str) -> DataFrame:
        """A table, looked up anew."""
        if self.by_name:
            return self.spark.table(f"bench.db.{name}")
        buckets = BUCKET_INDEX if name == BUCKETED and self.engine.name == "drawstring" else {}
        kind = "delta" if self.engine.name == "delta" else "hudi"
        return self.spark.read.format(kind).options(**buckets).load(str(self.folder / name))


def report(folder: Path, size: Size, engines: list[str]) -> str:
    """Make the tables that are missing, measure every engine and return the table."""
    figures = {name: _measured(name, folder / f"pushdowns-{size}", size) for name in engines}
    (folder / f"pushdowns-{size}.json").write_text(json.dumps(figures, indent=1), encoding="utf-8")
    heads = "".join(f"{name:>16}" for name in figures)
    lines = [f"{size} files, clock and processor".ljust(36) + heads + f"{'best peer/ours':>24}"]
    for question in dict.fromkeys(each for found in figures.values() for each in found):
        answers = {name: found.get(question) for name, found in figures.items()}
        cells = "".join(f"{_cell(answer):>16}" for answer in answers.values())
        lines.append(f"{question:36}{cells}{_against_best(answers):>24}")
    return "\n".join(lines)


def _cell(answer: tuple[float, float] | None) -> str:
    return "-" if answer is None else "/".join(f"{each:.3f}" for each in answer)


def _against_best(answers: dict[str, tuple[float, float] | None]) -> str:
    """The least time of the others to ours, and who that is; then the same by the processor."""
    ours = answers.get("drawstring")
    others = {name: each for name, each in answers.items() if each is not None and name != "drawstring"}
    if ours is None or not others:
        return "-"
    best = min(others, key=lambda name: others[name][0])
    by_processor = min(each[1] for each in others.values()) / max(ours[1], 0.001)
    return f"{others[best][0] / ours[0]:.2f} {best} ({by_processor:.2f})"


def _measured(name: str, folder: Path, size: Size) -> Figures:
    found: Figures = (
        processes.measured("benchmarks.peers.pushdowns", name, folder, size.rows, size.files) or {}
    )
    print(f"{name}: {found}", flush=True)
    return found


def main() -> int:
    """Measure one engine in this process."""
    name, result, where, rows, files = sys.argv[1:6]
    folder = Path(where).resolve() / name
    engine = ENGINES[name]
    spark = engine.session(folder, memory="4g")
    spark.sparkContext.setLogLevel("ERROR")
    place, size = Place(engine, spark, folder), Size(int(rows), int(files))
    _fill(place, size)
    figures: Figures = {}
    for question, ask in _questions(place, size).items():
        figures[question] = _timed(ask, 3 if question in SLOW else 9)
        # After every question: an engine that fails in one has answered the ones before.
        Path(result).write_text(json.dumps(figures), encoding="utf-8")
    spark.stop()
    return 0


def _fill(place: Place, size: Size) -> None:
    done = place.folder.parent / f"{place.folder.name}.done"
    if done.exists():
        return
    shutil.rmtree(place.folder, ignore_errors=True)
    place.folder.mkdir(parents=True)
    place.write(WIDE, _rows(place.spark, size.rows, size.files))
    place.write(BUCKETED, _rows(place.spark, size.rows // 4, BUCKETS))
    done.touch()


def _rows(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Twelve columns; each Spark partition makes a file, and ids follow each other from one to the next."""
    columns = (f"{expression} as {name}" for name, expression in _COLUMNS.items())
    return spark.range(0, rows, 1, files).selectExpr(*columns)


def _questions(place: Place, size: Size) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        name: partial(_ask, place, run) for name, (run, _) in queries(place.spark, size.rows).items()
    }
    return {**found, "join of bucketed tables": partial(_join, place)}


def _ask(place: Place, run: Callable[[Any], Any]) -> None:
    run(place.read(WIDE))


def _join(place: Place) -> None:
    with settings(place.spark, {**JOINS, **_ICEBERG_JOINS}):
        left, right = place.read(BUCKETED).select("id", "c5"), place.read(BUCKETED).select("id", "c6")
        consume(left.join(right, "id"))


def _timed(ask: Callable[[], object], times: int) -> tuple[float, float]:
    """The median by the clock; of the processor the mean, because its ticks are coarse."""
    for _ in range(WARM_UPS):
        ask()
    clock, used = [], processor_seconds()
    for _ in range(times):
        clock.append(seconds(ask))
    return median(clock), (processor_seconds() - used) / times


if __name__ == "__main__":
    sys.exit(main())
