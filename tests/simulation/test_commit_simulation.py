"""The real commit code, one storage operation at a time, in an order that a seed decides.

Writers are threads that wait at every storage operation until the scheduler lets them go. A crash is an exception
that ends a thread at an operation and kills its heartbeat; a lapse takes the lock away from whoever holds it; a
writer that pauses for too long is taken for dead by the others, and goes on. At the end another writer repairs, and
the table must hold what was acknowledged, and nothing that was not written.

A failing seed is printed with the assertion; run it again with `simulate(seed)`.
"""

from __future__ import annotations

import itertools
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.table_options import TableOptions
from drawstring.errors import CommitConflict, CommitOutcomeUnknown
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.storage import MemoryStorage
from drawstring.timeline.commit_metadata import parse_record
from drawstring.write import heartbeat
from drawstring.write.clock import Clock
from drawstring.write.create import create_table
from drawstring.write.locks import LOCK, Owner
from drawstring.write.markers import staged_path
from drawstring.write.table_facts import load_state, visible_slices
from drawstring.write.transaction import Committed, Transaction

_numbers = itertools.count()
TABLE = TableOptions(name="t", record_key_fields=("id",), partition_fields=("p",), ordering_fields=("ts",))
TIMELINE = ".hoodie/timeline"
SCHEMA = '{"type":"record","name":"r","fields":[]}'
OPTIONS = ConcurrencyOptions(lock_wait_seconds=0.0)
DATA = b"PAR1 rows PAR1"
_OPERATIONS = (
    *("list", "list_names", "stat", "exists", "read", "open", "create_if_absent"),
    *("replace_if", "rename", "write", "open_output", "delete"),
)


class Crash(BaseException):
    """The process is gone: nothing that it would do to tidy up happens."""


class Scheduler:
    """Lets one writer take one storage operation at a time; its clock goes on by looks at it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ticks, self.milliseconds = random.Random(f"clock-{seed}"), 1_600_000_000_000
        self.waiting: dict[str, threading.Semaphore] = {}
        self.dead: set[str] = set()
        self.arrived = threading.Semaphore(0)

    def clock(self) -> int:
        """Tell the time, the same in every run of a seed; writers that lost the lock may see the same moment."""
        self.milliseconds += self.ticks.randrange(2)
        return self.milliseconds

    def step(self) -> None:
        """Called by a writer before an operation."""
        name = threading.current_thread().name
        if name not in self.waiting:
            return
        if name in self.dead:
            raise Crash
        self.arrived.release()
        self.waiting[name].acquire()
        if name in self.dead:
            raise Crash


class SteppedStorage(MemoryStorage):
    """Memory that asks the scheduler before every operation."""

    scheduler: Scheduler


def _stepped(name: str):
    original = getattr(MemoryStorage, name)

    def operation(self, *args, **kwargs):
        self.scheduler.step()
        return original(self, *args, **kwargs)

    return operation


for _name in _OPERATIONS:
    if hasattr(MemoryStorage, _name):
        setattr(SteppedStorage, _name, _stepped(_name))


class Writer(threading.Thread):
    """Commits versions of file groups; knows which were acknowledged, and which may have been."""

    def __init__(self, name: str, storage: SteppedStorage, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.storage, self.random = storage, random.Random(f"{seed}-{name}")
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.begun: list[str] = []
        self.broken: BaseException | None = None
        self.done = False

    def run(self) -> None:
        try:
            for _ in range(2):
                self._write()
        except Crash:
            pass
        except BaseException as error:
            self.broken = error
        finally:
            self.done = True
            self.storage.scheduler.arrived.release()

    def _write(self) -> None:
        try:
            clock = self.storage.scheduler.clock
            transaction = Transaction.begin(self.storage, operation="UPSERT", options=OPTIONS, clock=clock)
            self.begun.append(transaction.requested_time)
            # An instant that was taken back within a millisecond may come again: writes go by names of their own.
            write = f"{self.name}-{len(self.begun)}"
            outcome = transaction.commit(self._staged(transaction, write))
        except CommitConflict:
            return
        if isinstance(outcome, Committed):
            self.acknowledged.append(write)
        elif not isinstance(outcome.error, CommitOutcomeUnknown):
            self.refused.append(write)

    def _staged(self, transaction: Transaction, write: str) -> CommitMetadata:
        group = self.random.choice(("g1-0", "g2-0"))
        now = {s.group.file_id: s.base_file.instant for s in visible_slices(transaction.state, ["p"])}
        path = f"p/{group}_0-0-0_{transaction.requested_time}.parquet"
        self.storage.write(staged_path(transaction.requested_time, path), DATA)
        based_on = now.get(group, "null")
        extra = {"schema": SCHEMA, "based on": based_on, "write": write}
        stat = WriteStat(group, path, "p", 1, file_size=len(DATA), prev_commit=based_on)
        return CommitMetadata("UPSERT", (stat,), extra=extra)


def simulate(seed: int) -> int:
    """Run one history, check it, and return how many commits were acknowledged."""
    scheduler = Scheduler(seed)
    kind = type("Stepped", (SteppedStorage,), {"scheduler": scheduler})
    storage = kind(f"memory://simulation-{next(_numbers)}")
    plain = MemoryStorage(storage.root)
    create_table(plain, TABLE)
    # Both groups are there: the rule of file groups decides every conflict.
    for group in ("g1-0", "g2-0"):
        transaction = Transaction.begin(plain, operation="INSERT", clock=scheduler.clock)
        path = f"p/{group}_0-0-0_{transaction.requested_time}.parquet"
        plain.write(staged_path(transaction.requested_time, path), DATA)
        stat = WriteStat(group, path, "p", 1, file_size=len(DATA), num_inserts=1)
        assert isinstance(
            transaction.commit(
                CommitMetadata("INSERT", (stat,), extra={"schema": SCHEMA, "based on": "null"})
            ),
            Committed,
        )
    writers = [Writer(f"w{number}", storage, seed) for number in range(3)]
    _schedule(scheduler, plain, writers)
    _check(seed, plain, writers, scheduler.clock)
    return sum(len(writer.acknowledged) for writer in writers)


def _schedule(scheduler: Scheduler, plain: MemoryStorage, writers: list[Writer]) -> None:
    scheduler.waiting = {writer.name: threading.Semaphore(0) for writer in writers}
    for writer in writers:
        writer.start()
        scheduler.arrived.acquire()
    chance = scheduler.random
    alive = list(writers)
    while alive:
        writer = chance.choice(alive)
        # Mostly the same writer goes on for a while; a pause is simply not being chosen.
        for _ in range(chance.choice((1, 2, 5, 20))):
            what = chance.random()
            if what < 0.01:
                scheduler.dead.add(writer.name)
            elif what < 0.06:
                plain.delete(LOCK)
            elif what < 0.07:
                _seem_dead(plain)
            scheduler.waiting[writer.name].release()
            scheduler.arrived.acquire()
            if writer.done:
                writer.join(timeout=30)
                _die(plain, writer)
                alive.remove(writer)
                break


def _seem_dead(plain: MemoryStorage) -> None:
    for name in heartbeat.heartbeats(plain):
        plain.write(f"{heartbeat.DIRECTORY}/{name}", replace(Owner.me(), pid=2**22 + 1).to_bytes())


def _die(plain: MemoryStorage, writer: Writer) -> None:
    """What the machine shows of a dead process: heartbeats of a process that is not there, and its lock."""
    for instant in writer.begun:
        path = f"{heartbeat.DIRECTORY}/{instant}"
        if plain.exists(path):
            plain.write(path, replace(Owner.me(), pid=2**22 + 1).to_bytes())


@contextmanager
def _all_dead() -> Iterator[None]:
    """Let every process that signed an instant count as dead, for the writers are threads of one that lives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Owner, "is_dead", property(lambda _owner: True))
        yield


def _check(seed: int, plain: MemoryStorage, writers: list[Writer], clock: Clock) -> None:
    assert not [writer.broken for writer in writers if writer.broken], (seed, [w.broken for w in writers])
    plain.delete(LOCK)
    _seem_dead(plain)
    with _all_dead():
        last = Transaction.begin(plain, operation="INSERT", clock=clock)
    last.abort()
    state = load_state(plain)
    assert not state.timeline.pending, (seed, "left pending", state.timeline.pending)
    completed = state.timeline.completed_writes
    times = {instant.requested_time for instant in completed}
    written = {state.metadata(instant).extra.get("write") for instant in completed}
    for writer in writers:
        assert set(writer.acknowledged) <= written, (seed, "lost", writer.name)
        assert not set(writer.refused) & written, (seed, "refused, and yet there", writer.name)
    _check_rolled_back(seed, plain, times)
    _check_chains(seed, state, completed)
    named = {stat.path for instant in completed for stat in state.metadata(instant).stats}
    data = {e.path for e in plain.list("p") if e.path.endswith(".parquet")}
    assert data == named, (seed, "phantom or missing files", data ^ named)


def _check_rolled_back(seed: int, plain: MemoryStorage, committed: set[str]) -> None:
    """What a completed rollback names is not there."""
    for name in plain.list_names(TIMELINE):
        if name.endswith(".rollback"):
            record = parse_record(plain.read(f"{TIMELINE}/{name}"), source=name)
            assert not committed & set(record["commitsRollback"]), (seed, "rolled back, and yet there", name)


def _check_chains(seed, state, completed) -> None:
    """Each version of a group is based on the one before: no update was lost."""
    newest: dict[str, str] = {}
    for instant in sorted(completed, key=lambda i: i.completion_time):
        metadata = state.metadata(instant)
        for stat in metadata.stats:
            based_on = metadata.extra["based on"]
            assert newest.get(stat.file_id, "null") == based_on, (seed, "lost update", instant.requested_time)
            newest[stat.file_id] = instant.requested_time


def test_five_hundred_seeds():
    assert sum(simulate(seed) for seed in range(500)) > 500


FIRST_SEED = int(os.environ.get("SIMULATION_FIRST_SEED", 500))
SEEDS = int(os.environ.get("SIMULATION_SEEDS", 10_000))


@pytest.mark.torture
def test_ten_thousand_seeds():
    assert sum(simulate(seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)) > SEEDS
