"""Hostile Parquet files: read as a stream, and never a reason to run code."""

from __future__ import annotations

import base64
import os
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats.avro_native import varint
from drawstring.formats.parquet import ParquetSource
from drawstring.formats.parquet_pages import MAX_PAGE_BYTES, check_pages
from drawstring.storage import LocalStorage
from drawstring.view.footer_stats import footer_statistics

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


def claimed_page(value: int, *, stored: int = 20) -> tuple[bytes, int]:
    """A Parquet file of one column whose only data page claims `value` bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"a": pa.array([1] * 9, pa.int32())}), sink, use_dictionary=False, compression="zstd"
    )
    content = sink.getvalue().to_pybytes()
    start = pq.read_metadata(pa.BufferReader(content)).row_group(0).column(0).data_page_offset
    # Field 1 (type) is one small integer; field 2 is the expanded size, here one byte long.
    assert content[start : start + 3] == b"\x15\x00\x15"
    replaced = varint(value)
    return content[: start + 3] + replaced + content[start + 4 :], len(replaced) - 1


@pytest.mark.parametrize("value", [2**31 - 1, MAX_PAGE_BYTES + 1, -1])
def test_a_page_that_claims_too_much_is_refused_before_memory_is_taken(value):
    content, more = claimed_page(value)
    footer = pq.read_metadata(pa.BufferReader(content))
    start = footer.row_group(0).column(0).data_page_offset
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(ValueError, match="claims"):
        check_pages(pa.BufferReader(content[: start + 200] + bytes(more)), footer, ["a"])
    assert pa.default_memory_pool().max_memory() - before < MEGABYTE


def test_a_page_of_many_megabytes_is_refused_by_the_reader(monkeypatch):
    monkeypatch.setattr("drawstring.formats.parquet_pages.MAX_PAGE_BYTES", MEGABYTE)
    small, large = pa.table({"a": [bytes(1000)], "b": [1]}), pa.table({"a": [bytes(8 * MEGABYTE)], "b": [1]})
    options = {"compression": "zstd", "use_dictionary": False}
    with source(small, **options) as opened:
        assert sum(batch.num_rows for batch in opened.batches(["a", "b"])) == 1
    with source(large, **options) as opened:
        assert sum(batch.num_rows for batch in opened.batches(["b"])) == 1
        with pytest.raises(CorruptTable, match=r"f\.parquet.*claims"):
            list(opened.batches(["a"]))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "none"])
def test_pages_of_ordinary_files_pass(version, codec):
    rows = 30_000
    table = pa.table(
        {
            "n": range(rows),
            "s": [f"text {i % 100}" for i in range(rows)],
            "l": [[i, i + 1] for i in range(rows)],
            "d": [{"x": i, "y": None} for i in range(rows)],
        }
    )
    options = {
        "data_page_version": version,
        "compression": codec,
        "data_page_size": 4000,
        "row_group_size": 9999,
    }
    with source(table, write_page_checksum=True, **options) as opened:
        assert sum(batch.num_rows for batch in opened.batches(table.column_names)) == rows


def test_columns_without_pages_are_no_damage():
    table = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())})
    with source(table) as opened:
        assert sum(batch.num_rows for batch in opened.batches(table.column_names)) == 0
    nulls = pa.table({"a": pa.nulls(3, pa.string())})
    with source(nulls) as opened:
        assert sum(batch.num_rows for batch in opened.batches(["a"])) == 3


def test_a_cut_or_flipped_header_is_damage_and_never_a_hang():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": range(1000)}), sink, write_page_checksum=True)
    content = sink.getvalue().to_pybytes()
    footer = pq.read_metadata(pa.BufferReader(content))
    start = footer.row_group(0).column(0).dictionary_page_offset
    for bit in range(start * 8, (start + 30) * 8):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            with ParquetSource(pa.BufferReader(bytes(flipped)), "f.parquet") as opened:
                rows = pa.Table.from_batches(opened.batches(["a"]))
        except CorruptTable:
            continue
        assert rows.column("a").to_pylist() == list(range(1000))


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_are_refused_by_name(tmp_path, plaintext_footer):
    path = tmp_path / "f.parquet"
    write_encrypted(path, plaintext_footer=plaintext_footer)
    with pytest.raises(UnsupportedTable) as caught, ParquetSource(pa.OSFile(str(path)), "f.parquet"):
        pass
    assert caught.value.condition == "ENCRYPTED_BASE_FILE"
    statistics = footer_statistics(LocalStorage(str(tmp_path)), ["f.parquet"], {"s": pa.string()})
    assert not statistics


def write_encrypted(path, *, plaintext_footer):
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def wrap_key(self, key, _master):
            return base64.b64encode(key)

        def unwrap_key(self, wrapped, _master):
            return base64.b64decode(wrapped)

    factory = encryption.CryptoFactory(lambda _: Keys())
    wanted = encryption.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["s"]}, plaintext_footer=plaintext_footer
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), wanted)
    table = pa.table({"n": [1, 2], "s": ["a", "b"]})
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
