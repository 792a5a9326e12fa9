from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from conftest_write import metadata_of, paths_of, stage_file

from drawstring.errors import CommitConflict, UnsupportedTable
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.locks import LOCK, Owner
from drawstring.write.rollback import rollback_pending
from drawstring.write.table_state import TableState
from drawstring.write.transaction import Committed, Conflicted, OutcomeUnknown, Transaction


def commit_one(storage, **kwargs):
    transaction = Transaction.begin(storage, operation="INSERT")
    return transaction, transaction.commit(metadata_of(stage_file(transaction, **kwargs)))


def test_commit_publishes_files_and_leaves_nothing_else_behind(table):
    transaction, outcome = commit_one(table)
    assert isinstance(outcome, Committed)
    instant = outcome.instant
    assert instant.completion_time > instant.requested_time
    found = paths_of(table)
    timeline = ".hoodie/timeline/"
    assert timeline + f"{transaction.requested_time}.commit.requested" in found
    assert timeline + f"{transaction.requested_time}.inflight" in found
    assert timeline + instant.file_name in found
    assert "oslo/.hoodie_partition_metadata" in found
    assert not [p for p in found if ".temp/" in p and "." in p.split("/")[-1]]
    assert not [p for p in found if "heartbeat" in p]
    assert LOCK not in found


def test_committed_slices_are_seen_by_the_view(table):
    commit_one(table)
    state = TableState.load(table)
    assert [s.group.file_id for s in state.slices(["oslo"])] == ["f1-0"]
    metadata = state.commit_metadata(state.timeline.completed_writes[0])
    assert (metadata.operation, metadata.stats[0].num_inserts) == ("INSERT", 1)


def test_small_commits_do_not_tell_the_size_of_a_record(table):
    _, outcome = commit_one(table)
    state, size = TableState.load(table), outcome.metadata.stats[0].file_size
    assert state.average_record_size(at_least=size) == size
    assert state.average_record_size(at_least=size + 1) is None


def test_abort_leaves_the_table_as_it_was(table):
    before = paths_of(table)
    transaction = Transaction.begin(table, operation="INSERT")
    stage_file(transaction)
    transaction.abort()
    assert paths_of(table) == before


def test_abort_keeps_what_other_commits_put_into_the_partition(table):
    commit_one(table)
    before = paths_of(table)
    transaction = Transaction.begin(table, operation="INSERT")
    stage_file(transaction, file_id="f2-0")
    transaction.abort()
    assert paths_of(table) == before


def test_files_of_attempts_that_were_not_accepted_are_deleted(table):
    transaction = Transaction.begin(table, operation="INSERT")
    stage_file(transaction, file_id="lost-0")
    outcome = transaction.commit(metadata_of(stage_file(transaction, file_id="kept-0")))
    assert isinstance(outcome, Committed)
    assert [p for p in paths_of(table) if "lost-0" in p] == []


def test_instants_rise_even_when_the_clock_stands_still(table, monkeypatch):
    monkeypatch.setattr("drawstring.write.clock._LONGEST_WAIT_SECONDS", 0.01)
    times = []
    for number in range(3):
        transaction = Transaction.begin(
            table, operation="INSERT", clock=lambda: 1_700_000_000_000, lock_wait=1
        )
        outcome = transaction.commit(metadata_of(stage_file(transaction, file_id=f"f{number}-0")))
        times += [outcome.instant.requested_time, outcome.instant.completion_time]
    assert times == sorted(set(times))


def test_second_writer_is_refused_while_the_first_is_at_work(table):
    first = Transaction.begin(table, operation="INSERT")
    with pytest.raises(CommitConflict) as caught:
        Transaction.begin(table, operation="INSERT")
    assert caught.value.condition == "WRITE_PENDING"
    assert caught.value.fields["instant"] == first.requested_time
    assert isinstance(first.commit(metadata_of(stage_file(first))), Committed)


def test_of_many_racing_writers_every_one_commits_or_gets_a_conflict(table):
    results = []

    def write(number: int) -> None:
        try:
            transaction = Transaction.begin(table, operation="INSERT")
            results.append(transaction.commit(metadata_of(stage_file(transaction, file_id=f"f{number}-0"))))
        except CommitConflict as error:
            results.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    committed = [r for r in results if isinstance(r, Committed)]
    assert committed
    assert len(results) == 8
    state = TableState.load(table)
    assert len(state.timeline.completed_writes) == len(committed) == len(state.slices(["oslo"]))
    assert not state.timeline.pending


def test_commit_of_another_engine_in_between_is_a_conflict(table):
    transaction = Transaction.begin(table, operation="INSERT")
    stat = stage_file(transaction)
    table.create_if_absent(".hoodie/timeline/29990101000000000_29990101000000001.commit", b"")
    before = paths_of(table)
    outcome = transaction.commit(metadata_of(stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "CONCURRENT_COMMIT"
    assert paths_of(table) < before
    assert not [p for p in paths_of(table) if transaction.requested_time in p]


def test_rolled_back_writer_cannot_commit(table):
    transaction = Transaction.begin(table, operation="INSERT")
    stat = stage_file(transaction)
    rollback_pending(table, transaction.requested_time)
    outcome = transaction.commit(metadata_of(stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"


def test_rollback_removes_the_files_and_leaves_a_rollback_instant(table):
    transaction = Transaction.begin(table, operation="INSERT", action=Action.REPLACECOMMIT)
    stage_file(transaction)
    rollback_pending(table, transaction.requested_time)
    state = TableState.load(table)
    assert [i.action for i in state.timeline.ascending_instants] == [Action.ROLLBACK]
    assert not [p for p in paths_of(table) if p.endswith(".parquet") or "oslo" in p]
    transaction._heartbeat.stop()


def test_write_of_a_dead_process_is_rolled_back_by_the_next_writer(table):
    first = Transaction.begin(table, operation="INSERT")
    stage_file(first, file_id="dead-0")
    first._heartbeat.abandon()
    _, outcome = commit_one(table)
    assert isinstance(outcome, Committed)
    assert not [p for p in paths_of(table) if "dead-0" in p]


def test_lock_of_a_dead_process_is_taken_over_but_a_foreign_one_is_not(table):
    table.create_if_absent(LOCK, replace(Owner.me(), pid=2**22 + 1).to_bytes())
    assert isinstance(commit_one(table)[1], Committed)
    table.create_if_absent(LOCK, b"")
    with pytest.raises(CommitConflict, match="locked by another writer"):
        Transaction.begin(table, operation="INSERT", lock_wait=0.05)


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"hoodie.table.metadata.partitions": "files"}, "WRITE_WITH_METADATA_TABLE"),
        ({"hoodie.table.metadata.partitions.inflight": "column_stats"}, "WRITE_WITH_METADATA_TABLE"),
        ({"hoodie.table.version": "8"}, "WRITE_TABLE_VERSION"),
        ({"hoodie.table.type": "MERGE_ON_READ"}, "WRITE_MERGE_ON_READ"),
        ({"hoodie.populate.meta.fields": "false"}, "WRITE_WITHOUT_META_FIELDS"),
        ({"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}, "WRITE_KEY_GENERATOR"),
        ({"hoodie.table.cdc.enabled": "true"}, "WRITE_CHANGE_CAPTURE"),
        ({"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}, "WRITE_MERGER"),
    ],
)
def test_table_that_a_write_would_spoil_is_refused_by_name(table, change, condition):
    from drawstring.config.properties import format_properties, parse_properties

    path = ".hoodie/hoodie.properties"
    properties = parse_properties(table.read(path), source=path) | change
    table.write(path, format_properties(properties, comment="changed"))
    before = paths_of(table)
    with pytest.raises(UnsupportedTable) as caught:
        Transaction.begin(table, operation="INSERT")
    assert caught.value.condition == condition
    assert paths_of(table) == before


class FlakyStorage(LocalStorage):
    """Fails on the n-th change, once or for good; may do the work first."""

    def __init__(self, root, *, fail_at, after=False, for_good=False, kill=False):
        super().__init__(root)
        self.fail_at, self.after, self.for_good, self.kill = fail_at, after, for_good, kill
        self.changes = 0
        self.blind = False

    def _step(self, action):
        self.changes += 1
        failing = self.changes == self.fail_at or (self.for_good and self.changes > self.fail_at)
        if failing and not self.after:
            self._fail()
        result = action()
        if failing:
            self._fail()
        return result

    def _fail(self):
        if self.kill:
            os._exit(7)
        raise OSError(28, "No space left on device")

    def create_if_absent(self, path, content):
        return self._step(lambda: LocalStorage.create_if_absent(self, path, content))

    def replace_if(self, path, expected, content):
        return self._step(lambda: LocalStorage.replace_if(self, path, expected, content))

    def write(self, path, content):
        return self._step(lambda: LocalStorage.write(self, path, content))

    def open_output(self, path):
        return self._step(lambda: LocalStorage.open_output(self, path))

    def delete(self, path, *, recursive=False):
        return self._step(lambda: LocalStorage.delete(self, path, recursive=recursive))

    def exists(self, path):
        if self.blind:
            raise OSError(5, "Input/output error")
        return super().exists(path)


def _run(storage):
    transaction = Transaction.begin(storage, operation="INSERT")
    try:
        stat = stage_file(transaction, file_id="new-0")
    except BaseException:
        transaction.abort()
        raise
    return transaction.commit(metadata_of(stat))


def _as_if_the_writer_had_died(storage) -> None:
    for instant in TableState.load(storage).timeline.pending:
        path = f".hoodie/.heartbeat/{instant.requested_time}"
        assert storage.exists(path)
        storage.write(path, replace(Owner.me(), pid=-1).to_bytes())


def _visible(storage) -> set[str]:
    return {s.group.file_id for s in TableState.load(storage).slices(["oslo"])}


@pytest.fixture
def root(tmp_path):
    from conftest_write import OPTIONS

    from drawstring.write.create import create_table

    storage = LocalStorage(str(tmp_path / "table"))
    create_table(storage, OPTIONS)
    commit_one(storage)
    return storage


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("for_good", [False, True])
def test_storage_failing_at_any_step_never_shows_half_a_write(root, after, for_good):
    for step in range(1, 30):
        flaky = FlakyStorage(root.root, fail_at=step, after=after, for_good=for_good)
        try:
            outcome = _run(flaky)
        except OSError:
            outcome = None
        committed = isinstance(outcome, Committed)
        assert _visible(root) == ({"f1-0", "new-0"} if committed else {"f1-0"}), step
        root.delete(LOCK)
        _as_if_the_writer_had_died(root)
        if not committed:
            assert isinstance(commit_one(root, file_id="f1-0")[1], Committed), step
        else:
            break
    assert flaky.changes >= 8


def test_process_killed_at_any_step_leaves_a_table_that_the_next_writer_continues(root):
    for after in (False, True):
        for step in range(1, 20):
            child = os.fork()
            if child == 0:
                _run(FlakyStorage(root.root, fail_at=step, after=after, kill=True))
                os._exit(0)
            _, status = os.waitpid(child, 0)
            visible = _visible(root)
            assert visible in ({"f1-0"}, {"f1-0", "new-0"}), step
            assert isinstance(commit_one(root, file_id="f1-0")[1], Committed), step
            assert _visible(root) == visible
            assert not [p for p in paths_of(root) if p.endswith(".parquet") and not _named(root, p)], step
            if os.waitstatus_to_exitcode(status) == 0:
                break


def _named(storage, path) -> bool:
    state = TableState.load(storage)
    stats = [s for i in state.timeline.completed_writes for s in state.commit_metadata(i).stats]
    return path in {stat.path for stat in stats}


def test_unknown_outcome_keeps_every_file(root):
    counted = FlakyStorage(root.root, fail_at=-1)
    transaction = Transaction.begin(counted, operation="INSERT")
    stat = stage_file(transaction, file_id="new-0")
    original = LocalStorage.create_if_absent

    def fail_on_completed(self, path, content):
        if path.endswith(".commit"):
            self.blind = True
            raise OSError(5, "Input/output error")
        return original(self, path, content)

    counted.create_if_absent = lambda path, content: fail_on_completed(counted, path, content)
    outcome = transaction.commit(metadata_of(stat))
    assert isinstance(outcome, OutcomeUnknown)
    assert root.exists(stat.path)
    assert "not known" in str(outcome.error)
