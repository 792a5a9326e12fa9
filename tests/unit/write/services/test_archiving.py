"""Archival as it runs: what stays, what the history tells, and what a killed archiver leaves."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.timeline import reader
from drawstring.timeline.history import History
from drawstring.write.clock import system_clock
from drawstring.write.services import compacting
from drawstring.write.services.archive import read_version
from drawstring.write.services.archiving import archive, plan_of_archive
from drawstring.write.services.cleaning import clean
from drawstring.write.table_facts import load_state
from tests.small_writes import leftovers, new_table, rows_of, rows_of_hudi_rs, write
from tests.unit.write.services.test_cleaning import QUIET

FEW = {
    "hoodie.keep.min.commits": 4,
    "hoodie.keep.max.commits": 5,
    "hoodie.clean.commits.retained": 2,
    "hoodie.timeline.compaction.batch.size": 3,
}


def options(**more):
    return ServiceOptions.of({**FEW, **more})


def table_of(path, updates=7):
    storage = new_table(path)
    for number in range(updates):
        write(storage, [("1", "oslo", 1 + number, f"a{number}"), ("2", "rome", 1, "b")], options=QUIET)
    return storage


def active(storage):
    return [i.requested_time for i in load_state(storage).timeline.completed_writes]


def archived(storage):
    return [w.instant.requested_time for w in History(storage, load_state(storage).config).writes]


def test_old_instants_move_into_the_history_and_reads_of_all_times_agree(tmp_path):
    storage = table_of(tmp_path / "t")
    everything, rows = active(storage), rows_of(tmp_path / "t")
    table = drawstring.open_table(str(tmp_path / "t"))
    changes = table.incremental("earliest").scan().to_arrow().num_rows
    travelled = [table.snapshot(as_of=i).scan().to_arrow().num_rows for i in everything]
    told = plan_of_archive(storage, options())
    assert told.is_dry_run
    assert active(storage) == everything
    result = archive(storage, options())
    assert result.instants == told.instants == tuple((i, "commit") for i in everything[:3])
    assert active(storage) == everything[3:]
    assert archived(storage) == everything[:3]
    table = drawstring.open_table(str(tmp_path / "t"))
    assert [table.snapshot(as_of=i).scan().to_arrow().num_rows for i in everything] == travelled
    assert table.incremental("earliest").scan().to_arrow().num_rows == changes
    assert rows_of(tmp_path / "t") == rows == rows_of_hudi_rs(tmp_path / "t")
    assert leftovers(tmp_path / "t") == set()
    assert archive(storage, options()).instants == ()


def test_levels_are_merged_and_what_no_manifest_names_goes(tmp_path):
    storage = table_of(tmp_path / "t")
    everything = active(storage)
    merged = []
    for number in range(8):
        result = archive(storage, options())
        merged += result.merged
        for more in range(2):
            write(storage, [("1", "oslo", 50 + 2 * number + more, "z")], options=QUIET)
            everything.append(active(storage)[-1])
    assert sorted({*archived(storage), *active(storage)}) == everything
    assert merged
    config = load_state(storage).config
    names = storage.list_names(config.history_directory)
    version = read_version(storage, config)
    assert storage.read(f"{config.history_directory}/_version_").decode() == str(version.number)
    assert len([n for n in names if n.startswith("manifest_")]) <= 4
    assert len([n for n in names if n.endswith(".parquet")]) <= len(version.files) + 6


def test_files_that_a_replacecommit_took_out_hold_it_back_until_they_are_cleaned(tmp_path):
    storage = table_of(tmp_path / "t", updates=1)
    write(storage, [("3", "oslo", 1, "c")], "insert_overwrite", options=QUIET)
    for number in range(7):
        write(storage, [("2", "rome", 2 + number, "b")], options=QUIET)
    rows = rows_of(tmp_path / "t")
    result = archive(storage, options())
    assert [action for _, action in result.instants] == ["commit"]
    assert rows_of(tmp_path / "t") == rows
    clean(storage, options())
    write(storage, [("2", "rome", 20, "b")], options=QUIET)
    write(storage, [("2", "rome", 21, "b")], options=QUIET)
    result = archive(storage, options())
    assert "replacecommit" in [action for _, action in result.instants]
    assert rows_of(tmp_path / "t") == [("2", "rome", 21, "b"), ("3", "oslo", 1, "c")]
    assert rows_of_hudi_rs(tmp_path / "t") == rows_of(tmp_path / "t")


def test_a_live_heartbeat_and_the_cleaners_retention_hold_back(tmp_path):
    storage = table_of(tmp_path / "t")
    second = active(storage)[1]
    storage.write(f".hoodie/.heartbeat/{second}", b"")
    assert [time for time, _ in plan_of_archive(storage, options()).instants] == active(storage)[:1]
    storage.delete(f".hoodie/.heartbeat/{second}")
    many = options(**{"hoodie.clean.commits.retained": 6})
    assert plan_of_archive(storage, many).instants == ()


def test_delta_commits_that_are_not_compacted_stay_beside_another_engine(tmp_path):
    """Hudi's compaction would miss what is archived between its looks at the timeline and at the history."""
    path = tmp_path / "t"
    storage = new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    for number in range(7):
        write(storage, [("1", "oslo", 1 + number, f"a{number}")], options=QUIET)
    assert plan_of_archive(storage, options()).instants
    theirs = active(storage)[2]
    storage.write(f".hoodie/timeline/{theirs}.deltacommit.inflight", b"")
    assert not plan_of_archive(storage, options()).instants
    assert drawstring.open_table(str(path)).compact().compactions
    assert max(time for time, _ in plan_of_archive(storage, options()).instants) < theirs
    later = system_clock() + 8 * 24 * 60 * 60 * 1000
    assert theirs in [time for time, _ in plan_of_archive(storage, options(), clock=lambda: later).instants]


@pytest.mark.parametrize("is_ours", [True, False])
def test_delta_commits_stay_where_another_engine_compacted_last(tmp_path, monkeypatch, is_ours):
    if not is_ours:
        monkeypatch.setattr(compacting, "signature", dict)
    path = tmp_path / "t"
    storage = new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    for number in range(2):
        write(storage, [("1", "oslo", number, "a")], options=QUIET)
    assert drawstring.open_table(str(path)).compact().compactions
    for number in range(7):
        write(storage, [("1", "oslo", 2 + number, f"a{number}")], options=QUIET)
    first_waiting = active(storage)[3]
    gone = [time for time, _ in plan_of_archive(storage, options()).instants]
    assert (first_waiting in gone) is is_ours


def test_a_file_that_a_killed_archiver_left_is_never_overwritten(tmp_path):
    storage = table_of(tmp_path / "t")
    everything = active(storage)
    history = load_state(storage).config.history_directory
    garbage = f"{history}/{everything[0]}_{everything[2]}_0.parquet"
    storage.write(garbage, b"another list")
    result = archive(storage, options())
    assert len(result.segments) == 2
    assert storage.read(garbage) == b"another list"
    assert archived(storage) == everything[:3]
    assert active(storage) == everything[3:]


def test_cleans_are_archived_with_the_writes_around_them(tmp_path):
    storage = table_of(tmp_path / "t")
    clean(storage, options())
    for number in range(7):
        write(storage, [("1", "oslo", 20 + number, "z")], options=QUIET)
    clean(storage, options())
    result = archive(storage, options())
    assert "clean" in [action for _, action in result.instants]
    left = load_state(storage).timeline
    assert [i for i in left.ascending_instants if i.action is Action.CLEAN]
    assert not left.pending
    assert isinstance(storage, LocalStorage)


def test_what_is_archived_while_a_reader_or_writer_is_at_work_is_still_told(tmp_path):
    storage = table_of(tmp_path / "t")
    pinned = load_state(storage)
    before = [pinned.metadata(instant) for instant in pinned.timeline.completed_writes]
    archive(storage, options())
    reader._commits.clear()  # what this process remembers of it
    assert [pinned.metadata(instant) for instant in pinned.timeline.completed_writes] == before
