"""Wide projections under pushed filters: every cell is that of its row, whatever row groups, pages and logs lie below.

Spark 4.3 itself answers some projections of many expressions wrongly (eliminated subexpressions in generated code, rows
in memory included), so rows are compared here, never conditions that are columns of one query.
"""

from __future__ import annotations

import functools
import math
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import small_tables
from tests.integration.plans import USE_V2

ROWS = 120
FILTERS_OFF = {"hoodie.datasource.read.pushdown.filters": "false"}
FILES = {
    "row groups": {"row_group_size": 37},
    "pages": {"row_group_size": 50, "data_page_size": 64, "write_batch_size": 3, "write_page_index": True},
    "plain pages": {
        "data_page_size": 100,
        "write_batch_size": 5,
        "write_page_index": True,
        "use_dictionary": False,
        "data_page_version": "2.0",
    },
}
CONDITIONS = (
    "d IN (0.0, 5.0)",
    "d > 5",
    "c0 IN (3000, 170000)",
    "c0 BETWEEN 100000 AND 150000",
    "d = 2.0 AND c0 < 200000",
    "c3 IS NULL AND c0 > 50000",
)


def wide(columns, first):
    """Rows of which each cell tells its row and column."""
    chance, ids = random.Random(first), range(first, first + ROWS)
    values = [chance.choice([0.0, -0.0, 5.0, 1.0, 2.0, None, math.nan, 7.5]) for _ in ids]
    found = {
        "id": pa.array(ids, pa.int64()),
        "ts": pa.array([10] * ROWS, pa.int64()),
        "p": pa.array(["a"] * ROWS),
        "d": pa.array(values, pa.float64()),
    }
    for c in range(columns):
        kinds = (
            lambda c=c: pa.array([i * 1000 + c for i in ids], pa.int64()),
            lambda c=c: pa.array([f"{i}-{c}" * (1 + c % 7) for i in ids]),
            lambda: pa.array([float(i) if i % 3 else None for i in ids]),
            lambda c=c: pa.array([i + c if i % 5 else None for i in ids], pa.int32()),
        )
        found[f"c{c}"] = kinds[c % 4]()
    return pa.table(found)


def table(folder, shape, columns, with_logs):
    write = functools.partial(
        lambda rows, path, options: pq.write_table(rows, path, **options), options=FILES[shape]
    )
    parts = [wide(columns, 0), wide(columns, ROWS)]
    updated = [0, 1, 5, 36, 37, 50, 51, 52, 99, ROWS - 1]
    groups = [small_tables.Group("a", rows, rows.take(updated) if with_logs else None) for rows in parts]
    return small_tables.make(folder / "t", groups, write=write)


@pytest.mark.parametrize("with_logs", [False, True], ids=["base", "logs"])
@pytest.mark.parametrize("shape", FILES)
def test_rows_under_filters_are_those_of_a_read_without(spark, settings, tmp_path, shape, with_logs):
    # 106 columns are more than Spark's generated code takes.
    path = table(tmp_path, shape, 102, with_logs)
    settings("spark.sql.parquet.columnarReaderBatchSize", "7")
    reader = spark.read.format("hudi").option(USE_V2, "true")
    pushed, plain = reader.load(path), reader.options(**FILTERS_OFF).load(path)
    names = pushed.columns[5 : 5 + 106]
    rows = {row.id: tuple(row) for row in plain.select(*names).collect()}
    assert len(rows) == 2 * ROWS
    for condition in CONDITIONS:
        kept = {row.id for row in plain.where(condition).select("id").collect()}
        for count in (80, 106):
            chosen = pushed.where(condition).select(*names[:count]).collect()
            found = sorted((row.id, repr(tuple(row))) for row in chosen)
            assert found == sorted((key, repr(rows[key][:count])) for key in kept), (count, condition)


@pytest.mark.parametrize(
    "setting", ["enableVectorizedReader", "enableNestedColumnVectorizedReader"], ids=["any", "nested"]
)
def test_a_session_that_prefers_rows_is_given_batches(spark, settings, tmp_path, setting):
    nested = pa.array([{"x": 1.5}, None, {"x": None}], pa.struct([("x", pa.float64())]))
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "ts": pa.array([1] * 3, pa.int64()),
            "p": ["a"] * 3,
            "st": nested,
        }
    )
    groups = [small_tables.Group("a", rows, logs) for logs in (None, rows.slice(0, 1))]
    path = small_tables.make(tmp_path / "t", groups)
    settings(f"spark.sql.parquet.{setting}", "false")
    found = spark.read.format("hudi").option(USE_V2, "true").load(path).select("id", "st.x").collect()
    assert sorted(map(tuple, found), key=repr) == sorted([(1, 1.5), (2, None), (3, None)] * 2, key=repr)
