"""Where keys live: what footers rule out is not read, and nothing that is there is missed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.config.bloom_options import BloomOptions
from drawstring.formats.bloom import FooterKeys
from drawstring.formats.parquet_writer import ParquetWriter
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.memory import MemoryStorage
from drawstring.write.index import SimpleIndex


def slice_of(storage: MemoryStorage, number: int, keys: list[str], *, bloom: bool) -> FileSlice:
    path, stored = f"f{number}.parquet", pa.array(keys)
    with storage.open_output(path) as sink:
        writer = ParquetWriter(sink, pa.schema([(RECORD_KEY, pa.string())]))
        writer.write_table(pa.table({RECORD_KEY: stored}))
        footer = FooterKeys(BloomOptions(enabled=bloom, rate=1e-6))
        footer.add(stored)
        writer.close(footer.metadata())
    base = BaseFile(path, storage.stat(path).size, f"f{number}", "1", "0-0-0")
    return FileSlice(FileGroupId("", f"f{number}"), "1", base, ())


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """The row groups that were read."""
    seen: list[int] = []
    original = pq.ParquetFile.read_row_group

    def counted(self, group, **options):
        seen.append(group)
        return original(self, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    return seen


@pytest.mark.parametrize(("bloom", "files_read"), [(True, 2), (False, 4)])
def test_files_whose_filter_rules_every_key_out_are_not_read(reads, bloom, files_read):
    storage = MemoryStorage()
    # Every file has the same range of keys: only filters tell them apart.
    slices = [slice_of(storage, n, [f"k{i:05d}" for i in range(n, 4000, 4)], bloom=bloom) for n in range(4)]
    keys = pa.array(["k00004", "k02001", "k02002x", "zzz"])
    found = SimpleIndex().locate(storage, keys, slices)
    told = {
        (part.slice.group.file_id, int(key), int(row))
        for part in found
        for key, row in zip(part.keys, part.positions, strict=True)
    }
    assert told == {("f0", 0, 1), ("f1", 1, 500)}
    assert len(reads) == files_read


def test_many_keys_are_found_whether_filters_are_asked_or_not():
    storage = MemoryStorage()
    stored = [[f"{n}-{i}" for i in range(3000)] for n in range(3)]
    slices = [slice_of(storage, n, keys, bloom=True) for n, keys in enumerate(stored)]
    for step in (1, 7, 100):
        asked = [key for keys in stored for key in keys[::step]] + [f"none-{i}" for i in range(50)]
        found = SimpleIndex().locate(storage, pa.array(asked), slices)
        numbers = np.sort(np.concatenate([part.keys for part in found]))
        assert numbers.tolist() == list(range(len(asked) - 50))
        for part in found:
            group = stored[int(part.slice.group.file_id[1:])]
            assert [asked[k] for k in part.keys] == [group[row] for row in part.positions]
