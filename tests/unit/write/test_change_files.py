"""Tables that capture changes: what their change files say is what happened to the rows."""

from __future__ import annotations

import json

import pytest

import drawstring
from drawstring.errors import InvalidOption
from drawstring.storage import LocalStorage
from drawstring.write.table_facts import load_state
from tests.small_writes import OPTIONS, SCHEMA, arrow, leftovers, rows_of, rows_of_hudi_rs, write

MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")
ENABLED = "hoodie.table.cdc.enabled"
MODE = "hoodie.table.cdc.supplemental.logging.mode"
KIND = "hoodie.datasource.write.table.type"


def capturing(path, mode: str | None = None, **more: str) -> LocalStorage:
    chosen = {MODE: mode} if mode else {}
    drawstring.create_table(str(path), SCHEMA, options={**OPTIONS, ENABLED: "true", **chosen, **more})
    return LocalStorage(str(path))


def history(storage: LocalStorage) -> None:
    write(storage, [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")])
    write(storage, [("1", "oslo", 2, "A"), ("4", "oslo", 2, "D")])
    write(storage, [("2", "oslo", 0, "late"), ("5", "oslo", 1, "E")])
    write(storage, [("1", "oslo", 3, ""), ("3", "rome", 3, "")], "delete")
    write(storage, [("9", "oslo", 1, "z")], "insert_overwrite")
    write(storage, [("8", "oslo", 2, "y")], "insert")


def image(text: str | None) -> tuple | None:
    row = json.loads(text) if text and text != "null" else None
    return None if row is None else tuple(row[name] for name in SCHEMA.names)


def told(path) -> list[tuple]:
    """What change data says, whichever files it comes from."""
    found = drawstring.open_table(str(path)).change_data("earliest").to_arrow().to_pylist()
    return sorted((row["ts_ms"], row["op"], image(row["before"]), image(row["after"])) for row in found)


def compared(path) -> list[tuple]:
    """The same from the rows before and after each commit."""
    table = drawstring.open_table(str(path))
    found = []
    begin = "000"
    for commit in table.timeline.completed_writes:
        rows = table.changes(begin, commit.completion_time).to_arrow().to_pylist()
        begin = commit.completion_time
        sides: dict[str, dict[str, tuple]] = {"-": {}, "+": {}}
        for row in rows:
            key = row["_hoodie_record_key"] + ("" if row["_rowkind"] in ("-U", "+U") else row["_rowkind"])
            sides[row["_rowkind"][0]][key] = tuple(row[name] for name in SCHEMA.names)
        for key in {*sides["-"], *sides["+"]}:
            before, after = sides["-"].get(key), sides["+"].get(key)
            op = "u" if before and after else "d" if before else "i"
            found.append((commit.requested_time, op, before, after))
    return sorted(found)


def sort_key(row: tuple) -> str:
    return repr(row)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("mode", MODES)
def test_change_files_tell_what_happened_to_each_row(tmp_path, mode, kind):
    path = tmp_path / "t"
    storage = capturing(path, mode, **{KIND: kind})
    history(storage)
    assert sorted(told(path), key=sort_key) == sorted(compared(path), key=sort_key)
    state = load_state(storage)
    files = [f for i in state.timeline.completed_writes for s in state.metadata(i).stats for f in s.cdc_files]
    assert files
    assert all(storage.exists(name) for name in files)
    assert leftovers(path) == set()
    assert rows_of(path) == rows_of_hudi_rs(path)


def test_a_commit_says_the_sizes_of_its_change_files(tmp_path):
    storage = capturing(tmp_path / "t")
    history(storage)
    state = load_state(storage)
    stats = [s for i in state.timeline.completed_writes for s in state.metadata(i).stats if s.cdc_files]
    assert stats
    for stat in stats:
        assert stat.cdc_sizes == tuple(storage.stat(name).size for name in stat.cdc_files)
        assert stat.cdc_files[0].endswith(".cdc")


def test_the_mode_is_kept_by_the_table_and_not_changed_by_a_write(tmp_path):
    capturing(tmp_path / "t")
    table = drawstring.open_table(str(tmp_path / "t"))
    assert table.config.properties[MODE] == "DATA_BEFORE_AFTER"
    with pytest.raises(InvalidOption, match="CONFIG_CONFLICT"):
        table.write(arrow([("1", "oslo", 1, "a")]), options={MODE: "OP_KEY_ONLY"})
    with pytest.raises(InvalidOption, match="CONFIG_CONFLICT"):
        table.write(arrow([("1", "oslo", 1, "a")]), options={ENABLED: "false"})


def test_rows_that_change_nothing_leave_no_change_file(tmp_path):
    storage = capturing(tmp_path / "t")
    write(storage, [("1", "oslo", 5, "a")])
    write(storage, [("1", "oslo", 1, "late")])
    state = load_state(storage)
    assert not [s for i in state.timeline.completed_writes for s in state.metadata(i).stats if s.cdc_files]


def test_a_key_that_is_inserted_again_is_an_insertion(tmp_path):
    storage = capturing(tmp_path / "t")
    write(storage, [("1", "oslo", 1, "a")])
    write(storage, [("1", "oslo", 2, "again")], "insert")
    assert [(op, after) for _, op, _, after in told(tmp_path / "t")] == [
        ("i", ("1", "oslo", 1, "a")),
        ("i", ("1", "oslo", 2, "again")),
    ]


def test_a_commit_names_the_slice_that_a_log_file_was_appended_to(tmp_path):
    """Hudi's change data query compares the log file with that slice, and finds it nowhere else."""
    storage = capturing(tmp_path / "t", **{KIND: "MERGE_ON_READ"})
    for number in range(1, 4):
        write(storage, [("1", "oslo", number, f"v{number}")])
    state = load_state(storage)
    base, *logs = [stat for i in state.timeline.completed_writes for stat in state.metadata(i).stats]
    assert [stat.log_files for stat in logs] == [(logs[0].name,), (logs[0].name, logs[1].name)]
    texts = [storage.read(path) for path in sorted(timeline_files(state))]
    assert sum(base.name.encode() in text for text in texts) == 3


def timeline_files(state) -> list[str]:
    folder = state.config.timeline_directory
    return [f"{folder}/{name}" for name in state.storage.list_names(folder) if name.endswith("commit")]


def test_changes_are_told_of_rows_that_a_compaction_has_merged_since(tmp_path):
    path = tmp_path / "t"
    storage = capturing(path, **{KIND: "MERGE_ON_READ"})
    write(storage, [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b")])
    write(storage, [("1", "oslo", 2, "A")])
    before = told(path)
    assert drawstring.open_table(str(path)).compact().compactions
    assert told(path) == before
    write(storage, [("1", "oslo", 3, "AA"), ("2", "oslo", 3, "BB")])
    assert [row[1:] for row in told(path)[len(before) :]] == [
        ("u", ("1", "oslo", 2, "A"), ("1", "oslo", 3, "AA")),
        ("u", ("2", "oslo", 1, "b"), ("2", "oslo", 3, "BB")),
    ]
