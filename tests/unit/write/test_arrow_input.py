"""Rows of Arrow types that no file has: stored without loss, or refused by name with nothing written."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import IncompatibleSchema

NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123456)
STORED = {
    "string view": (pa.array(["a", None, "c" * 30], pa.string_view()), pa.string()),
    "binary view": (pa.array([b"a", None, b"c" * 30], pa.binary_view()), pa.binary()),
    "date in milliseconds": (pa.array([NOON.date(), None, dt.date(1900, 1, 1)], pa.date64()), pa.date32()),
    "time in seconds": (pa.array([dt.time(1, 2, 3), None, dt.time(0)], pa.time32("s")), pa.time32("ms")),
    "nanoseconds on the wall": (pa.array([NOON, None, NOON], pa.timestamp("ns")), pa.timestamp("us")),
    "nanoseconds": (pa.array([NOON, None, NOON], pa.timestamp("ns", "UTC")), pa.timestamp("us", "UTC")),
    "unsigned byte": (pa.array([1, None, 255], pa.uint8()), pa.int32()),
    "unsigned int": (pa.array([1, None, 2**32 - 1], pa.uint32()), pa.int64()),
    "unsigned in lists": (pa.array([[1, None], None, []], pa.large_list(pa.uint8())), pa.list_(pa.int32())),
    "extension": (
        pa.array([b"0123456789abcdef", None, b"x" * 16], pa.binary(16)).cast(pa.uuid()),
        pa.binary(),
    ),
}
REFUSED = {
    "parts of microseconds": pa.array([1, None, 2000], pa.timestamp("ns")),
    "struct without fields": pa.array([{}, None, {}], pa.struct([])),
    "many digits": pa.array([1, None, 2], pa.decimal256(50, 2)),
    "negative scale": pa.array([100, None, 200], pa.decimal128(5, -2)),
    "durations": pa.array([dt.timedelta(1), None, dt.timedelta(0)]),
}
KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")


def rows_with(values: pa.Array) -> pa.Table:
    return pa.table({"id": [1, 2, 3], "ts": [1, 1, 1], "c": values})


def created(path, schema: pa.Schema, kind: str):
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    return drawstring.create_table(path, schema, options=options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", STORED)
def test_values_are_stored_as_they_are(case, kind, tmp_path):
    values, stored = STORED[case]
    rows = rows_with(values)
    table = created(tmp_path / "t", rows.schema, kind)
    table.write(rows, operation="bulk_insert")
    newer = rows.slice(1).set_column(1, "ts", pa.array([2, 2]))
    table.write(pa.RecordBatchReader.from_batches(newer.schema, newer.to_batches()))
    found = drawstring.open_table(tmp_path / "t").snapshot().scan().select("id", "ts", "c").to_arrow()
    found = found.sort_by("id")
    assert found.schema.field("c").type.equals(stored)
    assert found["c"].equals(rows["c"].cast(stored))
    assert found["ts"].to_pylist() == [1, 2, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_changed_is_refused(case, kind, tmp_path):
    rows = rows_with(REFUSED[case])
    table = created(tmp_path / "t", rows.schema.remove(2), kind)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    for form, operation in ((rows, "upsert"), (reader, "bulk_insert")):
        with pytest.raises(IncompatibleSchema):
            table.write(form, operation=operation)
    assert drawstring.open_table(tmp_path / "t").snapshot().scan().to_arrow().num_rows == 0


def test_labels_of_rows_that_have_no_name_are_no_column(tmp_path):
    rows = rows_with(pa.array(["a", "b", "c"]))
    created(tmp_path / "t", rows.schema, "COPY_ON_WRITE").write(
        rows.to_pandas()[lambda found: found["id"] > 1]
    )
    drawstring.open_table(tmp_path / "t").write(rows.to_pandas().set_index("id"))
    table = drawstring.open_table(tmp_path / "t")
    assert [name for name in table.schema.names if not name.startswith("_hoodie_")] == ["id", "ts", "c"]
    assert sorted(table.snapshot().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
