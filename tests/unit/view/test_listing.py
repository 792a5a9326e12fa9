from __future__ import annotations

import pytest

from drawstring.config.table_config import TableConfig
from drawstring.storage import LocalStorage, MemoryStorage
from drawstring.view.listing import METAFILE, StorageListing


def config(fields: str = "") -> TableConfig:
    properties = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.table.partition.fields": fields,
    }
    return TableConfig.from_properties(properties)


@pytest.fixture(params=["local", "memory"])
def storage(request, tmp_path):
    if request.param == "local":
        return LocalStorage(str(tmp_path))
    return MemoryStorage(f"memory://{request.node.name}")


def test_directories_with_a_metafile_of_any_kind_are_partitions(storage):
    for path in (
        f"a/{METAFILE}",
        f"b/c/{METAFILE}.parquet",
        f"d/{METAFILE}.orc",
        "e/file",
        f".hoodie/{METAFILE}",
    ):
        storage.write(path, b"")
    storage.write("b/c/x.parquet", b"123")
    listing = StorageListing(storage, config("p"))
    assert listing.partitions() == ["a", "b/c", "d"]
    assert ("x.parquet", 3) in listing.files("b/c")
    assert listing.files("nowhere") == []


def test_an_unpartitioned_table_needs_its_metafile_too(storage):
    storage.write("x.parquet", b"")
    assert StorageListing(storage, config()).partitions() == []
    storage.write(METAFILE, b"")
    assert StorageListing(storage, config()).partitions() == [""]


def test_what_was_listed_stays_the_answer(storage):
    storage.write(f"a/{METAFILE}", b"")
    listing = StorageListing(storage, config("p"))
    listing.partitions()
    storage.write("a/later.parquet", b"")
    assert [name for name, _ in listing.files("a")] == [METAFILE]
