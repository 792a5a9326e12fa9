"""NaN, infinities and both zeros under every kind of predicate: no reader may pass a row over that Spark would keep.

pyarrow leaves NaN out of the bounds in footers, which misleads whoever skips by them; files that parquet-mr wrote, by
which Spark and Hudi write, have no bounds where there is NaN.
"""

from __future__ import annotations

import functools
import math
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from tests import small_tables
from tests.integration.plans import USE_V2

NAN, INF = math.nan, math.inf
FILES = (
    [1.0, NAN],
    [NAN],
    [5.0, None],
    [-0.0],
    [0.0, 3.0],
    [INF, -INF],
    [None],
    [7.0, 7.0],
    [-0.0, NAN, None],
)
LITERALS = {"double('NaN')": NAN, "0.0D": 0.0, "-0.0D": -0.0, "1e300D": 1e300}
"""What columns are compared with, as SQL and as Python say it."""


def rank(value):
    """Spark's order: NaN is the greatest and equals itself, the zeros are equal."""
    return (1, 0.0) if math.isnan(value) else (0, value)


def compared(test):
    """A comparison as Spark makes it: null where the value is."""
    return lambda value, x: None if value is None else test(rank(value), rank(x))


SHAPES = {
    "{c} = {x}": compared(lambda v, x: v == x),
    "{c} <=> {x}": lambda value, x: value is not None and rank(value) == rank(x),
    "{c} != {x}": compared(lambda v, x: v != x),
    "{c} <= {x}": compared(lambda v, x: v <= x),
    "{c} > {x}": compared(lambda v, x: v > x),
    "{c} >= {x}": compared(lambda v, x: v >= x),
    "NOT ({c} < {x})": compared(lambda v, x: v >= x),
    "{c} IN ({x}, 5.0D)": compared(lambda v, x: v in (x, (0, 5.0))),
    "{c} NOT IN ({x}, 5.0D)": compared(lambda v, x: v not in (x, (0, 5.0))),
}
VALUES = dict(enumerate(value for values in FILES for value in values))
COMBINATIONS = (
    ("by_pyarrow", "v2", "d"),
    ("by_pyarrow", "v2", "f"),
    ("by_pyarrow", "v2", "st.x"),
    ("by_pyarrow", "v1", "st.x"),
    ("by_pyarrow", "v1", "d"),
    ("by_spark", "v2", "d"),
    ("by_spark", "v1", "st.x"),
    ("merged", "v2", "st.x"),
    ("merged", "v1", "d"),
)


def groups():
    """One file group for each list of values, as double, float and nested double."""
    number = 0
    for values in FILES:
        ids = list(range(number, number + len(values)))
        number += len(values)
        nested = pa.StructArray.from_arrays([pa.array(values, pa.float64())], names=["x"])
        rows = {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([10] * len(ids), pa.int64()),
            "p": ["a"] * len(ids),
        }
        more = {"d": pa.array(values, pa.float64()), "f": pa.array(values, pa.float32()), "st": nested}
        yield small_tables.Group("a", pa.table({**rows, **more}))


@pytest.fixture(scope="module")
def by_pyarrow(tmp_path_factory):
    return small_tables.make(tmp_path_factory.mktemp("floats") / "pyarrow", list(groups()))


@pytest.fixture(scope="module")
def by_spark(tmp_path_factory, spark, by_pyarrow):
    """The same table with the base files rewritten by Spark, that is by parquet-mr."""
    target = tmp_path_factory.mktemp("floats") / "spark"
    shutil.copytree(by_pyarrow, target)
    for file in target.rglob("*.parquet"):
        folder = file.with_suffix(".spark")
        spark.read.parquet(str(file)).coalesce(1).write.parquet(str(folder))
        shutil.move(next(folder.glob("*.parquet")), file)
        shutil.rmtree(folder)
    return str(target)


def merged(folder: Path) -> str:
    """The table with a log in each file group that repeats its first row."""
    found = [small_tables.Group(g.partition, g.rows, g.rows.slice(0, 1)) for g in groups()]
    return small_tables.make(folder / "merged", found)


def cases(column):
    """Each condition with the ids of the rows for which it is true."""
    for shape, test in SHAPES.items():
        for text, x in LITERALS.items():
            # A float column meets the literal as a double; 1e300 is beyond all of its numbers.
            yield shape.format(c=column, x=text), [i for i, value in VALUES.items() if test(value, x)]


@pytest.mark.parametrize(("writer", "road", "column"), COMBINATIONS, ids=["-".join(c) for c in COMBINATIONS])
def test_no_row_is_lost_in_spark(request, spark, tmp_path, writer, road, column):
    path = merged(tmp_path) if writer == "merged" else request.getfixturevalue(writer)
    frame = spark.read.format("hudi").option(USE_V2, str(road == "v2").lower()).load(path)
    expected = dict(cases(column))
    # One query for all: each condition is pushed down in its own branch of the union.
    branches = [frame.where(c).selectExpr(f"{n} AS n", "id") for n, c in enumerate(expected)]
    answers: dict[str, list[int]] = {condition: [] for condition in expected}
    names = list(expected)
    for row in functools.reduce(lambda left, right: left.unionAll(right), branches).collect():
        answers[names[row.n]].append(row.id)
    assert {condition: sorted(ids) for condition, ids in answers.items()} == expected


@pytest.mark.parametrize("column", ["d", "f", "st.x"])
@pytest.mark.parametrize(
    "writer", ["by_pyarrow", pytest.param("by_spark", marks=pytest.mark.spark), "merged"]
)
def test_no_row_is_lost_in_arrow(request, tmp_path, writer, column):
    path = merged(tmp_path) if writer == "merged" else request.getfixturevalue(writer)
    snapshot, found = drawstring.open_table(path).snapshot(), drawstring.col(*column.split("."))
    for text, x in LITERALS.items():
        conditions = {
            "{c} = {x}": found == x,
            "{c} <=> {x}": found.equals_null_safe(x),
            "{c} != {x}": found != x,
            "{c} <= {x}": found <= x,
            "{c} > {x}": found > x,
            "{c} >= {x}": found >= x,
            "NOT ({c} < {x})": ~(found < x),
            "{c} IN ({x}, 5.0D)": found.is_in([x, 5.0]),
            "{c} NOT IN ({x}, 5.0D)": ~found.is_in([x, 5.0]),
        }
        assert conditions.keys() == SHAPES.keys()
        for shape, condition in conditions.items():
            answer = snapshot.scan().where(condition).select("id").to_arrow()["id"].to_pylist()
            expected = [i for i, value in VALUES.items() if SHAPES[shape](value, x)]
            assert sorted(answer) == expected, (shape, text)
