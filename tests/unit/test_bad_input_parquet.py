"""Hostile Parquet files: read as a stream, and never a reason to run code."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.errors import CorruptTable
from drawstring.formats.parquet import ParquetSource

MEGABYTE = 1 << 20


def source(table: pa.Table, **options) -> ParquetSource:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return ParquetSource(pa.BufferReader(sink.getvalue()), "f.parquet")


def test_a_thousandfold_expansion_is_streamed():
    sink = pa.BufferOutputStream()
    row = pa.table({"a": [bytes(MEGABYTE)]})
    with pq.ParquetWriter(sink, row.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(64):
            writer.write_table(row)
    content = sink.getvalue()
    assert content.size < 64 * MEGABYTE / 1000
    most, before = 0, pa.total_allocated_bytes()
    with ParquetSource(pa.BufferReader(content), "f.parquet") as opened:
        for batch in opened.batches(["a"], batch_rows=1):
            most = max(most, pa.total_allocated_bytes() - before)
            del batch
    assert most < 32 * MEGABYTE


class Exploit:
    def __reduce__(self):
        return os.mkdir, (os.environ["DRAWSTRING_TEST_EXPLOIT"],)


def test_pickled_extension_types_are_not_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAWSTRING_TEST_EXPLOIT", str(tmp_path / "exploited"))
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Exploit()),
    }
    schema = pa.schema([pa.field("a", pa.int32(), metadata=metadata)])
    with source(pa.table({"a": [1]}, schema=schema)) as opened:
        assert opened.schema.field("a").type == pa.int32()
        assert [batch.to_pydict() for batch in opened.batches(["a"])] == [{"a": [1]}]
    assert not (tmp_path / "exploited").exists()


def test_the_floor_of_pyarrow_is_above_the_releases_that_unpickled_files():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    floor = re.search(r'"pyarrow>=(\d+)', project)
    assert floor is not None
    assert int(floor.group(1)) >= 15


def test_ten_thousand_columns_are_read():
    table = pa.table({f"c{i}": pa.array([i], pa.int32()) for i in range(10_000)})
    with source(table) as opened:
        assert len(opened.schema) == 10_000
        assert [b.to_pydict() for b in opened.batches(["c0", "c9999"])] == [{"c0": [0], "c9999": [9999]}]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 8 + b"PAR1", bytes(1000)])
def test_what_is_no_parquet_file_is_named(content):
    with pytest.raises(CorruptTable, match=r"f\.parquet"):
        ParquetSource(pa.BufferReader(content), "f.parquet")
