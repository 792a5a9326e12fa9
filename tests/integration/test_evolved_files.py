"""Files of older schemas through Spark: read in the JVM, with the answers that workers give."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from benchmarks.tables import FIRST, SECOND, _Writer
from drawstring.planning.scan_request import ScanRequest
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import META_COLUMNS
from drawstring.spark.read.pinned import PinnedTable, plan_message
from tests.golden import harness
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

UTC = pa.timestamp("us", tz="UTC")
NOON = datetime(2024, 2, 29, 12, 0, 0, 250_000)
ROWS = 3
VALUES: dict[str, tuple[list[Any], pa.DataType, pa.DataType]] = {
    "int_long": ([1, -(2**31), None], pa.int32(), pa.int64()),
    "int_float": ([16777217, 3, None], pa.int32(), pa.float32()),
    "int_double": ([7, -7, None], pa.int32(), pa.float64()),
    "int_text": ([-7, 0, None], pa.int32(), pa.string()),
    "int_decimal": ([77, 5, None], pa.int32(), pa.decimal128(3, 2)),
    "long_float": ([2**62 + 1, 5, None], pa.int64(), pa.float32()),
    "long_double": ([2**53 + 1, 5, None], pa.int64(), pa.float64()),
    "long_text": ([2**60, -1, None], pa.int64(), pa.string()),
    "long_decimal": ([-(2**63), 5, None], pa.int64(), pa.decimal128(38, 18)),
    "float_double": ([0.1, 3.3e38, None], pa.float32(), pa.float64()),
    "float_text": ([1.1e11, 0.1, None], pa.float32(), pa.string()),
    "double_text": ([2.5e7, float("nan"), None], pa.float64(), pa.string()),
    "decimal_wider": ([Decimal("1.50"), Decimal("-999.99"), None], pa.decimal128(5, 2), pa.decimal128(22, 4)),
    "decimal_text": ([Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(5, 2), pa.string()),
    "date_text": ([date(2024, 2, 29), date(1582, 10, 4), None], pa.date32(), pa.string()),
    "millis": ([NOON.replace(tzinfo=timezone.utc), None, None], pa.timestamp("ms", tz="UTC"), UTC),
    "long_instant": ([1_000_000, -1, None], pa.int64(), UTC),
    "local_instant": ([NOON, None, None], pa.timestamp("us"), UTC),
    "instant_text": ([NOON, datetime(1969, 12, 31, 23, 59, 59), None], pa.timestamp("us"), pa.string()),
    "text_bytes": (["é", "", None], pa.string(), pa.binary()),
    "bytes_text": (["é".encode(), b"a\xff", None], pa.binary(), pa.string()),
    "fixed_bytes": ([b"abc", b"def", None], pa.binary(3), pa.binary()),
    "added": ([None] * ROWS, pa.null(), pa.string()),
    "added_struct": ([None] * ROWS, pa.null(), pa.struct([("x", pa.int32())])),
}


def columns() -> dict[str, tuple[list[Any], pa.DataType, pa.DataType]]:
    """Every conversion, plain and inside structs, lists and maps; and structs that gain, lose and move fields."""
    found: dict[str, tuple[list[Any], pa.DataType, pa.DataType]] = dict(VALUES)
    for name, (values, old, new) in VALUES.items():
        if old == pa.null():
            continue
        found[f"struct_{name}"] = (
            [None, *({"y": 1, "x": value} for value in values[:2])],
            pa.struct([("y", pa.int32()), ("x", old)]),
            pa.struct([("x", new), ("more", pa.list_(pa.string())), ("y", pa.int32())]),
        )
        found[f"list_{name}"] = ([values, None, []], pa.list_(old), pa.list_(new))
        entries = [[("a", values[0]), ("b", None)], [], None]
        found[f"map_{name}"] = (entries, pa.map_(pa.string(), old), pa.map_(pa.string(), new))
    found["deep"] = (
        [[{"x": 1, "z": [1, None]}, None], None, []],
        pa.list_(pa.struct([("x", pa.int32()), ("z", pa.list_(pa.int32()))])),
        pa.list_(pa.struct([("z", pa.list_(pa.int64())), ("w", pa.string()), ("x", pa.int64())])),
    )
    return found


@pytest.fixture(scope="module")
def evolved(tmp_path_factory) -> str:
    """A table whose only file has none of the types that its newest commit declares."""
    path = Path(tmp_path_factory.mktemp("evolved")) / "t"
    path.mkdir()
    writer = _Writer(path, "t")
    writer.properties()
    keys = {"id": pa.array(range(ROWS), pa.int64()), "ts": pa.array([1] * ROWS, pa.int64())}
    meta = {name: pa.array(["m"] * ROWS) for name in META_COLUMNS}
    written = {n: pa.array(v, old) for n, (v, old, _) in columns().items() if old != pa.null()}
    file_id = "00000000-0000-4000-8000-000000000000-0"
    name = f"{file_id}_0-1-0_{FIRST}.parquet"
    file = writer.partition("p=0") / name
    pq.write_table(pa.table({**meta, **keys, "p": pa.array(["0"] * ROWS), **written}), file)
    writer.note("p=0", file_id, name, ROWS, file.stat().st_size)
    base = [("id", pa.int64()), ("ts", pa.int64()), ("p", pa.string())]
    older = pa.schema(base)
    newer = pa.schema([*base, *((name, new) for name, (_, _, new) in columns().items())])
    for instant, schema in ((FIRST, older), (SECOND, newer)):
        writer.commit(instant, json.dumps(avro_schema_from_arrow(schema, name="t", namespace="hoodie")))
    return str(path)


def modes(path: str) -> list[tuple[str, bool]]:
    """How each slice is read, and whether its columns are cast."""
    table = PinnedTable.open(path, {}, session={})
    message = plan_message(table, table.plan(ScanRequest()), planning_ms=0)
    return sorted({(task.mode, task.projection >= 0) for task in message.tasks})


@pytest.fixture(params=["true", "false"], ids=["v2", "v1"])
def frame(request, spark, evolved):
    """The evolved table through one path."""
    return spark.read.format("hudi").option(USE_V2, request.param).load(evolved)


def worker_rows(path: str) -> dict[int, dict[str, Any]]:
    rows = harness.arrow_rows(drawstring.open_table(path).snapshot().scan().to_arrow())
    return {row["id"]: row for row in rows}


def test_the_file_is_left_to_spark(evolved):
    assert modes(evolved) == [("native", True)]


def test_every_conversion_answers_as_workers_do(frame, evolved):
    found = {row["id"]: row for row in harness.spark_rows(frame.collect())}
    assert found == worker_rows(evolved)


def test_columns_are_cast_alone_too(frame, evolved):
    expected = worker_rows(evolved)
    for name in ("int_long", "added", "struct_int_text", "map_float_double", "deep"):
        rows = harness.spark_rows(frame.select("id", name).collect())
        assert {row["id"]: row[name] for row in rows} == {key: row[name] for key, row in expected.items()}


def test_a_struct_is_null_where_the_files_is_also_when_only_new_fields_are_read(frame):
    rows = frame.selectExpr("struct_int_long IS NULL AS gone", "struct_int_long.more AS more").collect()
    assert Counter(tuple(row) for row in rows) == Counter([(True, None), (False, None), (False, None)])


def test_added_columns_alone_keep_the_number_of_rows(frame):
    assert frame.select("added").collect() == [(None,)] * ROWS
    assert frame.count() == ROWS


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("int_long = 1", 1),
        ("float_double = 0.1D", 1),
        ("int_text = '-7'", 1),
        ("added IS NULL", ROWS),
        ("added = 'x'", 0),
        ("struct_int_long.x = 1 AND id > 0", 1),
        ("id >= 1 AND decimal_wider < 0", 1),
        ("date_text < '2000'", 1),
    ],
)
def test_filters_mean_the_tables_values(frame, condition, kept):
    assert frame.filter(condition).count() == kept


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("v9_cow_promote_text", "native"),
        ("v6_cow_add_columns", "native"),
        ("v9_mor_promote_num", "merge"),
        ("v9_mor_on_read", "merge"),
    ],
)
def test_evolved_golden_tables_are_left_to_spark(table_path, name, mode):
    found = modes(table_path(name))
    assert (mode, True) in found
    assert "arrow" not in {kind for kind, _ in found}


@pytest.mark.parametrize("v2", [True, False])
def test_a_file_that_only_lacks_columns_is_read_by_name(load, table_path, v2):
    assert modes(table_path("v9_cow_missing_columns")) == [("native", False)]
    assert load("v9_cow_missing_columns", v2=v2).count() > 0
