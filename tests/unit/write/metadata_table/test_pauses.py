"""A process that is paused while it makes or removes the metadata table, and loses its lock to others who go on."""

from __future__ import annotations

import errno
import os

import pytest

from drawstring.config.table_config import METADATA_PARTITIONS
from drawstring.errors import CommitConflict
from drawstring.storage import LocalStorage
from drawstring.storage.table_properties import PROPERTIES, updated_content
from drawstring.view.metadata_table import FOLDER
from drawstring.write import slots
from drawstring.write.locks import LOCK
from drawstring.write.metadata_table.upkeep import drop_metadata_table
from drawstring.write.table_facts import load_state
from tests.small_writes import hooked, leftovers, new_table, rows_of, write
from tests.support.metadata_check import assert_metadata_table_equals_table

OLD = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")]
MINE, THEIRS, AFTER = ("7", "kiel", 1, "mine"), ("8", "bern", 1, "theirs"), ("9", "bern", 1, "after")
ON: dict[str, str] = {}
OFF = {"hoodie.metadata.enable": "false"}
MOMENTS = {
    "before what is left of another goes": lambda operation, name: operation == "rename" and FOLDER in name,
    "before the slot": lambda operation, name: operation == "create" and name.startswith(slots.DIRECTORY),
    "before its first file": lambda operation, name: operation == "create" and name.startswith(FOLDER),
    "before the settings": lambda operation, name: operation == "replace_if" and name == PROPERTIES,
}


def paused(path, moment, act):
    """Storage whose writer sleeps at a moment for longer than its lock lasts; meanwhile another one acts."""
    storage = hooked(str(path))

    def sleep(_number, operation, name):
        if MOMENTS[moment](operation, name):
            storage.before = lambda *_: None
            os.unlink(path / LOCK)
            act(LocalStorage(str(path)))

    storage.before = sleep
    return storage


def assert_right(path, rows):
    assert rows_of(path) == sorted(rows)
    write(LocalStorage(str(path)), [AFTER])
    assert rows_of(path) == sorted([*rows, AFTER])
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    assert leftovers(path) == set()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("theirs", [ON, OFF], ids=["made by the other", "not wanted by the other"])
def test_process_paused_while_it_makes_one_neither_deletes_nor_names_what_is_stale(tmp_path, moment, theirs):
    path = tmp_path / "table"
    plain = new_table(path)
    write(plain, OLD, options=OFF)
    plain.write(f"{FOLDER}/files/left", b"by a process that died")
    storage = paused(path, moment, lambda other: write(other, [THEIRS], options=theirs))
    write(storage, [MINE])
    assert storage.before(0, "", "") is None
    assert_right(path, [*OLD, MINE, THEIRS])


@pytest.mark.parametrize(
    "moment", ["before the slot", "before the settings", "before what is left of another goes"]
)
def test_process_paused_while_it_removes_one_leaves_the_one_that_was_made_since(tmp_path, moment):
    path = tmp_path / "table"
    new_table(path, OLD)

    def act(other):
        if moment == "before the settings":
            drop_metadata_table(other)
        write(other, [THEIRS])

    storage = paused(path, moment, act)
    with pytest.raises(CommitConflict) as caught:
        drop_metadata_table(storage)
    assert caught.value.condition == "OVERTAKEN"
    assert load_state(storage).config.metadata_partitions
    assert_right(path, [*OLD, THEIRS])


def as_hudi_removes_it(storage):
    config = load_state(storage).config
    storage.write(PROPERTIES, updated_content({**config.properties, METADATA_PARTITIONS.key: ""}))
    storage.delete(FOLDER, recursive=True)


def as_hudi_makes_it_anew(storage):
    """Its newest slot is the same, for Hudi takes none."""
    before = slots.newest(storage)
    as_hudi_removes_it(storage)
    write(storage, [THEIRS], options=OFF)
    write(storage, [MINE])
    for number in range(before + 1, slots.newest(storage) + 1):
        storage.delete(slots.slot_path(number))


@pytest.mark.parametrize("remove", [drop_metadata_table, as_hudi_removes_it, as_hudi_makes_it_anew])
def test_decided_service_of_a_metadata_table_that_is_removed_stops_no_write(tmp_path, remove):
    """The newest decision was about something that is gone; every later write ended in a missing file."""
    path = tmp_path / "table"
    plain, failing = new_table(path, OLD), hooked(str(path))

    def fail(_number, operation, _name):
        if operation == "open_output":
            raise OSError(errno.ENOSPC, "No space left on device")

    failing.before = fail
    with pytest.raises(OSError, match="No space left"):
        write(failing, [MINE], options={"hoodie.metadata.compact.max.delta.commits": "1"})
    assert slots.read_slot(plain, slots.newest(plain)).creates.startswith(FOLDER)
    remove(plain)
    assert_right(path, [*OLD, *([THEIRS, MINE] if remove is as_hudi_makes_it_anew else [])])


def test_write_that_goes_on_while_others_leave_it_out_and_make_it_is_no_sign_of_damage(tmp_path):
    """The write that it seems to lack was requested after this one, and was there when it was made."""
    path = tmp_path / "table"
    slow, plain = hooked(str(path)), new_table(path)
    write(plain, OLD, options=OFF)

    def others(_number, operation, _name):
        if operation == "open_output":
            slow.before = lambda *_: None
            write(plain, [THEIRS], options=OFF)
            write(plain, [("6", "rome", 1, "makes it")])

    slow.before = others
    write(slow, [MINE], options=OFF)
    assert load_state(plain).config.metadata_partitions
    assert_right(path, [*OLD, MINE, THEIRS, ("6", "rome", 1, "makes it")])
