"""Compactions as they run: scheduled and run, beside writers, and where others have begun or died."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.errors import CommitConflict, UnsupportedTable
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.compaction import compact_slices
from drawstring.write.services.cleaning import clean
from drawstring.write.services.compacting import compact, plan_of_compact
from drawstring.write.table_facts import load_state
from tests.small_writes import files_of, new_table
from tests.support.hand_table import HandTable

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("s", pa.string()), ("ts", pa.int64())])
EXPECTED = {1: "new", 2: "s2", 3: "s3", 5: "s5", 10: "s10", 11: "s11"}


def row(i, ts, s=None, p="a"):
    return {"id": i, "p": p, "s": s or f"s{i}", "ts": ts}


def table_of(path) -> HandTable:
    """Two groups: one with an update and deletes in a log, one without logs."""
    table = HandTable(LocalStorage(str(path)), SCHEMA).create(table_type="MERGE_ON_READ")
    first = table.next_time()
    base = table.base_file(first, "a", [row(i, 5) for i in range(6)])
    other = table.base_file(first, "b", [row(i, 5, p="b") for i in (10, 11)])
    table.commit(first, [base, other])
    second = table.next_time()
    table.commit(second, [table.log_file(second, base, [row(1, 6, "new")], [("4", 9), ("0", None)])])
    return table


def append(table, rows):
    (found,) = [
        one
        for one in load_state(table.storage).view(None).slices("a")
        if one.base_file is not None or one.log_files
    ]
    base = found.base_file
    instant = table.next_time()
    stat = WriteStat(base.file_id, base.path, "a", file_size=base.size)
    table.commit(instant, [table.log_file(instant, stat, rows)])


def rows_of(path):
    found = drawstring.open_table(str(path)).snapshot().scan().to_arrow().to_pylist()
    assert len(found) == len({one["id"] for one in found})
    return {one["id"]: one["s"] for one in found}


def rows_of_hudi_rs(path):
    found = pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(path)).build().read()).to_pylist()
    return {one["id"]: one["s"] for one in found}


def logs_read(path):
    tasks = drawstring.open_table(str(path)).snapshot().scan().plan().tasks
    return sum(len(task.slice.log_files) for task in tasks)


def pending(table):
    return load_state(table.storage).timeline.pending_compactions


def leftovers(path):
    return {name for name in files_of(path) if any(p in name for p in (".temp/", ".heartbeat/", ".tmp"))}


def test_slices_with_logs_get_new_base_files_and_no_reader_sees_a_difference(tmp_path):
    table = table_of(tmp_path)
    before = drawstring.open_table(str(tmp_path)).snapshot().scan().to_arrow().sort_by("id")
    told = plan_of_compact(table.storage)
    assert told.is_dry_run
    assert [len(one.groups) for one in told.compactions] == [1]
    assert not pending(table)
    result = compact(table.storage)
    (done,) = result.compactions
    assert done.completion_time
    assert done.rows == 4
    assert len(done.groups) == 1
    assert logs_read(tmp_path) == 0
    after = drawstring.open_table(str(tmp_path)).snapshot().scan().to_arrow().sort_by("id")
    same = [name for name in after.column_names if name != "_hoodie_file_name"]
    assert after.select(same).to_pylist() == before.select(same).to_pylist()
    assert rows_of_hudi_rs(tmp_path) == EXPECTED
    instant = load_state(table.storage).timeline.by_requested_time[done.instant]
    assert instant.action is Action.COMMIT
    assert load_state(table.storage).metadata(instant).operation == "COMPACT"
    assert leftovers(tmp_path) == set()
    assert compact(table.storage).compactions == ()


def test_a_scheduled_plan_is_run_by_whoever_comes_and_writers_append_beside_it(tmp_path):
    table = table_of(tmp_path)
    (planned,) = compact(table.storage, runs=False).compactions
    assert planned.completion_time is None
    assert [i.requested_time for i in pending(table)] == [planned.instant]
    append(table, [row(5, 9, "beside")])
    assert rows_of(tmp_path) == {**EXPECTED, 5: "beside"}
    assert compact(table.storage, runs=False).compactions == ()
    (done,) = compact(table.storage, schedules=False).compactions
    assert done.instant == planned.instant
    assert done.completion_time
    assert rows_of(tmp_path) == {**EXPECTED, 5: "beside"} == rows_of_hudi_rs(tmp_path)
    assert logs_read(tmp_path) == 1
    compact(table.storage)
    assert logs_read(tmp_path) == 0
    assert rows_of(tmp_path) == {**EXPECTED, 5: "beside"}


def test_logs_that_complete_while_it_runs_belong_to_the_slice_after_it(tmp_path):
    table = table_of(tmp_path)

    def slowly(context, tasks):
        append(table, [row(5, 9, "meanwhile")])
        return compact_slices(context, tasks)

    compact(table.storage, run_tasks=slowly)
    assert rows_of(tmp_path) == {**EXPECTED, 5: "meanwhile"} == rows_of_hudi_rs(tmp_path)
    assert logs_read(tmp_path) == 1


def failing(error):
    def run(context, tasks):
        compact_slices(context, tasks)
        raise error

    return run


def test_an_attempt_that_fails_leaves_the_plan_and_the_next_one_runs_it(tmp_path):
    table = table_of(tmp_path)
    with pytest.raises(OSError, match="disk"):
        compact(table.storage, run_tasks=failing(OSError("the disk is full")))
    (left,) = pending(table)
    assert rows_of(tmp_path) == EXPECTED
    assert not [name for name in files_of(tmp_path) if ".staged/" in name]
    (done,) = compact(table.storage).compactions
    assert done.instant == left.requested_time
    assert rows_of(tmp_path) == EXPECTED == rows_of_hudi_rs(tmp_path)
    assert leftovers(tmp_path) == set()


def test_a_compactor_at_work_is_left_alone_and_a_dead_one_is_taken_over(tmp_path):
    table = table_of(tmp_path)
    others = []

    def beside(context, tasks):
        others.append(compact(LocalStorage(str(tmp_path))))
        return compact_slices(context, tasks)

    (done,) = compact(table.storage, run_tasks=beside).compactions
    assert others[0].running == (done.instant,)
    assert others[0].compactions == ()
    append(table, [row(5, 9, "more")])

    def late(context, tasks):
        stats = compact_slices(context, tasks)
        os.utime(tmp_path / ".hoodie" / ".heartbeat" / context.requested_time, (1, 1))
        others.append(compact(LocalStorage(str(tmp_path))))
        return stats

    with pytest.raises(CommitConflict) as caught:
        compact(table.storage, run_tasks=late)
    assert caught.value.condition == "ROLLED_BACK"
    assert [one.completion_time is not None for one in others[1].compactions] == [True]
    assert rows_of(tmp_path) == {**EXPECTED, 5: "more"} == rows_of_hudi_rs(tmp_path)
    assert not pending(table)


def test_a_half_compaction_of_hudis_is_taken_back_before_its_plan_is_run(tmp_path):
    table = table_of(tmp_path)
    (planned,) = compact(table.storage, runs=False).compactions
    table.storage.write(f".hoodie/timeline/{planned.instant}.compaction.inflight", b"")
    group = planned.groups[0]
    half = f"a/{group.file_id}_0-1-2_{planned.instant}.parquet"
    table.storage.write(half, b"half a file")
    table.storage.write(f".hoodie/.temp/{planned.instant}/{half}.marker.MERGE", b"")
    assert rows_of(tmp_path) == EXPECTED
    (done,) = compact(table.storage).compactions
    assert done.instant == planned.instant
    assert not table.storage.exists(half)
    assert rows_of(tmp_path) == EXPECTED == rows_of_hudi_rs(tmp_path)


def test_triggers_count_delta_commits_and_time(tmp_path):
    table = table_of(tmp_path)

    def due(clock=None, **given):
        options = ServiceOptions.of(
            {f"hoodie.compact.inline.{k.replace('_', '.')}": v for k, v in given.items()}
        )
        more = {"clock": clock} if clock else {}
        return bool(plan_of_compact(table.storage, options, only_if_due=True, **more).compactions)

    later = lambda: 4_000_000_000_000  # noqa: E731
    assert not due()
    assert due(max_delta_commits=2)
    assert not due(trigger_strategy="TIME_ELAPSED")
    assert due(later, trigger_strategy="TIME_ELAPSED")
    assert not due(later, trigger_strategy="NUM_AND_TIME")
    assert due(later, trigger_strategy="NUM_OR_TIME")
    assert due(later, trigger_strategy="NUM_AND_TIME", max_delta_commits=2)
    compact(table.storage, runs=False)
    append(table, [row(5, 9, "x")])
    requests = {"trigger_strategy": "NUM_COMMITS_AFTER_LAST_REQUEST"}
    state = load_state(table.storage)
    from drawstring.write.services.compact_plan import is_due

    def after_request(commits):
        options = ServiceOptions.of(
            {
                "hoodie.compact.inline.trigger.strategy": requests["trigger_strategy"],
                "hoodie.compact.inline.max.delta.commits": commits,
            }
        )
        return is_due(state, options.compact, clock=later)

    assert after_request(1)
    assert not after_request(2)


def test_a_clean_keeps_what_a_pending_compaction_reads_and_takes_the_old_slice_after_it(tmp_path):
    table = table_of(tmp_path)
    for number in range(3):
        append(table, [row(5, 9 + number, f"v{number}")])
    few = ServiceOptions.of({"hoodie.clean.commits.retained": 1})
    compact(table.storage, runs=False)
    append(table, [row(5, 20, "later")])
    assert clean(table.storage, few).files_deleted == 0
    compact(table.storage, schedules=False)
    append(table, [row(5, 30, "last")])
    append(table, [row(3, 30, "s3")])
    append(table, [row(2, 30, "s2")])
    result = clean(table.storage, few)
    assert result.files_deleted == 5  # a base file and four logs
    assert rows_of(tmp_path) == {**EXPECTED, 5: "last"} == rows_of_hudi_rs(tmp_path)


def test_copy_on_write_tables_have_nothing_to_compact(tmp_path):
    storage = new_table(tmp_path / "t")
    with pytest.raises(UnsupportedTable) as caught:
        compact(storage)
    assert caught.value.condition == "NOTHING_TO_COMPACT"
