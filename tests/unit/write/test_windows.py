"""Windows in which a commit could be lost, doubled or half seen, each with the mechanism that closes it."""

from __future__ import annotations

import errno
import functools
import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import drawstring
from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.properties import format_properties, parse_properties
from drawstring.errors import CommitConflict, CorruptTable, DrawstringError
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import Action
from drawstring.planning.table_state import TableState
from drawstring.storage import LocalStorage
from drawstring.storage.table_properties import PROPERTIES
from drawstring.write import heartbeat, slots
from drawstring.write.clock import system_clock
from drawstring.write.commit_encoding import encode_commit, encode_inflight
from drawstring.write.heartbeat import DIRECTORY as HEARTBEATS
from drawstring.write.locks import LOCK, Owner
from drawstring.write.markers import CREATE, marker_path, staged_path
from drawstring.write.pipeline import delete_partitions
from drawstring.write.rollback import rollback_dead, rollback_pending
from drawstring.write.table_facts import load_state
from drawstring.write.transaction import Committed, Conflicted, Transaction
from tests.small_writes import (
    files_of,
    hooked,
    in_child,
    leftovers,
    new_table,
    rows_of,
    rows_of_hudi_rs,
    write,
)
from tests.support.staged_writes import dead_heartbeat, described, roll_back_as_another_engine, staged_rows

FIRST = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")]
TIMELINE = ".hoodie/timeline"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table"


@pytest.fixture
def table(path):
    return new_table(path, FIRST)


def assert_read(path, rows):
    assert rows_of(path) == sorted(rows)
    assert rows_of_hudi_rs(path) == sorted(rows)


@pytest.mark.parametrize("ending", ["abort", "rollback", "dead driver"])
@pytest.mark.parametrize("first_write", [True, False])
def test_task_that_opens_its_file_after_its_write_was_undone_shows_nothing(path, ending, first_write):
    table = new_table(path, () if first_write else FIRST)
    transaction = Transaction.begin(table, operation="INSERT")
    if ending == "abort":
        transaction.abort()
    elif ending == "rollback":
        drawstring.open_table(str(path)).rollback(transaction.requested_time)
        transaction._heartbeat.stop()
    else:
        transaction._heartbeat._halt()
        dead_heartbeat(table, transaction.requested_time)
        assert drawstring.open_table(str(path)).rollback() == [transaction.requested_time]
    staged_rows(transaction, [("99", "oslo", 9, "ghost")])
    expected = [] if first_write else list(FIRST)
    for number in range(3):
        expected.append((f"n{number}", "oslo", 1, "x"))
        write(table, expected[-1:])
        assert_read(path, expected)
    assert leftovers(path) == set()


@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_straggler_that_opens_its_file_after_the_commit_doubles_nothing(table, path, operation):
    result = write(table, [("3", "oslo", 1, "c")], operation)
    [published] = [name for name in files_of(path) if f"_{result.instant}.parquet" in name]
    late = staged_path(result.instant, published.replace("_0-", "_1-"))
    with table.open_output(late) as file:
        file.write(table.read(published))
    expected = [*FIRST, ("3", "oslo", 1, "c")]
    assert_read(path, expected)
    write(table, [("4", "rome", 1, "d")])
    assert_read(path, [*expected, ("4", "rome", 1, "d")])
    assert leftovers(path) == set()


def test_full_disk_that_takes_a_part_of_a_file_is_an_error_and_nothing_is_committed(table, path):
    """The kernel takes what fits and says how much; the rest must not be forgotten."""

    def limited():
        # The process may write files of so many bytes and no more, as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
        rows = [(f"n{n}", "oslo", 1, os.urandom(200).hex()) for n in range(2000)]
        try:
            write(table, rows)
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG else 3)
        os._exit(4)

    assert in_child(limited) == 0
    assert_read(path, FIRST)
    write(table, [("3", "oslo", 1, "c")])
    assert_read(path, [*FIRST, ("3", "oslo", 1, "c")])


def test_file_that_is_cut_before_the_commit_is_not_published(table, path):
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    staged = Path(table.local_path(staged_path(transaction.requested_time, stat.path)))
    staged.write_bytes(staged.read_bytes()[:-10])
    with pytest.raises(CorruptTable, match="damaged before the commit") as caught:
        transaction.commit(described(transaction, stat))
    assert caught.value.condition == "WRITTEN_FILE_DAMAGED"
    assert_read(path, FIRST)
    assert leftovers(path) == set()


def test_failed_first_write_leaves_the_table_that_another_process_used_meanwhile(path):
    """The loser made the table, the other committed to it: taking it back would delete that commit."""
    failing = hooked(str(path))
    others: list[int] = []

    def fail(number, operation, name):
        if operation == "open_output" and not others:
            others.append(in_child(lambda: write(LocalStorage(str(path)), FIRST)))
            raise OSError(errno.ENOSPC, "No space left on device")

    failing.before = fail
    with pytest.raises(OSError, match="No space left"):
        write(failing, [("9", "oslo", 1, "z")])
    assert others == [0]
    assert_read(path, FIRST)


def test_failed_first_write_alone_takes_its_empty_table_back(path):
    failing = hooked(str(path))

    def fail(number, operation, name):
        if operation == "open_output":
            raise OSError(errno.ENOSPC, "No space left on device")

    failing.before = fail
    with pytest.raises(OSError, match="No space left"):
        write(failing, FIRST)
    assert not path.exists()
    write(LocalStorage(str(path)), FIRST)
    assert_read(path, FIRST)


@pytest.mark.parametrize("folder", ["", ".hoodie", ".hoodie/.aux"])
def test_failed_first_write_takes_its_table_back_under_the_lock_that_it_was_told(path, tmp_path, folder):
    """The lock file lies in the table, or elsewhere; its folder stays as long as it is held."""
    place = str(path / folder) if folder else str(tmp_path / "locks")
    options = {"hoodie.write.lock.filesystem.path": place}
    failing, seen = hooked(str(path)), []

    def fail(number, operation, name):
        if operation == "open_output":
            raise OSError(errno.ENOSPC, "No space left on device")
        made = (operation, name) == ("create", PROPERTIES)
        if made or (operation == "rename" and name.endswith("/.hoodie/timeline")):
            seen.append(Path(place, "lock").exists())

    failing.before = fail
    with pytest.raises(OSError, match="No space left"):
        write(failing, FIRST, options=options)
    assert seen == [True, True]
    assert not (path / PROPERTIES).exists()
    write(LocalStorage(str(path)), FIRST, options=options)
    assert_read(path, FIRST)


@pytest.mark.parametrize("moment", [PROPERTIES, "/.hoodie/timeline", "/.hoodie/metadata"])
def test_table_that_was_made_while_a_lease_lapsed_is_not_taken_back(path, moment):
    failing, made = hooked(str(path)), []
    storage_based = {"hoodie.write.lock.provider": "StorageBasedLockProvider"}

    def fail(number, operation, name):
        if operation == "open_output":
            raise OSError(errno.ENOSPC, "No space left on device")
        if operation in ("replace_if", "rename") and name.endswith(moment) and not made:
            # Paused here for longer than its lease: another job takes the table back, and makes its own.
            shutil.rmtree(path)
            made.append(write(LocalStorage(str(path)), NEW, options=storage_based))

    failing.before = fail
    with pytest.raises(OSError, match="No space left"):
        write(failing, FIRST, options=storage_based)
    assert made
    assert_read(path, NEW)


NEW = [("7", "kiel", 1, "new")]


def test_writer_that_waits_while_the_table_is_overwritten_finds_the_new_one(table, path):
    """Before, its lock file stood in the way of the two renames, and both tables were lost."""
    overwriting, waited = hooked(str(path)), []

    def wait(number, operation, name):
        if operation == "exchange":
            short = {"hoodie.write.lock.wait_time_ms": "20"}
            with pytest.raises(CommitConflict, match="locked"):
                write(LocalStorage(str(path)), [("8", "oslo", 1, "w")], options=short)
            waited.append(name)

    overwriting.before = wait
    write(overwriting, NEW, mode="overwrite")
    assert waited
    assert_read(path, NEW)
    write(table, [("8", "oslo", 1, "w")])
    assert_read(path, [*NEW, ("8", "oslo", 1, "w")])


def test_overwrite_exchanges_both_tables_by_one_call_of_the_system(table, tmp_path, monkeypatch):
    """Between two renames there is no table, and whoever is killed there leaves none."""
    other = new_table(tmp_path / "other", NEW)
    for name in ("rename", "replace", "link"):
        monkeypatch.setattr(os, name, None)
    table.exchange(other)
    monkeypatch.undo()
    assert_read(tmp_path / "table", NEW)
    assert_read(tmp_path / "other", FIRST)


def test_overwrite_that_cannot_be_synced_stands_and_keeps_the_old_table_beside(table, path, caplog):
    """A power cut may undo it: what is at the table's path then must still have its files."""
    overwriting = hooked(str(path))

    def fail(number, operation, name):
        if operation == "sync_parent":
            raise OSError(errno.EIO, "Input/output error")

    overwriting.before = fail
    assert write(overwriting, NEW, mode="overwrite").instant
    assert "could not be synced" in caplog.text
    assert_read(path, NEW)
    (beside,) = path.parent.glob(".table.new-*")
    assert_read(beside, FIRST)
    write(overwriting, [("8", "oslo", 1, "w")])
    assert beside.exists()  # nobody could sync it yet
    write(table, [("8", "oslo", 1, "w")])
    assert not beside.exists()
    assert_read(path, [*NEW, ("8", "oslo", 1, "w")])


def test_commit_during_an_overwrite_is_not_thrown_away(table, path):
    overwriting, done = hooked(str(path)), []

    def commit(number, operation, name):
        if operation == "replace_if" and name == LOCK and not done:
            done.append(write(LocalStorage(str(path)), [("3", "oslo", 1, "c")]))

    overwriting.before = commit
    with pytest.raises(CommitConflict) as caught:
        write(overwriting, NEW, mode="overwrite")
    assert caught.value.condition == "CONCURRENT_COMMIT"
    assert_read(path, [*FIRST, ("3", "oslo", 1, "c")])


def test_commit_that_is_decided_while_the_overwrite_believes_to_hold_the_lock_is_not_thrown_away(table, path):
    """Slots decide: the overwrite takes the very slot for which it validated, also on a table without any."""
    shutil.rmtree(path / slots.DIRECTORY)
    overwriting, done = hooked(str(path)), []

    def commit(number, operation, name):
        if operation == "create" and name == slots.slot_path(1) and not done:
            os.unlink(path / LOCK)  # as Apache Hudi does when it closes
            done.append(write(LocalStorage(str(path)), [("3", "oslo", 1, "c")]))

    overwriting.before = commit
    with pytest.raises(CommitConflict) as caught:
        write(overwriting, NEW, mode="overwrite")
    assert done
    assert caught.value.condition == "OVERTAKEN"
    assert_read(path, [*FIRST, ("3", "oslo", 1, "c")])


def test_writer_that_began_before_an_overwrite_does_not_commit_into_the_new_table(table, path):
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    metadata = described(transaction, stat)
    write(table, NEW, mode="overwrite")
    outcome = transaction.commit(metadata)
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"
    assert_read(path, NEW)


def test_loser_of_a_race_for_one_instant_leaves_the_winner_alone(table, path):
    """Both have the same clock, and neither is kept out by a lock."""

    def clock():
        return 4_000_000_000_000

    winner = Transaction.begin(table, operation="INSERT", clock=clock)
    losing = hooked(str(path))
    loser = Transaction(winner.state, winner.requested_time, Action.COMMIT, options=ConcurrencyOptions())
    loser.state = replace(winner.state, storage=losing)
    for action in (Action.COMMIT, Action.REPLACECOMMIT):
        loser.action = action
        with pytest.raises(CommitConflict) as caught:
            loser._announce("INSERT")
        assert caught.value.condition == "INSTANT_TAKEN"
        loser.abort()
    assert table.exists(f"{HEARTBEATS}/{winner.requested_time}")
    stat = staged_rows(winner, [("9", "oslo", 1, "z")])
    assert isinstance(winner.commit(described(winner, stat)), Committed)
    assert_read(path, [*FIRST, ("9", "oslo", 1, "z")])


def test_instant_that_somebody_announced_without_a_heartbeat_is_not_taken(table, path):
    winner = Transaction.begin(table, operation="INSERT")
    winner._heartbeat.stop()
    loser = Transaction(winner.state, winner.requested_time, Action.COMMIT, options=ConcurrencyOptions())
    with pytest.raises(CommitConflict) as caught:
        loser._announce("INSERT")
    assert caught.value.condition == "INSTANT_TAKEN"
    loser.abort()
    stat = staged_rows(winner, [("9", "oslo", 1, "z")])
    assert isinstance(winner.commit(described(winner, stat)), Committed)
    assert_read(path, [*FIRST, ("9", "oslo", 1, "z")])


@pytest.mark.parametrize("change", [{"pid_namespace": "pid:[1]"}, {"boot": "another machine"}])
def test_lock_of_a_process_that_cannot_be_seen_from_here_is_not_stolen(table, path, change):
    holder = replace(Owner.me(), pid=2**22 + 1, **change)
    table.create_if_absent(LOCK, holder.to_bytes())
    with pytest.raises(CommitConflict, match="locked") as caught:
        write(table, NEW, options={"hoodie.write.lock.wait_time_ms": "50"})
    assert caught.value.condition == "LOCK_NOT_ACQUIRED"
    assert table.read(LOCK) == holder.to_bytes()
    assert_read(path, FIRST)


def test_interrupt_after_any_operation_never_takes_files_from_a_committed_instant(table, path):
    """Ctrl-C right after the completed instant was linked used to delete the files that it names."""
    expected = dict.fromkeys(FIRST)
    for step in range(1, 100):
        row, interrupted = (f"k{step}", "oslo", 1, "x"), hooked(str(path))

        def interrupt(number, operation, name, step=step):
            if number == step:
                raise KeyboardInterrupt

        interrupted.after = interrupt
        try:
            write(interrupted, [row])
        except KeyboardInterrupt:
            pass
        else:
            expected[row] = None
            break
        write(table, [(f"n{step}", "rome", 1, "y")])
        expected[(f"n{step}", "rome", 1, "y")] = None
        found = rows_of(path)
        assert found in (sorted(expected), sorted([*expected, row])), step
        expected = dict.fromkeys(found)
        assert leftovers(path) == set(), step
    assert step > 10
    assert_read(path, expected)


def test_every_name_is_durable_before_the_completed_instant_is_published(table, path, monkeypatch):
    events: list[tuple[str, str]] = []
    fsync, link, rename = os.fsync, os.link, os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: (events.append(("fsync", _named(fd))), fsync(fd))[1])
    monkeypatch.setattr(os, "link", lambda a, b, **k: (events.append(("link", str(b))), link(a, b, **k))[1])
    monkeypatch.setattr(os, "rename", lambda a, b: (events.append(("rename", str(b))), rename(a, b))[1])
    result = write(table, [("3", "new city", 1, "c")])
    monkeypatch.undo()
    [published] = [i for i, e in enumerate(events) if e[0] == "link" and e[1].endswith(".commit")]
    [named] = [i for i, e in enumerate(events) if e[0] == "rename" and e[1].endswith(".parquet")]
    [decided] = [i for i, e in enumerate(events) if e[0] == "link" and "/.slots/" in e[1]]
    written = next(i for i, e in enumerate(events) if e[0] == "fsync" and e[1].endswith(".parquet"))
    assert written < decided < named < published
    synced = {e[1] for e in events[named:published] if e[0] == "fsync"}
    assert {str(path), f"{path}/new city"} <= synced
    for folder, moment in ((slots.DIRECTORY, decided), (TIMELINE, published)):
        # The content comes before the name, in a file that has none yet.
        assert any(e[0] == "fsync" and e[1].startswith(f"{path}/{folder}/") for e in events[:moment]), folder
    assert ("fsync", f"{path}/.hoodie/.slots") in events[decided:named]
    assert ("fsync", f"{path}/{TIMELINE}") in events[published:]
    assert result.instant in events[published][1]


def _named(descriptor):
    return os.readlink(f"/proc/self/fd/{descriptor}")


def test_late_abort_leaves_the_metafile_of_a_partition_that_another_commit_filled(table, path):
    slow = Transaction.begin(table, operation="INSERT")
    staged_rows(slow, [("8", "kiel", 1, "slow")])
    write(table, NEW)
    slow.abort()
    assert (path / "kiel" / ".hoodie_partition_metadata").exists()
    assert_read(path, [*FIRST, *NEW])


def test_rollback_leaves_the_metafile_that_an_earlier_commit_made_of_a_partition_without_files(table, path):
    dead = Transaction.begin(table, operation="INSERT")
    dead._heartbeat.stop()
    metafile = b"commitTime=20200101000000000\npartitionDepth=1\n"
    table.write("kiel/.hoodie_partition_metadata", metafile)
    late = f"kiel/late-0_0-1-0_{dead.requested_time}.parquet"
    table.write(marker_path(dead.requested_time, late, CREATE), b"")
    table.write(late, b"")
    rollback_pending(table, dead.requested_time)
    assert [entry.name for entry in table.list("kiel")] == [".hoodie_partition_metadata"]
    assert table.read("kiel/.hoodie_partition_metadata") == metafile


@pytest.mark.parametrize("moment", ["before the slot", "after the slot", "before the completed instant"])
def test_rollback_by_another_engine_between_validation_and_publication_acknowledges_nothing(path, moment):
    new_table(path, FIRST)
    storage, struck = hooked(str(path)), []
    transaction = Transaction.begin(storage, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])

    def roll_back(number, operation, name):
        at_slot = operation == "create" and name.startswith(slots.DIRECTORY)
        at_metafile = operation == "create" and name.endswith("_metadata")
        if (at_metafile if moment.endswith("instant") else at_slot) and not struck:
            struck.append(name)
            roll_back_as_another_engine(path, transaction.requested_time)

    storage.before = roll_back if moment.startswith("before the slot") else storage.before
    storage.after = storage.after if moment.startswith("before the slot") else roll_back
    outcome = transaction.commit(described(transaction, stat))
    assert struck
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "ROLLED_BACK"
    assert_read(path, FIRST)
    assert not [
        name for name in files_of(path) if transaction.requested_time in name and ".slots" not in name
    ]
    for number in range(3):
        write(LocalStorage(str(path)), [(f"n{number}", "rome", 1, "y")])
    assert_read(path, [*FIRST, *((f"n{number}", "rome", 1, "y") for number in range(3))])
    assert leftovers(path) == set()


def test_writer_killed_after_its_files_got_names_and_rolled_back_by_another_engine_shows_nothing(table, path):
    """Its decision is void; the next writer takes back the names that readers would find once the timeline moves on."""
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    killed = hooked(str(path))

    def kill(number, operation, name):
        if operation == "rename":
            os.kill(os.getpid(), signal.SIGKILL)

    killed.after = kill
    transaction.state = replace(transaction.state, storage=killed)
    metadata = described(transaction, stat)
    assert in_child(lambda: transaction.commit(metadata)) == -signal.SIGKILL
    transaction._heartbeat._halt()
    assert table.exists(stat.path)
    (path / LOCK).unlink()
    roll_back_as_another_engine(path, transaction.requested_time)
    write(table, [("3", "rome", 1, "y")])
    assert not table.exists(stat.path)
    assert_read(path, [*FIRST, ("3", "rome", 1, "y")])


def test_commit_that_was_archived_since_is_not_taken_for_a_void_decision(table, path, monkeypatch):
    """Its completed and its inflight file are gone, and so they are after a rollback; its data files must stay."""
    decision = slots.read_slot(table, slots.newest(table))
    for name in (path / TIMELINE).glob(f"{decision.instant}*"):
        name.unlink()
    assert decision.is_void(table)
    archived = SimpleNamespace(completion_times={decision.instant: decision.instant})
    monkeypatch.setattr(TableState, "history", archived)
    slots.settle(table)
    data = [step.target for step in decision.steps if step.kind == slots.RENAME]
    assert len(data) == 2
    assert all(table.exists(name) for name in data)


def test_decided_commit_whose_staged_file_is_lost_does_not_block_the_table(table, path):
    """A power cut may take a name that was not synced; nobody was told that the commit stands."""
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    killed = hooked(str(path))

    def kill(number, operation, name):
        if operation == "create" and name.startswith(slots.DIRECTORY):
            os.kill(os.getpid(), signal.SIGKILL)

    killed.after = kill
    transaction.state = replace(transaction.state, storage=killed)
    metadata = described(transaction, stat)
    assert in_child(lambda: transaction.commit(metadata)) == -signal.SIGKILL
    transaction._heartbeat._halt()
    dead_heartbeat(table, transaction.requested_time)
    table.delete(staged_path(transaction.requested_time, stat.path))
    write(table, [("3", "rome", 1, "y")])
    assert_read(path, [*FIRST, ("3", "rome", 1, "y")])
    assert not load_state(table).timeline.pending
    assert leftovers(path) == set()


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_completed_instant_of_no_bytes_is_an_error_that_names_it(table, path, tmp_path, operation):
    write(table, [("1", "oslo", 2, "A")], operation)
    copy = Path(shutil.copytree(path, tmp_path / "copy"))  # nothing is remembered of it
    completed = max((copy / TIMELINE).glob("*_*.*commit"))
    completed.write_bytes(b"")
    for act in (lambda: rows_of(copy), lambda: write(LocalStorage(str(copy)), NEW)):
        with pytest.raises(CorruptTable, match=completed.name) as caught:
            act()
        assert caught.value.condition == "EMPTY_INSTANT"


def test_dead_process_that_nobody_has_reaped_holds_no_lock_and_no_instant(table, path):
    script = (
        "import os, sys; from drawstring.storage import LocalStorage\n"
        "from drawstring.write.transaction import Transaction; from drawstring.write.locks import LOCK, Owner\n"
        "storage = LocalStorage(sys.argv[1]); transaction = Transaction.begin(storage, operation='INSERT')\n"
        "storage.create_if_absent(LOCK, Owner.me().to_bytes()); os.kill(os.getpid(), 9)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(path)])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and still a zombie
    assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    write(table, NEW)
    assert not load_state(table).timeline.pending
    child.wait()
    assert_read(path, [*FIRST, *NEW])


def test_repair_that_is_killed_at_any_operation_is_finished_by_the_next_writer(table, path):
    """Pending rollbacks, markers, heartbeats and temporary files of killed repairs are not there for ever."""
    for step in range(1, 60):
        dead = Transaction.begin(table, operation="INSERT")
        staged_rows(dead, [(f"d{step}", "oslo", 1, "dead")])
        dead._heartbeat._halt()
        dead_heartbeat(table, dead.requested_time)
        repairing = hooked(str(path))

        def kill(number, operation, name, step=step):
            if number == step:
                os.kill(os.getpid(), signal.SIGKILL)

        repairing.after = kill
        code = in_child(lambda repairing=repairing: rollback_dead(repairing))
        write(table, [("n", "rome", step, str(step))])
        assert rows_of(path) == sorted([*FIRST, ("n", "rome", step, str(step))]), step
        assert not load_state(table).timeline.pending, step
        assert leftovers(path) == set(), step
        if code == 0:
            break
    assert code == 0
    assert step > 5


def test_settings_that_changed_during_a_write_are_a_conflict(table, path):
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    name = ".hoodie/hoodie.properties"
    changed = parse_properties(table.read(name), source=name) | {"hoodie.table.name": "other"}
    changed.pop("hoodie.table.checksum")
    table.write(name, format_properties(changed, comment="changed"))
    outcome = transaction.commit(described(transaction, stat))
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "SETTINGS_CHANGED"


def test_commit_that_a_restore_took_away_during_a_write_is_a_conflict(table, path):
    write(table, [("3", "rome", 1, "c")])
    transaction = Transaction.begin(table, operation="INSERT")
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    metadata = described(transaction, stat)
    newest = load_state(table).timeline.completed_writes[-1].requested_time
    for name in (path / TIMELINE).glob(f"{newest}*"):
        name.unlink()
    outcome = transaction.commit(metadata)
    assert isinstance(outcome, Conflicted)
    assert outcome.error.condition == "HISTORY_CHANGED"


def test_file_that_exists_already_does_not_count_as_our_commit(table, path):
    """Another engine may create a completed instant of the same name; its content is not ours."""
    theirs = encode_commit(CommitMetadata("INSERT"), is_replace=False)
    transaction = Transaction.begin(table, operation="INSERT")
    table.create_if_absent(f"{TIMELINE}/{transaction.requested_time}_29990101000000000.commit", theirs)
    stat = staged_rows(transaction, [("9", "oslo", 1, "z")])
    outcome = transaction.commit(described(transaction, stat))
    assert isinstance(outcome, Conflicted)
    assert rows_of(path) == sorted(FIRST)


def test_lock_whose_breaker_was_killed_half_way_is_broken_by_the_next(table, path):
    table.create_if_absent(LOCK, replace(Owner.me(), pid=2**22 + 1).to_bytes())
    for step in range(1, 4):
        breaking = hooked(str(path))

        def kill(number, operation, name, step=step):
            if number == step:
                os.kill(os.getpid(), signal.SIGKILL)

        breaking.after = kill
        in_child(lambda breaking=breaking: write(breaking, [("x", "oslo", 1, "x")]))
    write(table, NEW)
    assert_read(path, [*FIRST, *NEW])


def test_unknown_outcome_that_did_not_land_is_rolled_back_by_the_next_writer(table, path):
    """Storage fails for good from the decision on: nothing is known then, and nobody has to repair it."""
    failing = hooked(str(path))

    def fail(number, operation, name):
        if failing.broken or name.startswith(slots.DIRECTORY):
            failing.broken = True
            raise OSError(errno.EIO, "Input/output error")

    failing.broken = False
    failing.before = fail
    with pytest.raises((OSError, DrawstringError)):
        write(failing, [("9", "oslo", 1, "z")])
    failing.before = lambda number, operation, name: None
    for instant in load_state(table).timeline.pending:
        dead_heartbeat(table, instant.requested_time)
    table.delete(LOCK)
    write(table, NEW)
    assert_read(path, [*FIRST, *NEW])
    assert not load_state(table).timeline.pending


def test_files_that_killed_writers_left_without_a_name_are_swept_once_they_are_old(table, path):
    folders = (".hoodie/.slots", ".hoodie/.heartbeat", TIMELINE)
    for folder in folders:
        for letter in "ab":
            place = path / folder / f".{letter * 32}.tmp"
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(b"half")
        os.utime(path / folder / f".{'a' * 32}.tmp", (1, 1))
    write(table, NEW)
    assert {name for name in files_of(path) if name.endswith(".tmp")} == {
        f"{f}/.{'b' * 32}.tmp" for f in folders
    }
    assert_read(path, [*FIRST, *NEW])


def test_inflight_file_that_a_rolled_back_writer_made_before_it_died_is_swept(table, path):
    late = hooked(str(path))

    def roll_back(number, operation, name):
        if name.endswith(".inflight"):
            late.before = lambda *_: None
            drawstring.open_table(str(path)).rollback(name.rpartition("/")[2].partition(".")[0])

    def kill(number, operation, name):
        if name.endswith(".inflight"):
            os.kill(os.getpid(), signal.SIGKILL)

    late.before, late.after = roll_back, kill
    # Nothing keeps the rollback out: the writer has slept, and its lock was taken away.
    options = ConcurrencyOptions(
        lock_settings={"hoodie.write.lock.filesystem.path": str(path.parent / "lock")}
    )
    begin = lambda: Transaction.begin(late, operation="INSERT", options=options)  # noqa: E731
    assert in_child(begin) == -signal.SIGKILL
    assert [i.action for i in load_state(table).timeline.pending] == [Action.COMMIT]
    write(table, NEW)
    assert not load_state(table).timeline.pending
    assert leftovers(path) == set()
    assert_read(path, [*FIRST, *NEW])


def test_rollback_that_died_is_finished_though_its_target_is_gone_by_itself(table, path):
    slow = Transaction.begin(table, operation="INSERT")
    repairing = hooked(str(path))

    def kill(number, operation, name):
        if name.endswith(".rollback.requested"):
            os.kill(os.getpid(), signal.SIGKILL)

    repairing.after = kill
    target = slow.requested_time
    assert in_child(lambda: rollback_pending(repairing, target)) == -signal.SIGKILL
    slow.abort()
    assert [i.action for i in load_state(table).timeline.pending] == [Action.ROLLBACK]
    write(table, NEW)
    assert not load_state(table).timeline.pending
    assert_read(path, [*FIRST, *NEW])


def test_heartbeat_of_a_writer_that_announced_itself_and_died_meanwhile_stays(table):
    seen = load_state(table).timeline.pending
    dead = Transaction.begin(table, operation="INSERT")
    dead._heartbeat._halt()
    dead_heartbeat(table, dead.requested_time)
    heartbeat.sweep(table, [dead.requested_time], seen, ConcurrencyOptions(), clock=system_clock)
    assert rollback_dead(table) == [dead.requested_time]


@pytest.mark.parametrize(("other", "tries"), [("rome", 1), ("oslo", 2)])
def test_writer_whose_slot_was_taken_validates_again_with_the_files_that_it_has(table, path, other, tries):
    """Only what conflicts is written anew: rows that Spark streamed into files are not there a second time."""
    storage, done = hooked(str(path)), []

    def overtake(number, operation, name):
        if operation == "create" and name.startswith(slots.DIRECTORY) and not done:
            os.unlink(path / LOCK)
            key = {"rome": "2", "oslo": "1"}[other]
            done.append(write(LocalStorage(str(path)), [(key, other, 5, "other")]))

    storage.before = overtake
    result = write(storage, [("1", "oslo", 9, "mine")])
    assert done
    assert result.tries == tries
    assert not load_state(table).timeline.pending
    theirs = ("2", "rome", 5, "other") if other == "rome" else FIRST[1]
    assert_read(path, [("1", "oslo", 9, "mine"), theirs])


@pytest.mark.parametrize("action", [Action.COMMIT, Action.REPLACECOMMIT])
@pytest.mark.parametrize("reached", [".requested", "inflight"])
def test_writer_that_announced_itself_after_its_heartbeat_was_swept_and_died_is_rolled_back(
    table, path, action, reached
):
    storage = hooked(str(path))

    def sweep_then_die(number, operation, name):
        if name.startswith(heartbeat.DIRECTORY) and operation == "create":
            os.unlink(path / name)
        if name.endswith(reached):
            os.kill(os.getpid(), signal.SIGKILL)

    storage.after = sweep_then_die
    begin = functools.partial(Transaction.begin, storage, operation="INSERT", action=action)
    assert in_child(begin) == -signal.SIGKILL
    assert len(load_state(table).timeline.pending) == 1
    assert not heartbeat.heartbeats(table)
    write(table, NEW)
    assert not load_state(table).timeline.pending
    assert_read(path, [*FIRST, *NEW])


@pytest.mark.parametrize(("age_seconds", "is_dead"), [(0, False), (119, False), (121, True)])
def test_writer_elsewhere_without_a_heartbeat_counts_as_dead_once_its_instant_is_old(
    table, path, monkeypatch, age_seconds, is_dead
):
    elsewhere = replace(Owner.me(), boot="another machine", machine="another")
    monkeypatch.setattr(Owner, "me", classmethod(lambda _cls: elsewhere))
    transaction = Transaction.begin(table, operation="INSERT")
    transaction._heartbeat.stop()
    now = system_clock() + age_seconds * 1000
    assert rollback_dead(table, clock=lambda: now) == ([transaction.requested_time] if is_dead else [])


def test_pending_write_of_another_engine_without_heartbeat_is_left_to_hudis_policies(table):
    time = "20200101000000000"
    table.create_if_absent(f".hoodie/timeline/{time}.commit.requested", b"")
    table.create_if_absent(f".hoodie/timeline/{time}.inflight", encode_inflight("UPSERT"))
    assert rollback_dead(table) == []
    assert rollback_dead(table, options=ConcurrencyOptions(failed_writes="LAZY")) == [time]


def test_pending_write_of_another_engine_gets_a_heartbeat_by_which_hudi_rolls_it_back_late(table, caplog):
    """Without one Hudi's only writer fails for ever: commits were completed after the write that it rolls back."""
    time = "20200101000000000"
    files = [f".hoodie/timeline/{time}{ending}" for ending in (".commit.requested", ".inflight")]
    table.create_if_absent(files[0], b"")
    table.create_if_absent(files[1], encode_inflight("UPSERT"))
    # Whoever looks for dead writers, services too, may complete a commit after that.
    assert rollback_dead(table) == []
    assert heartbeat.heartbeats(table) == [time]
    write(table, NEW)
    assert heartbeat.heartbeats(table) == [time]
    assert caplog.text.count(f"drawstring rollback {table.root} {time}") == 1
    # It proves nobody dead, however old it gets.
    assert rollback_dead(table, clock=lambda: system_clock() + 86_400_000) == []
    for file in files:
        table.delete(file)
    write(table, NEW)
    assert heartbeat.heartbeats(table) == []


def test_partition_that_another_write_begins_while_it_is_dropped_is_dropped_too(table, path):
    """The drop has not seen it: it used to complete after that write, and to leave its rows."""
    storage, done = hooked(str(path)), []

    def begin(number, operation, name):
        if operation == "create" and name.startswith(slots.DIRECTORY) and not done:
            os.unlink(path / LOCK)
            done.append(write(LocalStorage(str(path)), NEW))

    storage.before = begin
    assert delete_partitions(storage, ("k*",)).tries == 2
    assert done
    assert_read(path, FIRST)
