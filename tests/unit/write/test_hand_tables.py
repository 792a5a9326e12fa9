"""Tables made of nothing but drawstring's bytes, read by hudi-rs and by drawstring: two readers, one answer."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

import drawstring
from drawstring.storage.local import LocalStorage
from tests.support.hand_table import HandTable

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("p", pa.string()),
        ("s", pa.string()),
        ("d", pa.float64()),
        ("m", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", tz="UTC")),
        ("n", pa.struct([("x", pa.int64())])),
        ("ts", pa.int64()),
    ]
)


def row(i, ts, **other):
    return {
        "id": i,
        "p": "a",
        "s": f"s{i}",
        "d": i / 2,
        "m": None,
        "at": i * 10**6,
        "n": {"x": i},
        "ts": ts,
        **other,
    }


def built(path, *, as_parquet):
    table = HandTable(LocalStorage(str(path)), SCHEMA).create(table_type="MERGE_ON_READ").initialise()
    first = table.next_time()
    base = table.base_file(first, "a", [row(i, 5) for i in range(6)])
    table.commit(first, [base])
    second = table.next_time()
    updates = [row(1, 6, s="new"), row(2, 4, s="too old"), row(3, 6, s=None, n=None)]
    deletes = [("4", 9), ("5", 2), ("0", None)]
    table.commit(second, [table.log_file(second, base, updates, deletes, as_parquet=as_parquet)])
    return table


EXPECTED = {1: "new", 2: "s2", 3: None, 5: "s5"}


@pytest.mark.parametrize("as_parquet", [False, True])
def test_updates_and_deletes_in_logs_are_read_alike(tmp_path, as_parquet):
    built(tmp_path, as_parquet=as_parquet)
    ours = drawstring.open_table(str(tmp_path)).snapshot().scan().to_arrow().to_pylist()
    assert {found["id"]: found["s"] for found in ours} == EXPECTED
    table = HudiTableBuilder.from_base_uri(str(tmp_path)).build()
    theirs = pa.Table.from_batches(table.read()).to_pylist()
    assert {found["id"]: found["s"] for found in theirs} == EXPECTED
    kept = {found["id"]: found for found in theirs}
    for found in ours:
        for name in ("d", "m", "at", "n", "ts"):
            assert kept[found["id"]][name] == found[name]


def test_deletes_ordered_by_dates_are_read_alike(tmp_path):
    schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.date32())])
    table = HandTable(LocalStorage(str(tmp_path)), schema).create(table_type="MERGE_ON_READ").initialise()
    first = table.next_time()
    base = table.base_file(first, "a", [{"id": i, "p": "a", "ts": dt.date(2024, 1, 5)} for i in range(2)])
    table.commit(first, [base])
    second = table.next_time()
    deletes = [("0", dt.date(2024, 1, 9)), ("1", dt.date(2024, 1, 2))]
    table.commit(second, [table.log_file(second, base, [], deletes)])
    ours = drawstring.open_table(str(tmp_path)).snapshot().scan().to_arrow()
    assert ours.column("id").to_pylist() == [1]
    theirs = pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(tmp_path)).build().read())
    assert theirs.column("id").to_pylist() == [1]
