"""The join order that Spark's cost-based optimiser picks by a table's own statistics is the one after ANALYZE."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import small_tables
from tests.integration.plans import USE_V2

FACTS, FILES = 4000, 4
DIMENSIONS = {"a": 10, "b": 200, "c": 1000}


def frames():
    """A star: rows of `f` name one row of each dimension, by a number and by a text."""
    found = {
        name: pa.table(
            {
                f"{name}_id": pa.array(range(size), pa.int64()),
                f"{name}_name": [f"{name} {i:05}" for i in range(size)],
                f"{name}_v": pa.array(range(size), pa.int32()),
                f"{name}_w": [f"w{i % 7}" for i in range(size)],
                f"{name}_x": pa.array([i / 2 for i in range(size)], pa.float64()),
            }
        )
        for name, size in DIMENSIONS.items()
    }
    keys = {}
    for name, size in DIMENSIONS.items():
        keys[f"f_{name}"] = pa.array([i % size for i in range(FACTS)], pa.int64())
        keys[f"f_{name}name"] = pa.array([f"{name} {i % size:05}" for i in range(FACTS)])
    return found | {"f": pa.table({**keys, "f_v": pa.array(range(FACTS), pa.int32())})}


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("star")
    for name, rows in frames().items():
        count = rows.num_rows
        whole = pa.table(
            {
                "id": pa.array(range(count), pa.int64()),
                "ts": pa.array([1] * count, pa.int64()),
                "p": ["x"] * count,
                **{column: rows[column] for column in rows.column_names},
            }
        )
        step = -(-count // (FILES if name == "f" else 1))
        groups = [small_tables.Group("x", whole.slice(start, step)) for start in range(0, count, step)]
        path = small_tables.make(folder / name, groups)
        spark.read.format("hudi").option(USE_V2, "true").load(path).createOrReplaceTempView(f"star_{name}")
        pq.write_table(whole, folder / f"{name}.parquet")
        spark.read.parquet(str(folder / f"{name}.parquet")).write.saveAsTable(f"analysed_{name}")
        spark.sql(f"ANALYZE TABLE analysed_{name} COMPUTE STATISTICS FOR ALL COLUMNS")
    yield
    for name in (*DIMENSIONS, "f"):
        spark.sql(f"DROP TABLE analysed_{name}")


def order(frame) -> list[str]:
    """The tables of a plan in the order in which they are joined."""
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    columns = [leaves.apply(at).output().mkString(" ") for at in range(leaves.size())]
    return [next(name for name in (*DIMENSIONS, "f") if f"{name}_" in text) for text in columns]


@pytest.fixture
def star(spark, tables, settings):
    """A query over the star by one kind of key, of our tables and of those that were analysed."""
    settings("spark.sql.cbo.enabled", "true")
    settings("spark.sql.cbo.planStats.enabled", "true")
    settings("spark.sql.cbo.joinReorder.enabled", "true")
    settings("spark.sql.autoBroadcastJoinThreshold", "-1")

    def frame(prefix: str, key: str, condition: str):
        own = key.removeprefix("id")
        joins = " ".join(f"JOIN {prefix}_{name} ON f_{name}{own} = {name}_{key}" for name in DIMENSIONS)
        return spark.sql(f"SELECT f_v, a_v, b_v, c_v FROM {prefix}_f {joins} WHERE {condition}")

    return lambda key, condition: (frame("star", key, condition), frame("analysed", key, condition))


# Shares of the facts that dimensions keep are far apart: where they are close, sizes and estimated numbers of distinct
# values decide, and those of ANALYZE are others.
@pytest.mark.parametrize(
    "condition",
    [
        "a_v < 8 AND b_v < 20 AND c_v < 500",
        "a_v < 2 AND b_v < 180 AND c_v < 600",
    ],
)
def test_a_star_is_joined_in_the_same_order(star, condition):
    found, analysed = star("id", condition)
    assert order(found) == order(analysed)
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, analysed.collect()))


# By texts the dimensions after the first are told apart by nothing but the error of what ANALYZE estimates.
@pytest.mark.parametrize(
    ("condition", "first"),
    [
        ("a_v < 8 AND b_v < 20 AND c_v < 500", "b"),
        ("a_x < 4.5 AND c_x < 25", "c"),
        ("a_x < 4.5 AND b_w = 'w1'", "b"),
    ],
)
def test_a_star_by_texts_begins_with_the_same_dimension(star, condition, first):
    found, analysed = star("name", condition)
    assert order(found)[:2] == order(analysed)[:2] == ["f", first]
    assert sorted(map(tuple, found.collect())) == sorted(map(tuple, analysed.collect()))
