"""The metadata table as writes want it: made, extended, compacted, taken out, rebuilt, removed."""

from __future__ import annotations

import json
import logging
import shutil

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import drawstring
from drawstring.cli.app import app
from drawstring.config.metadata_options import MetadataTableOptions
from drawstring.errors import CorruptTable
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.storage.nested import NestedStorage
from drawstring.storage.table_properties import PROPERTIES, read_table_config, updated_content
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write.clock import system_clock
from drawstring.write.metadata_table import upkeep
from drawstring.write.metadata_table.definitions import defined_columns
from drawstring.write.services.archive import archive, point_at_newest
from drawstring.write.table_facts import load_state
from tests.small_writes import OPTIONS, SCHEMA, hooked, new_table, rows_of, rows_of_hudi_rs, write
from tests.support.metadata_check import assert_metadata_table_equals_table

ROWS = [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")]
NEXT = [("1", "oslo", 2, "A"), ("4", "kiel", 2, "D")]
DEFAULT = ("column_stats", "files", "partition_stats")
ALL = (*DEFAULT, "record_index", "bloom_filters")
OFF = {"hoodie.metadata.enable": "false"}
ON = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}


def test_new_tables_have_one_as_hudi_makes_it(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)
    assert_metadata_table_equals_table(storage, expect=DEFAULT)
    columns = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key", *SCHEMA.names)
    assert defined_columns(storage, load_state(storage).config) == columns


def test_unpartitioned_tables_have_no_statistics_of_partitions(tmp_path):
    named = {k: v for k, v in OPTIONS.items() if "partitionpath" not in k}
    drawstring.create_table(str(tmp_path / "t"), SCHEMA, options=named)
    drawstring.open_table(str(tmp_path / "t")).write(pa.Table.from_pylist([], SCHEMA))
    assert_metadata_table_equals_table(LocalStorage(str(tmp_path / "t")), expect=DEFAULT[:2])


def test_a_table_whose_first_write_brings_the_schema_names_its_columns(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    write(storage, ROWS)
    assert_metadata_table_equals_table(storage, expect=DEFAULT)
    assert defined_columns(storage, load_state(storage).config)[3:] == tuple(SCHEMA.names)


def test_writes_make_one_for_a_table_without(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    for rows in (ROWS, NEXT):
        write(storage, rows, options=OFF)
    assert not storage.exists(FOLDER)
    assert load_state(storage).config.metadata_partitions == ()
    write(storage, [("5", "rome", 1, "e")], options=ON)
    assert_metadata_table_equals_table(storage, expect=ALL)


def test_indexes_are_added_to_one_that_exists(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)
    write(storage, NEXT, options=ON)
    assert_metadata_table_equals_table(storage, expect=ALL)
    write(storage, [("5", "rome", 1, "e")])
    assert_metadata_table_equals_table(storage, expect=ALL)


def test_a_switch_removes_it_as_hudi_does(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)
    write(storage, NEXT, options=OFF)
    config = load_state(storage).config
    assert not storage.exists(FOLDER)
    assert config.properties["hoodie.table.metadata.partitions"] == ""
    assert rows_of(tmp_path / "t") == rows_of_hudi_rs(tmp_path / "t")


def test_chosen_columns_stay_chosen_and_others_grow_with_the_table(tmp_path):
    wider = pa.table({"id": ["7"], "city": ["rome"], "ts": [1], "v": ["x"], "w": [1]})
    for name, given in (("all", {}), ("some", {"hoodie.metadata.index.column.stats.column.list": "ts"})):
        storage = LocalStorage(str(tmp_path / name))
        write(storage, ROWS, options=given)
        drawstring.open_table(str(tmp_path / name)).write(wider, options=given)
        assert_metadata_table_equals_table(storage, expect=DEFAULT)
        columns = defined_columns(storage, load_state(storage).config)[3:]
        assert columns == ((*SCHEMA.names, "w") if name == "all" else ("ts",))


def test_it_is_compacted_cleaned_and_archived_by_itself(tmp_path):
    storage = LocalStorage(str(tmp_path / "t"))
    given = {"hoodie.metadata.compact.max.delta.commits": "2", "hoodie.clean.automatic": "false"}
    for number in range(45):
        write(storage, [(str(number % 3), "oslo", number, "x")], options=given)
    assert_metadata_table_equals_table(storage)
    state = load_state(storage)
    metadata = MetadataTable(storage, state.config, state.timeline)
    assert sum(i.action is Action.COMMIT for i in metadata.timeline.completed_writes) > 3
    assert metadata.timeline.completed_cleans
    logs = [e for e in storage.list(f"{FOLDER}/files") if ".log." in e.name]
    assert len(logs) < 30
    assert rows_of(tmp_path / "t") == rows_of_hudi_rs(tmp_path / "t")


def test_logs_whose_instants_were_archived_stay_in_their_slices(tmp_path):
    """Hudi archives instants of logs that wait to be cleaned; read with newer slices, they would bring files back."""
    storage = LocalStorage(str(tmp_path / "t"))
    given = {
        "hoodie.metadata.compact.max.delta.commits": "8",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    for number in range(6):
        write(storage, [("1", "oslo", number, "x")], options=given)
    state, nested = load_state(storage), NestedStorage(storage, FOLDER)
    before = MetadataTable(storage, state.config, state.timeline)
    # Three made it, two are of writes; the next one tells that the first file was cleaned.
    chosen = before.timeline.ascending_instants[:5]
    archive(nested, read_table_config(nested), chosen).carry_out(nested)
    point_at_newest(nested, read_table_config(nested))
    after = MetadataTable(storage, state.config, state.timeline)
    (newest,) = after.slices("files")
    assert newest.base_file is not None
    assert newest.base_file.instant > chosen[-1].requested_time, "it was not compacted"
    archived = {instant.requested_time for instant in chosen}
    assert not [log for log in newest.log_files if log.instant in archived]
    assert [log for found in after.all_slices("files") for log in found.log_files if log.instant in archived]
    assert_metadata_table_equals_table(storage)


def test_indexes_that_are_not_kept_are_taken_out_and_told(tmp_path, caplog):
    storage = new_table(tmp_path / "t", ROWS)
    config = load_state(storage).config
    names = "hoodie.table.metadata.partitions"
    storage.write(f"{FOLDER}/secondary_index_v/x", b"")
    storage.write(
        PROPERTIES, updated_content({**config.properties, names: f"{','.join(DEFAULT)},secondary_index_v"})
    )
    path = ".hoodie/.index_defs/index.json"
    definitions = json.loads(storage.read(path))
    definitions["indexDefinitions"]["secondary_index_v"] = {"indexName": "secondary_index_v"}
    storage.write(path, json.dumps(definitions).encode())
    with caplog.at_level(logging.WARNING):
        write(storage, NEXT)
    assert "secondary_index_v" in caplog.text
    assert not storage.exists(f"{FOLDER}/secondary_index_v")
    assert "secondary_index_v" not in json.loads(storage.read(path))["indexDefinitions"]
    assert_metadata_table_equals_table(storage, expect=DEFAULT)


def _cut(storage):
    for entry in storage.list(f"{FOLDER}/partition_stats"):
        if ".log." in entry.name:
            storage.write(entry.path, storage.read(entry.path)[:-7])


DAMAGE = {
    "folder": lambda storage: storage.delete(FOLDER, recursive=True),
    "timeline": lambda storage: storage.delete(f"{FOLDER}/.hoodie/timeline", recursive=True),
    "settings": lambda storage: storage.delete(f"{FOLDER}/.hoodie/hoodie.properties"),
    "partition": lambda storage: storage.delete(f"{FOLDER}/column_stats", recursive=True),
    "logs": _cut,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_one_is_named_and_rebuilt_by_a_command(tmp_path, damage):
    storage = new_table(tmp_path / "t", ROWS)
    write(storage, NEXT, options=ON)
    before = rows_of(tmp_path / "t")
    DAMAGE[damage](storage)
    with pytest.raises(CorruptTable, match="drawstring metadata rebuild") as caught:
        write(storage, [("9", "oslo", 1, "x")])
    assert caught.value.condition == "METADATA_TABLE_DAMAGED"
    result = CliRunner().invoke(app, ["metadata", "rebuild", str(tmp_path / "t"), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["partitions"] == sorted(ALL)
    assert rows_of(tmp_path / "t") == before
    assert_metadata_table_equals_table(storage, expect=ALL)
    write(storage, [("9", "oslo", 1, "x")])
    assert_metadata_table_equals_table(storage, expect=ALL)


def test_a_read_that_was_pinned_before_it_was_made_anew_or_dropped_does_without_its_statistics(
    tmp_path, caplog
):
    table = drawstring.open_table(new_table(tmp_path / "t", ROWS).root)
    # The timeline stays as it is, so what was listed for it is used again.
    pinned = [drawstring.open_table(table.storage.root).snapshot() for _ in range(2)]
    assert pinned[0].scan().to_arrow().num_rows == 3
    table.rebuild_metadata()
    for change, again in ((None, pinned[0]), (table.drop_metadata, pinned[1])):
        if change is not None:
            change()
        for snapshot in (again, drawstring.open_table(table.storage.root).snapshot()):
            assert snapshot.scan().where("city = 'oslo' AND ts = 1").to_arrow().num_rows == 2
            assert snapshot.scan().where("ts = 9").to_arrow().num_rows == 0
            assert snapshot.scan().count() == 3
    assert "Not using column statistics" in caplog.text


def test_statistics_are_used_again_after_it_was_made_anew(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)

    def plan():
        return drawstring.open_table(storage.root).snapshot().scan().where("ts = 9").plan()

    assert not plan().tasks
    drawstring.open_table(storage.root).rebuild_metadata()
    plan()
    assert not plan().tasks
    assert not load_state(storage).has_lost_statistics


def test_it_is_dropped_by_a_command(tmp_path):
    storage = new_table(tmp_path / "t", ROWS)
    for output in ("Removed", "There is no"):
        result = CliRunner().invoke(app, ["metadata", "drop", str(tmp_path / "t")])
        assert output in result.output
    assert not storage.exists(FOLDER)
    assert rows_of(tmp_path / "t") == sorted(ROWS)


class Killed(BaseException):
    pass


def every_point(template, tmp_path, act):
    """Yield a copy of a table for every third operation of `act`, which was the last one."""
    for point in range(1, 300, 3):
        path = tmp_path / str(point) / "t"
        shutil.copytree(template, path)
        storage = hooked(str(path))

        def kill(number, _operation, _name, point=point):
            if number >= point:
                raise Killed

        storage.before = kill
        try:
            act(storage)
        except Killed:
            yield LocalStorage(str(path))
        else:
            return
        shutil.rmtree(path.parent)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("what", ["make", "extend", "remove", "compact"])
def test_a_crash_at_any_step_leaves_a_table_that_is_right_with_or_without(tmp_path, what):
    path = tmp_path / "template"
    storage = LocalStorage(str(path))
    write(storage, ROWS, options=OFF if what == "make" else {})
    for number in range(3):
        write(storage, [("1", "oslo", number, "x")], options=OFF if what == "make" else {})
    wanted = {
        "make": MetadataTableOptions(record_index=True),
        "extend": MetadataTableOptions(record_index=True, bloom_filters=True),
        "remove": MetadataTableOptions(enabled=False),
        "compact": MetadataTableOptions(compact_after=2),
    }[what]
    rows, points = rows_of(path), 0

    def act(storage):
        number = upkeep.slots.settle(storage)
        upkeep.prepared(load_state(storage), number, wanted, clock=system_clock)

    for crashed in every_point(path, tmp_path, act):
        points += 1
        assert rows_of(crashed.root) == rows
        write(crashed, NEXT, options={} if what != "extend" else ON)
        assert_metadata_table_equals_table(crashed)
        assert rows_of(crashed.root) == rows_of_hudi_rs(crashed.root)
    assert points >= (2 if what == "remove" else 5)
