from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from conftest_write import metadata_of, paths_of, stage_file

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.errors import CommitConflict, UnsupportedTable
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.commit_encoding import encode_commit
from drawstring.write.locks import LOCK, Owner
from drawstring.write.rollback import rollback_pending
from drawstring.write.table_facts import average_record_size, load_state, visible_slices
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
    state = load_state(table)
    assert [s.group.file_id for s in visible_slices(state, ["oslo"])] == ["f1-0"]
    metadata = state.metadata(state.timeline.completed_writes[0])
    assert (metadata.operation, metadata.stats[0].num_inserts) == ("INSERT", 1)


def test_small_commits_do_not_tell_the_size_of_a_record(table):
    _, outcome = commit_one(table)
    state, size = load_state(table), outcome.metadata.stats[0].file_size
    assert average_record_size(state, at_least=size) == size
    assert average_record_size(state, at_least=size + 1) is None


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
        transaction = Transaction.begin(table, operation="INSERT", clock=lambda: 1_700_000_000_000)
        outcome = transaction.commit(metadata_of(stage_file(transaction, file_id=f"f{number}-0")))
        times += [outcome.instant.requested_time, outcome.instant.completion_time]
    assert times == sorted(set(times))


def test_two_writers_of_different_file_groups_both_commit(table):
    first = Transaction.begin(table, operation="INSERT")
    second = Transaction.begin(table, operation="INSERT")
    assert isinstance(second.commit(metadata_of(stage_file(second, file_id="f2-0"))), Committed)
    assert isinstance(first.commit(metadata_of(stage_file(first, file_id="f1-0"))), Committed)
    assert {s.group.file_id for s in visible_slices(load_state(table), ["oslo"])} == {"f1-0", "f2-0"}


def test_of_two_writers_of_one_file_group_the_second_gets_a_conflict_that_names_both(table):
    commit_one(table)
    first, second = (Transaction.begin(table, operation="UPSERT") for _ in range(2))
    stats = [replace(stage_file(t), prev_commit="1") for t in (first, second)]
    assert isinstance(first.commit(metadata_of(stats[0])), Committed)
    outcome = second.commit(metadata_of(stats[1]))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "CONCURRENT_COMMIT"
    assert outcome.error.fields["instant"] == second.requested_time
    assert outcome.error.fields["other"] == first.requested_time
    assert outcome.error.fields["groups"] == ["oslo/f1-0"]
    assert not [p for p in paths_of(table) if second.requested_time in p]


def test_many_racing_writers_of_different_file_groups_all_commit(table):
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
    assert len(results) == len(committed) == 8
    state = load_state(table)
    assert len(state.timeline.completed_writes) == len(committed) == len(visible_slices(state, ["oslo"]))
    assert not state.timeline.pending


def test_commit_of_another_engine_in_between_is_a_conflict_where_it_wrote_the_same_group(table):
    commit_one(table)
    transaction = Transaction.begin(table, operation="UPSERT")
    stat = replace(stage_file(transaction), prev_commit="1")
    theirs = encode_commit(
        metadata_of(replace(stat, path="oslo/f1-0_0_29990101000000000.parquet")), is_replace=False
    )
    table.create_if_absent(".hoodie/timeline/29990101000000000_29990101000000001.commit", theirs)
    before = paths_of(table)
    outcome = transaction.commit(metadata_of(stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "CONCURRENT_COMMIT"
    assert paths_of(table) < before
    assert not [p for p in paths_of(table) if transaction.requested_time in p]


@pytest.mark.parametrize("plan", ["compaction", "clean", "rollback"])
def test_writer_whose_instant_another_engine_gave_to_a_plan_gets_a_conflict(table, plan):
    transaction = Transaction.begin(table, operation="INSERT")
    metadata = metadata_of(stage_file(transaction))
    # As by a holder of the lock that had lost it: both chose the same millisecond.
    table.write(f".hoodie/timeline/{transaction.requested_time}.{plan}.requested", b"")
    outcome = transaction.commit(metadata)
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "INSTANT_TAKEN"


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
    state = load_state(table)
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
        Transaction.begin(table, operation="INSERT", options=ConcurrencyOptions(lock_wait_seconds=0.05))


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        ({"hoodie.table.version": "6"}, "WRITE_TABLE_VERSION"),
        ({"hoodie.populate.meta.fields": "false"}, "WRITE_WITHOUT_META_FIELDS"),
        (
            {"hoodie.datasource.write.slash.separated.date.partitioning": "true"},
            "WRITE_SLASH_SEPARATED_DATES",
        ),
        ({"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}, "WRITE_KEY_GENERATOR"),
        ({"hoodie.record.merge.mode": "CUSTOM"}, "WRITE_MERGER"),
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

    def create_if_absent(self, path, content, *, durable=True):
        return self._step(lambda: LocalStorage.create_if_absent(self, path, content, durable=durable))

    def rename(self, source, target):
        return self._step(lambda: LocalStorage.rename(self, source, target))

    def replace_if(self, path, expected, content, *, durable=False):
        return self._step(lambda: LocalStorage.replace_if(self, path, expected, content, durable=durable))

    def write(self, path, content, *, durable=True):
        return self._step(lambda: LocalStorage.write(self, path, content, durable=durable))

    def open_output(self, path):
        return self._step(lambda: LocalStorage.open_output(self, path))

    def delete(self, path, *, recursive=False):
        return self._step(lambda: LocalStorage.delete(self, path, recursive=recursive))

    def exists(self, path):
        if self.blind:
            raise OSError(5, "Input/output error")
        return super().exists(path)


def _run(storage, file_id="new-0"):
    transaction = Transaction.begin(storage, operation="INSERT")
    try:
        stat = stage_file(transaction, file_id=file_id)
    except BaseException:
        transaction.abort()
        raise
    return transaction.commit(metadata_of(stat))


def _as_if_the_writer_had_died(storage) -> None:
    for instant in load_state(storage).timeline.pending:
        path = f".hoodie/.heartbeat/{instant.requested_time}"
        assert storage.exists(path)
        storage.write(path, replace(Owner.me(), pid=-1).to_bytes())


def _visible(storage) -> set[str]:
    return {s.group.file_id for s in visible_slices(load_state(storage), ["oslo"])}


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
    known = {"f1-0"}
    for step in range(1, 60):
        flaky = FlakyStorage(root.root, fail_at=step, after=after, for_good=for_good)
        name = f"new{step}-0"
        try:
            outcome = _run(flaky, name)
        except OSError:
            outcome = None
        assert _visible(root) in (known, known | {name}), step
        if isinstance(outcome, Committed):
            assert name in _visible(root), step
        if outcome is None:
            assert name not in _visible(root), step
        root.delete(LOCK)
        _as_if_the_writer_had_died(root)
        assert isinstance(commit_one(root, file_id=f"after{step}-0")[1], Committed), step
        if outcome is None:
            assert name not in _visible(root), step
        known = _visible(root)
        if flaky.changes < step:
            break
    assert flaky.changes < step, "every change of a commit was made to fail"


@pytest.mark.parametrize("after", [False, True])
def test_process_killed_at_any_step_leaves_a_table_that_the_next_writer_continues(root, after):
    for step in range(1, 60):
        name, before = f"new{step}-0", _visible(root)
        child = os.fork()
        if child == 0:
            _run(FlakyStorage(root.root, fail_at=step, after=after, kill=True), name)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert _visible(root) in (before, before | {name}), step
        assert isinstance(commit_one(root, file_id=f"after{step}-0")[1], Committed), step
        assert not [p for p in paths_of(root) if p.endswith(".parquet") and not _named(root, p)], step
        assert not load_state(root).timeline.pending, step
        assert not [p for p in paths_of(root) if ".temp/" in p or ".heartbeat/" in p], step
        if os.waitstatus_to_exitcode(status) == 0:
            assert name in _visible(root)
            break
    assert os.waitstatus_to_exitcode(status) == 0, "every change of a commit was killed once"


def _named(storage, path) -> bool:
    state = load_state(storage)
    stats = [s for i in state.timeline.completed_writes for s in state.metadata(i).stats]
    return path in {stat.path for stat in stats}


def test_unknown_outcome_keeps_every_file_and_the_next_writer_settles_it(root):
    counted = FlakyStorage(root.root, fail_at=-1)
    transaction = Transaction.begin(counted, operation="INSERT")
    stat = stage_file(transaction, file_id="new-0")
    original = LocalStorage.create_if_absent

    def fail_on_completed(path, content, *, durable=True):
        if path.endswith(".commit"):
            counted.blind = True
            raise OSError(5, "Input/output error")
        return original(counted, path, content, durable=durable)

    counted.create_if_absent = fail_on_completed
    outcome = transaction.commit(metadata_of(stat))
    assert isinstance(outcome, OutcomeUnknown)
    assert root.exists(stat.path)
    assert "not known" in str(outcome.error)
    counted.blind = False
    assert _visible(root) == {"f1-0"}
    commit_one(root, file_id="f2-0")
    assert _visible(root) == {"f1-0", "f2-0", "new-0"}
