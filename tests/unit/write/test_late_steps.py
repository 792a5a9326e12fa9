"""Processes that are paused, or killed, in the middle of a decided change, while others go on without them."""

from __future__ import annotations

import os
import signal

import pyarrow as pa
import pytest

from drawstring.config.concurrency_options import CONFLICT_RETRIES
from drawstring.config.service_options import ServiceOptions
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.errors import CommitConflict
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write import slots
from drawstring.write.commit_encoding import encode_rollback_plan
from drawstring.write.in_process import ArrowRows
from drawstring.write.locks import LOCK
from drawstring.write.pipeline import write_rows
from drawstring.write.rollback import rollback_pending
from drawstring.write.services.archiving import archive
from drawstring.write.table_facts import load_state
from drawstring.write.transaction import Committed, Conflicted, Transaction
from drawstring.write.write_set import WriteSet
from tests.small_writes import (
    OPTIONS,
    hooked,
    in_child,
    leftovers,
    new_table,
    rows_of,
    rows_of_hudi_rs,
    write,
)
from tests.support.metadata_check import assert_metadata_table_equals_table
from tests.support.staged_writes import dead_heartbeat, described, roll_back_as_another_engine, staged_rows

FIRST = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")]
MINE = ("9", "kiel", 1, "mine")
TIMELINE = ".hoodie/timeline"
ARCHIVES_SOON = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table"


@pytest.fixture
def table(path):
    return new_table(path, FIRST, options={"hoodie.metadata.enable": "false"})


def assert_read(path, rows):
    assert rows_of(path) == sorted(rows)
    assert rows_of_hudi_rs(path) == sorted(rows)


def once(storage, when, act):
    """Run something right before the first operation that `when(operation, path)` is true of."""

    def strike(_number, operation, name):
        if when(operation, name):
            storage.before = lambda *_: None
            act()

    storage.before = strike


def test_write_whose_rollback_was_killed_after_it_completed_does_not_commit(table, path):
    """Its rollback is on the timeline: whoever comes first finishes it, the writer itself too."""
    paused = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(paused, [MINE])
    repairing = hooked(str(path))

    def kill(_number, _operation, name):
        if name.endswith(".rollback"):
            os.kill(os.getpid(), signal.SIGKILL)

    repairing.after = kill
    assert in_child(lambda: rollback_pending(repairing, paused.requested_time)) == -signal.SIGKILL
    assert [i.action for i in load_state(table).timeline.ascending_instants if i.is_completed][
        -1
    ] is Action.ROLLBACK
    outcome = paused.commit(described(paused, stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"
    assert not load_state(table).timeline.pending
    assert_read(path, FIRST)


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_write_that_apache_hudi_has_planned_to_roll_back_does_not_commit(table, path, state):
    """Hudi carries such a plan out whenever it comes to it, whatever became of the write meanwhile."""
    paused = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(paused, [MINE])
    plan = encode_rollback_plan(paused.requested_time, "commit", {})
    table.create_if_absent(f"{TIMELINE}/29990101000000000.rollback.requested", plan)
    if state == "inflight":
        table.create_if_absent(f"{TIMELINE}/29990101000000000.rollback.inflight", b"")
    outcome = paused.commit(described(paused, stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"
    assert_read(path, FIRST)


def test_write_beside_a_planned_rollback_of_another_commits(table, path):
    plan = encode_rollback_plan("20200101000000000", "commit", {})
    table.create_if_absent(f"{TIMELINE}/20200101000000001.rollback.requested", plan)
    write(table, [MINE])
    assert_read(path, [*FIRST, MINE])


@pytest.mark.parametrize("moment", [".parquet", "_metadata", ".commit"])
def test_write_that_others_finished_and_archived_while_it_was_paused_is_committed_once(table, path, moment):
    storage, quick = hooked(str(path)), LocalStorage(str(path))

    def others():
        os.unlink(path / LOCK)
        for number in range(6):
            write(quick, [("1", "oslo", number + 2, "later")], options={"hoodie.metadata.enable": "false"})
        for place in (path / ".hoodie" / ".heartbeat").glob("[0-9]*"):
            place.unlink()  # A process that is stopped does not beat; after an hour its heartbeat is swept.
        archive(quick, ServiceOptions.of(ARCHIVES_SOON))

    once(storage, lambda operation, name: operation in ("create", "rename") and name.endswith(moment), others)
    result = write(storage, [MINE], "insert", options={"hoodie.metadata.enable": "false"})
    assert result.tries == 1
    assert result.instant in load_state(table).history.completion_times
    assert_read(path, [MINE, ("1", "oslo", 7, "later"), FIRST[1]])
    assert leftovers(path) == set()


def test_rollback_that_goes_on_late_leaves_the_metafile_of_a_partition_that_another_filled(table, path):
    """Without it Apache Hudi, listing storage, reads the partition as an empty one."""
    dead = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(dead, [MINE])
    killed = hooked(str(path))

    def kill(_number, operation, name):
        if operation == "create" and name.endswith("_metadata"):
            os.kill(os.getpid(), signal.SIGKILL)

    killed.after = kill
    metadata = described(dead, stat)
    object.__setattr__(dead.state, "storage", killed)
    assert in_child(lambda: dead.commit(metadata)) == -signal.SIGKILL
    dead._heartbeat._halt()
    # A decision is finished, not rolled back; without its slot it is a write that died with its files in place.
    os.unlink(path / slots.slot_path(slots.newest(table)))
    os.unlink(path / LOCK)
    dead_heartbeat(table, dead.requested_time)
    slow = hooked(str(path))

    def others():
        os.unlink(path / LOCK)
        write(LocalStorage(str(path)), [("8", "kiel", 1, "theirs")])

    once(slow, lambda operation, name: name.endswith("_metadata"), others)
    rollback_pending(slow, dead.requested_time)
    assert (path / "kiel" / ".hoodie_partition_metadata").exists()
    assert_read(path, [*FIRST, ("8", "kiel", 1, "theirs")])


def test_first_write_of_a_table_sees_a_write_that_completed_and_was_archived_meanwhile(tmp_path):
    """The timeline was empty when it began, so that nothing that it knows is missing from the active one."""
    path = tmp_path / "table"
    without = {"hoodie.metadata.enable": "false"}
    storage, schema = new_table(path, options=without), new_table(tmp_path / "other", FIRST)
    early = [Transaction.begin(storage, operation="INSERT") for _ in range(8)]
    ours = Transaction.begin(storage, operation="UPSERT")
    mine = staged_rows(ours, [("1", "oslo", 9, "mine")])
    for number, transaction in enumerate(early):
        theirs = staged_rows(transaction, [(str(number), "oslo", 1, "theirs")], f"early{number}-0")
        assert isinstance(transaction.commit(described(transaction, theirs, like=schema)), Committed)
    for number in range(6):
        write(storage, [("8", "rome", number, "later")], options=without)
    for place in (path / ".hoodie" / ".heartbeat").glob("[0-9]*"):
        place.unlink()
    archived = archive(storage, ServiceOptions.of(ARCHIVES_SOON))
    assert archived.instants
    metadata = described(ours, mine, operation="UPSERT", like=schema)
    outcome = ours.commit(metadata, WriteSet(checks_new_keys=True, schema_written=metadata.schema))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "CONCURRENT_INSERT"


@pytest.mark.parametrize("moment", [".commit.requested", ".commit"])
def test_commit_of_a_schema_goes_with_the_write_that_another_engine_rolled_back(tmp_path, moment):
    """What the metadata table says of it goes too: it must not seem to lack a write, nor stay pending for ever."""
    path = tmp_path / "table"
    plain, begun = new_table(path, FIRST), []
    storage = hooked(str(path))

    def beside(_number, operation, name):
        if operation == "open_output" and not begun:
            begun.append(load_state(plain).timeline.pending[-1].requested_time)
            write(plain, [("8", "oslo", 1, "other")], "insert")
        if operation == "create" and name.endswith(moment) and begun and begun[0] not in name:
            storage.after = lambda *_: None
            roll_back_as_another_engine(path, begun[0])

    storage.before = storage.after = beside
    wider = pa.table({"id": ["7"], "city": ["rome"], "ts": [1], "v": ["x"], "w": [1]})
    named = WriteOptions.of({**OPTIONS, OPERATION.key: "insert", CONFLICT_RETRIES.key: "0"})
    with pytest.raises(CommitConflict):
        write_rows(ArrowRows(wider), storage, mode="append", options=named)
    assert [i.requested_time for i in load_state(plain).timeline.pending] == []
    assert_metadata_table_equals_table(plain)
    write(plain, [MINE])
    assert_metadata_table_equals_table(plain)
    assert_read(path, [*FIRST, ("8", "oslo", 1, "other"), MINE])
