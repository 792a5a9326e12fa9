"""Keys found by the record index that Apache Hudi wrote, and what happens where there is none."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.storage import LocalStorage
from drawstring.view.metadata_keys import file_groups_of
from drawstring.view.record_index import RecordIndexShards
from drawstring.write.index import SimpleIndex
from drawstring.write.record_index import RecordIndex
from drawstring.write.table_facts import load_state, visible_slices
from tests.golden.harness import extract
from tests.small_writes import new_table


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    folder = extract("v9_cow_record_index", tmp_path_factory.mktemp("golden"))
    return load_state(LocalStorage(str(folder)))


def told(located, keys):
    return sorted((keys[int(n)].as_py(), part.slice.group) for part in located for n in part.keys)


def test_the_record_index_tells_what_the_files_hold(state):
    slices = visible_slices(state, state.view(None).partitions())
    stored = [key for found in slices for key in _keys(state, found)]
    keys = pa.array([*dict.fromkeys(stored), "nobody", "éé"])
    index = RecordIndex.of(state)
    assert index is not None
    found = told(index.locate(state.storage, keys, slices), keys)
    assert found == told(SimpleIndex().locate(state.storage, keys, slices), keys)
    assert len(found) == len(stored) > 0


def _keys(state, found):
    import pyarrow.parquet as pq

    with state.storage.open(found.base_file.path) as source:
        return pq.read_table(source, columns=["_hoodie_record_key"]).column(0).to_pylist()


def test_only_the_shards_of_the_keys_are_read(state):
    read: list[str] = []

    class Table:
        def history(self, shard, read_entries):
            read.append(shard.group.file_id)
            return iter(())

    shards = tuple(FileSlice(FileGroupId("record_index", f"{n}"), "0", None) for n in range(5))
    keys = pa.array(["one", "two"])
    assert RecordIndex(RecordIndexShards(Table(), shards)).locate(state.storage, keys, ()) == []
    assert read == [str(n) for n in sorted(set(file_groups_of(keys, 5).tolist()))]
    assert len(read) < 5


def test_without_a_record_index_one_is_told(tmp_path, caplog):
    storage = new_table(tmp_path / "t", [("1", "rome", 1, "a")])
    assert RecordIndex.of(load_state(storage)) is None
    assert "record index" in caplog.text
