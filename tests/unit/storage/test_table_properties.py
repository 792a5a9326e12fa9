from __future__ import annotations

import pytest

from drawstring.config.properties import format_properties, table_checksum
from drawstring.errors import CorruptTable, TableNotFound
from drawstring.storage import MemoryStorage, open_storage
from drawstring.storage.table_properties import BACKUP, PROPERTIES, read_table_config


def content(name: str) -> bytes:
    properties = {"hoodie.table.name": name, "hoodie.table.version": "9"}
    checksum = {"hoodie.table.checksum": str(table_checksum(properties))}
    return format_properties({**properties, **checksum}, comment="test")


@pytest.fixture
def storage(request):
    return MemoryStorage(f"memory://{request.node.name}")


def test_the_backup_counts_while_the_file_is_missing_empty_or_cut(storage):
    storage.write(BACKUP, content("from_backup"))
    assert read_table_config(storage).name == "from_backup"
    storage.write(PROPERTIES, b"")
    assert read_table_config(storage).name == "from_backup"
    storage.write(PROPERTIES, content("x").replace(b"=x", b"=y"))
    assert read_table_config(storage).name == "from_backup"
    storage.write(PROPERTIES, content("main"))
    assert read_table_config(storage).name == "main"


def test_a_folder_without_properties_is_no_table(storage):
    with pytest.raises(TableNotFound, match="No Hudi table"):
        read_table_config(storage)
    storage.write(".hoodie/other", b"")
    with pytest.raises(TableNotFound):
        read_table_config(storage)


def test_a_broken_file_without_backup_is_told(storage):
    storage.write(PROPERTIES, b"a=1\n=\n")
    with pytest.raises(CorruptTable, match="line 2"):
        read_table_config(storage)


def test_an_empty_file_without_backup_is_broken_and_not_missing(storage):
    storage.write(PROPERTIES, b"\n")
    with pytest.raises(CorruptTable, match="is empty") as caught:
        read_table_config(storage)
    assert caught.value.condition == "EMPTY_PROPERTIES"


@pytest.mark.parametrize("inside", ["city=bern", "2026/11/19", "*", "*/*"])
def test_a_path_inside_a_table_is_told_where_the_table_is(tmp_path, inside):
    open_storage(str(tmp_path)).write(PROPERTIES, content("t"))
    with pytest.raises(TableNotFound, match=f"There is a table at {tmp_path}: load that"):
        read_table_config(open_storage(str(tmp_path / inside)))


def test_a_path_with_wildcards_is_told_to_have_none():
    with pytest.raises(TableNotFound, match="A path has no wildcards"):
        read_table_config(MemoryStorage("memory://nothing/*"))


def test_a_path_without_a_table_gets_no_guess(tmp_path):
    with pytest.raises(TableNotFound, match=r"not one of its partitions\.$"):
        read_table_config(open_storage(str(tmp_path)))
