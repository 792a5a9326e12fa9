"""Several writers append to the same buckets at once, and every one of them stands."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from functools import partial
from multiprocessing import get_context

import pytest

import drawstring
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.errors import CommitConflict, InvalidOption
from drawstring.model.file_names import bucket_of_file_id
from drawstring.storage import LocalStorage
from drawstring.write.in_process import ArrowRows
from drawstring.write.pipeline import write_rows
from tests.small_writes import OPTIONS, SCHEMA, arrow, hooked, in_child, new_table, rows_of, rows_of_hudi_rs
from tests.support.metadata_check import assert_metadata_table_equals_table

MODE = {
    "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    # A write that is not tried again must stand at its first try.
    "hoodie.write.num.retries.on.conflict.failures": "0",
}
TABLE = {**OPTIONS, **MODE, "hoodie.table.type": "MERGE_ON_READ"}
KILL_STEP = int(os.environ.get("KILL_STEP", "4"))
OLD = [(f"k{n}", "rome", 1, "old") for n in range(6)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t"


class RowsThatWait(ArrowRows):
    """Rows of a write beside which something happens: after it was announced, before it is validated."""

    def __init__(self, rows, act):
        super().__init__(rows)
        self.act = act

    def prepare(self, plan, instant):
        self.act()
        super().prepare(plan, instant)


def write(path, rows, operation="upsert", *, storage=None, act=lambda: None, **more):
    named = WriteOptions.of({**TABLE, **more, OPERATION.key: operation})
    storage = storage or LocalStorage(str(path))
    return write_rows(RowsThatWait(arrow(rows), act), storage, mode="append", options=named)


def beside(path, act, rows, operation="upsert", **more):
    """Write rows, and let `act` happen meanwhile."""
    return write(path, rows, operation, act=act, **more)


def group_ids(path):
    state = drawstring.open_table(path).snapshot()
    return sorted(found.group.file_id for found in state.all_slices())


@pytest.mark.parametrize("start", [[], OLD], ids=["first writes", "later writes"])
def test_writers_of_the_same_buckets_all_stand_and_the_ordering_column_decides(path, start):
    new_table(path, options={key: TABLE[key] for key in TABLE if "concurrency" not in key})
    if start:
        write(path, start)

    def other():
        write(path, [("k0", "rome", 9, "other"), ("k1", "rome", 5, "other"), ("new", "rome", 1, "other")])

    beside(path, other, [("k0", "rome", 7, "ours"), ("k1", "rome", 8, "ours"), ("k9", "rome", 1, "ours")])
    expected = {row[0]: row for row in start} | {
        "k0": ("k0", "rome", 9, "other"),
        "k1": ("k1", "rome", 8, "ours"),
        "new": ("new", "rome", 1, "other"),
        "k9": ("k9", "rome", 1, "ours"),
    }
    assert rows_of(path) == sorted(expected.values())
    assert group_ids(path) == [f"0000000{n}-0000-0000-0000-000000000000-0" for n in range(2)]
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    drawstring.open_table(path).compact()
    assert rows_of(path) == rows_of_hudi_rs(path) == sorted(expected.values())


def test_a_compaction_beside_it_takes_what_was_complete_and_no_more(path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD)

    def other():
        write(path, [("k0", "rome", 9, "other"), ("k1", "rome", 5, "other")])
        assert drawstring.open_table(path).compact()

    beside(path, other, [("k0", "rome", 7, "ours"), ("k1", "rome", 8, "ours")])
    rows = [("k0", "rome", 9, "other"), ("k1", "rome", 8, "ours"), *OLD[2:]]
    assert rows_of(path) == sorted(rows)
    drawstring.open_table(path).compact()
    assert rows_of(path) == rows_of_hudi_rs(path) == sorted(rows)


def test_a_delete_and_an_upsert_beside_each_other_both_stand(path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD)
    beside(path, lambda: write(path, OLD[:1], "delete"), [("k1", "rome", 2, "ours")])
    assert rows_of(path) == sorted([("k1", "rome", 2, "ours"), *OLD[2:]])
    beside(path, lambda: write(path, [("k2", "rome", 2, "other")]), OLD[3:4], "delete")
    assert rows_of(path) == sorted([("k1", "rome", 2, "ours"), ("k2", "rome", 2, "other"), *OLD[4:]])
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_logs_merged_beside_it_do_not_pass_a_write_that_came_after_them(path, monkeypatch):
    """Merged logs stand where the newest of them stood: behind a write that began before that one."""
    # Hudi merges logs while writes are pending, we do not.
    monkeypatch.setattr("drawstring.write.services.compact_plan.WRITE_ACTIONS", frozenset())
    options = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    new_table(path, options={**options, "hoodie.table.ordering.fields": ""})
    one = {**options, "hoodie.table.ordering.fields": "", "hoodie.bucket.index.num.buckets": "1"}
    write(path, [("k0", "rome", 1, "first")], **one)
    write(path, [("k0", "rome", 1, "second")], **one)

    def other():
        write(path, [("k1", "rome", 1, "other")], **one)
        merged = {"hoodie.log.compaction.blocks.threshold": "2"}
        assert drawstring.open_table(path).compact(logs_only=True, options=merged).compactions

    with pytest.raises(CommitConflict):
        beside(path, other, [("k0", "rome", 1, "ours")], **one)
    write(path, [("k0", "rome", 1, "ours")], **one)
    assert rows_of(path) == [("k0", "rome", 1, "ours"), ("k1", "rome", 1, "other")]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert_overwrite"])
def test_bulk_inserts_and_overwrites_are_validated(path, operation):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD)
    with pytest.raises(CommitConflict):
        beside(path, lambda: write(path, [("k0", "rome", 2, "b")]), [("k0", "rome", 3, "c")], operation)
    assert ("k0", "rome", 2, "b") in rows_of(path)


def test_a_write_beside_dropped_partitions_is_not_lost_in_groups_that_are_gone(path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD)
    drop = drawstring.open_table(path).delete_partitions
    with pytest.raises(CommitConflict):
        beside(path, lambda: drop("rome"), [("k0", "rome", 2, "ours")])
    assert rows_of(path) == []
    # The file ids that all writers would choose are those of the groups that were taken out.
    write(path, [("k0", "rome", 2, "again"), ("k1", "rome", 2, "again")])
    assert rows_of(path) == [("k0", "rome", 2, "again"), ("k1", "rome", 2, "again")]
    drop("rome")
    with pytest.raises(CommitConflict):
        beside(path, lambda: write(path, [("k0", "rome", 3, "x")]), [("k0", "rome", 4, "y")])
    assert rows_of(path) == [("k0", "rome", 3, "x")]


def test_a_writer_that_expects_others_to_wait_is_in_the_way(path):
    """A group of another id in the same bucket would double keys."""
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    optimistic = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    with pytest.raises(CommitConflict):
        beside(path, lambda: write(path, OLD, **optimistic), [("k0", "rome", 2, "ours")])
    assert rows_of(path) == sorted(OLD)
    with pytest.raises(CommitConflict):
        beside(path, lambda: write(path, OLD), [("k0", "rome", 2, "ours")], **optimistic)
    assert rows_of(path) == sorted(OLD)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hoodie.table.type": "COPY_ON_WRITE"}, "copy-on-write"),
        ({"hoodie.index.type": "SIMPLE"}, "two file groups"),
        ({"hoodie.metadata.global.record.level.index.enable": "true"}, "record index"),
        ({"hoodie.table.cdc.enabled": "true"}, "captures changes"),
    ],
)
def test_other_tables_are_refused_with_the_reason(path, options, reason):
    with pytest.raises(InvalidOption, match=reason) as caught:
        drawstring.create_table(path, SCHEMA, options={**TABLE, **options})
    assert caught.value.fields["key"] == "hoodie.write.concurrency.mode"
    plain = {key: value for key, value in {**TABLE, **options}.items() if "concurrency" not in key}
    table = drawstring.create_table(path, SCHEMA, options=plain)
    with pytest.raises(InvalidOption, match=reason):
        table.write(arrow(OLD), options={**MODE, **options})
    assert rows_of(path) == []


def test_a_record_index_made_meanwhile_is_not_spoiled(path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD)
    index = {
        "hoodie.metadata.global.record.level.index.enable": "true",
        "hoodie.write.concurrency.mode": "single_writer",
    }
    with pytest.raises(CommitConflict):
        beside(path, lambda: write(path, [("k0", "rome", 2, "other")], **index), [("k1", "rome", 2, "ours")])
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_killed_at_any_operation_beside_another_writer_leaves_that_one_whole(path, tmp_path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(path, OLD[2:])
    theirs, ours = ("k1", "rome", 5, "theirs"), ("k0", "rome", 7, "ours")
    seen = []
    for point in range(1, 100, KILL_STEP):
        at = tmp_path / str(point)
        shutil.copytree(path, at)
        code = in_child(partial(_write_and_die, at, point, ours, theirs))
        _let_die(at)
        write(at, [("k9", "rome", 1, "next")])
        found = set(rows_of(at)) - {*OLD, ("k9", "rome", 1, "next")}
        # The other one was acknowledged before the point, or had not begun.
        assert found in (set(), {theirs}, {theirs, ours})
        seen.append(len(found))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 2)


def _write_and_die(at, point, ours, theirs):
    storage = hooked(str(at))

    def kill(number, _operation, _name):
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)

    storage.after = kill
    write(at, [ours], storage=storage, act=partial(write, at, [theirs]))


def _let_die(path):
    """Let the heartbeats of the dead go cold, as if their time had passed."""
    with suppress(FileNotFoundError):
        for entry in os.scandir(path / ".hoodie/.heartbeat"):
            os.utime(entry.path, (0, 0))


def _many(path, worker, commits):
    for turn in range(commits):
        rows = [
            ("shared", "rome", worker + 10 * turn, f"{worker}-{turn}"),
            (f"own{worker}", "rome", turn, "x"),
        ]
        write(path, rows)


def test_processes_that_contend_for_the_same_keys_are_never_tried_again(path):
    new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    workers, commits = 3, int(os.environ.get("NON_BLOCKING_COMMITS", "4"))
    fork = get_context("fork")
    running = [fork.Process(target=_many, args=(path, n, commits)) for n in range(workers)]
    for process in running:
        process.start()
    while any(process.is_alive() for process in running):
        with suppress(CommitConflict):
            drawstring.open_table(path).compact()
    assert [process.exitcode for process in running] == [0] * workers
    last = workers - 1 + 10 * (commits - 1)
    expected = [("shared", "rome", last, f"{workers - 1}-{commits - 1}")]
    expected += [(f"own{n}", "rome", commits - 1, "x") for n in range(workers)]
    assert rows_of(path) == sorted(expected)
    assert len({bucket_of_file_id(file_id) for file_id in group_ids(path)}) == len(group_ids(path))
    drawstring.open_table(path).compact()
    assert rows_of(path) == rows_of_hudi_rs(path) == sorted(expected)
    assert_metadata_table_equals_table(LocalStorage(str(path)))
