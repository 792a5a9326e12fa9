"""Queries that V2 shortens, against the V1 path of the same table: 800 files, 30 M rows, 12 columns at scale 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import tables
from benchmarks.measure import Figure, compare, consume
from benchmarks.tables import Shape

if TYPE_CHECKING:
    from benchmarks.workloads import Bench

V1 = {"hoodie.datasource.read.use.dsv2": "false"}
BUCKETS = 16
BUCKET_INDEX = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(BUCKETS)}
JOINS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def pushdowns(bench: Bench) -> Iterator[Figure]:
    """One table of 800 files, then a join of two bucketed tables."""
    shape = Shape(800, max(100, bench.rows(30_000_000) // 800), 12)
    path = bench.table("clustered", lambda path: tables.clustered(path, shape))
    what = f"{shape.rows / 1e6:g} M rows, {shape.files} files"
    for name, (run, least) in queries(bench.spark, shape.rows).items():
        yield _figure(f"{what}, {name}", partial(_on, bench, path, run), least)
    yield _bucketed_join(bench)


def queries(spark: Any, rows: int) -> dict[str, tuple[Callable[[Any], Any], float]]:
    """What is asked of a table of so many rows, clustered by `id`, and how many times as fast V2 is to be as V1."""
    middle, hundredth = rows // 2, max(1, rows // 100)
    return {
        "full scan": (consume, 1.0),
        "projection of two columns": (lambda t: consume(t.select("id", "c5")), 1.25),
        "filter on a clustered column, 1 %": (
            lambda t: consume(t.where(f"id BETWEEN {middle} AND {middle + hundredth}")),
            10,
        ),
        "LIMIT 1000": (lambda t: consume(t.limit(1000)), 20),
        "COUNT(*)": (lambda t: t.count(), 20),
        "MIN, MAX": (lambda t: t.selectExpr("min(id)", "max(id)").collect(), 20),
        "top 100": (lambda t: t.orderBy(t.id.desc()).limit(100).collect(), 10),
        "join with a filtered dimension": (partial(_join_dimension, spark, rows), 3),
    }


def _join_dimension(spark: Any, rows: int, frame: Any) -> None:
    """Keys of the dimension that pass its filter lie within a fiftieth of the table."""
    dimension = spark.range(rows // 2, rows // 2 + rows // 50, rows // 50_000 or 1)
    chosen = dimension.selectExpr("id AS k", "id % 7 AS label").where("label = 3")
    consume(frame.join(chosen, frame.id == chosen.k).select("id", "c5", "label"))


def _bucketed_join(bench: Bench) -> Figure:
    shape = Shape(BUCKETS, bench.rows(8_000_000) // BUCKETS, 8)
    paths = [bench.table(f"bucketed{n}", lambda path: tables.bucketed(path, shape)) for n in (1, 2)]

    def join(options: dict[str, str]) -> None:
        left, right = (bench.hudi(path, **BUCKET_INDEX, **options) for path in paths)
        joined = left.join(right, "id").select("id", left.c5, right.c6)
        if not options:
            plan = joined._jdf.queryExecution().executedPlan().toString()
            assert "Exchange hashpartitioning" not in plan, "the join of bucketed tables has a shuffle"
        consume(joined)

    with settings(bench.spark, JOINS):
        return _figure(f"{shape.rows / 1e6:g} M rows each, join of two bucketed tables", join, 1.5)


def _figure(what: str, run: Callable[[dict[str, str]], Any], least: float) -> Figure:
    pushed, plain = compare(partial(run, {}), partial(run, V1), times=3, warm_up=1)
    detail = f"V2 {pushed:.2f} s, V1 {plain:.2f} s"
    return Figure("pushdowns", what, plain / pushed, "×", least, at_least=True, detail=detail)


def _on(bench: Bench, path: str, run: Callable[[Any], Any], options: dict[str, str]) -> None:
    run(bench.hudi(path, **options))


@contextmanager
def settings(spark: Any, wanted: dict[str, str]) -> Iterator[None]:
    """Session settings for a while."""
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in wanted:
            spark.conf.unset(key)
