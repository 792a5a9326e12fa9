"""One write as a transaction: begin, stage files, validate, publish; the outcome is a value.

Timeline files order everything: `requested` and `inflight` announce the write, markers name each data file
before it exists, and the completed file, published last under the table's lock, is the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from drawstring.errors import CommitConflict, CommitOutcomeUnknown, CorruptTable, DrawstringError
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_names import join_path
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.storage.base import Storage
from drawstring.view.listing import METAFILE
from drawstring.write.clock import Clock, newest_time, next_time, system_clock
from drawstring.write.commit_encoding import encode_commit, encode_inflight, encode_requested_replace
from drawstring.write.heartbeat import Heartbeat, is_abandoned
from drawstring.write.locks import table_lock
from drawstring.write.markers import Markers
from drawstring.write.rollback import delete_files, drop_instant, roll_back
from drawstring.write.support import check_writable
from drawstring.write.table_state import TableState

logger = logging.getLogger(__name__)
_THREADS = 8


@dataclass(frozen=True)
class Committed:
    """The write is visible to every reader that opens the table from now on."""

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True)
class Conflicted:
    """Another writer was first; nothing of this write is visible, and its files are gone."""

    error: CommitConflict


@dataclass(frozen=True)
class OutcomeUnknown:
    """Whether the commit landed is not known; every file was kept."""

    error: CommitOutcomeUnknown


Outcome = Committed | Conflicted | OutcomeUnknown


class Transaction:
    """A write that has begun. End it with `commit` or `abort`, once.

    1. Its instant is later than everything on the timeline when it began.
    2. Until the completed file exists, readers see nothing of it.
    3. It commits only if no other write completed since it began and nobody rolled it back.
    """

    def __init__(
        self, state: TableState, requested_time: str, action: Action, *, clock: Clock, lock_wait: float
    ) -> None:
        self.state = state
        self.requested_time = requested_time
        self.action = action
        self.markers = Markers(state.storage, requested_time)
        self._clock = clock
        self._lock_wait = lock_wait
        self._heartbeat = Heartbeat(state.storage, requested_time)

    @classmethod
    def begin(
        cls,
        storage: Storage,
        *,
        operation: str,
        action: Action = Action.COMMIT,
        clock: Clock = system_clock,
        lock_wait: float = 60.0,
    ) -> Transaction:
        """Announce a write.

        Instants that dead drawstring writers left are rolled back first. Raises `UnsupportedTable` for a
        table that cannot be written, `CommitConflict` when another writer is at work.
        """
        transaction: Transaction | None = None
        try:
            with table_lock(storage, wait_seconds=lock_wait):
                state = _settle_pending(TableState.load(storage), clock)
                check_writable(state)
                newest = newest_time(state.timeline.ascending_instants)
                time = next_time(newest, clock=clock, timezone=state.config.timezone)
                transaction = cls(state, time, action, clock=clock, lock_wait=lock_wait)
                transaction._announce(operation)
        except BaseException:
            if transaction is not None:
                transaction.abort()
            raise
        return transaction

    def _announce(self, operation: str) -> None:
        self._heartbeat.start()
        is_replace = self.action is Action.REPLACECOMMIT
        named = operation if operation == "DELETE_PARTITION" else None
        request = encode_requested_replace(named) if is_replace else b""
        self._create(f"{self.requested_time}.{self.action.value}.requested", request)
        self._create(self._inflight, encode_inflight(operation))

    @property
    def _inflight(self) -> str:
        suffix = "inflight" if self.action is Action.COMMIT else f"{self.action.value}.inflight"
        return f"{self.requested_time}.{suffix}"

    @property
    def _directory(self) -> str:
        return self.state.config.timeline_directory

    def _create(self, name: str, content: bytes) -> None:
        if not self.state.storage.create_if_absent(f"{self._directory}/{name}", content):
            raise CommitConflict(
                f"Another writer took the instant {self.requested_time} of {self.state.storage.root} at the "
                "same moment. Nothing was written; try again.",
                condition="INSTANT_TAKEN",
                instant=self.requested_time,
            )

    def commit(self, metadata: CommitMetadata) -> Outcome:
        """Publish the write, or undo it when another writer was first.

        Any other failure undoes it as well and is raised.
        """
        outcome: Outcome | None = None
        try:
            self._write_metafiles(stat.partition_path for stat in metadata.stats)
            with table_lock(self.state.storage, wait_seconds=self._lock_wait):
                now = TableState.load(self.state.storage)
                self._validate(now)
                self._drop_leftovers(metadata)
                outcome = self._publish(now, metadata)
        except CommitConflict as error:
            self.abort()
            return Conflicted(error)
        except BaseException:
            if outcome is None:
                self.abort()
                raise
            # Only the lock could not be released; the commit stands.
            logger.warning("Could not release the lock of %s.", self.state.storage.root, exc_info=True)
        if isinstance(outcome, Committed):
            self._clean_up(metadata)
        else:
            self._heartbeat.stop()
        return outcome

    def _write_metafiles(self, partition_paths: Iterable[str]) -> None:
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(self._write_metafile, sorted(set(partition_paths))))

    def _write_metafile(self, path: str) -> None:
        name = join_path(path, METAFILE)
        if not self.state.storage.exists(name):
            depth = len(path.split("/")) if path else 0
            content = f"#partition metadata\ncommitTime={self.requested_time}\npartitionDepth={depth}\n"
            self.state.storage.create_if_absent(name, content.encode())

    def _validate(self, now: TableState) -> None:
        pending = {i.requested_time: i for i in now.timeline.pending}
        inflight = self.state.storage.exists(f"{self._directory}/{self._inflight}")
        if self.requested_time not in pending or not inflight:
            raise self._conflict(
                "ROLLED_BACK", f"another writer rolled back its instant {self.requested_time}"
            )
        before = {i.requested_time for i in self.state.timeline.completed_writes}
        newer = [i for i in now.timeline.completed_writes if i.requested_time not in before]
        if newer:
            raise self._conflict("CONCURRENT_COMMIT", f"another write, {newer[0].file_name}, completed since")
        if dict(now.config.properties) != dict(self.state.config.properties):
            raise self._conflict("SETTINGS_CHANGED", "its hoodie.properties changed since")

    def _conflict(self, condition: str, what: str) -> CommitConflict:
        return CommitConflict(
            f"The write to {self.state.storage.root} was not committed: {what}. Nothing of this write is "
            "visible; run it again on the table as it is now.",
            condition=condition,
            path=self.state.storage.root,
            instant=self.requested_time,
        )

    def _drop_leftovers(self, metadata: CommitMetadata) -> None:
        """Delete files of task attempts that were not accepted: readers would take them for committed."""
        accepted = {stat.path for stat in metadata.stats}
        for path in self.markers.data_files():
            if path not in accepted:
                self.state.storage.delete(path)

    def _publish(self, now: TableState, metadata: CommitMetadata) -> Outcome:
        storage = self.state.storage
        newest = newest_time(now.timeline.ascending_instants)
        completed = next_time(newest, clock=self._clock, timezone=self.state.config.timezone)
        instant = Instant(
            self.requested_time,
            self.action,
            State.COMPLETED,
            completed,
            f"{self.requested_time}_{completed}.{self.action.value}",
        )
        content = encode_commit(metadata, is_replace=self.action is Action.REPLACECOMMIT)
        path = f"{self._directory}/{instant.file_name}"
        try:
            storage.create_if_absent(path, content)
        except DrawstringError:
            raise
        except Exception as error:
            landed = _landed(storage, path)
            if landed is None:
                return OutcomeUnknown(self._unknown(instant, error))
            if not landed:
                raise
        return Committed(instant, metadata)

    def _unknown(self, instant: Instant, error: Exception) -> CommitOutcomeUnknown:
        unknown = CommitOutcomeUnknown(
            f"It is not known whether the write to {self.state.storage.root} was committed: storage failed "
            f"while {instant.file_name} was published ({error}). No file was deleted. If that file is in "
            f"{self._directory}, the write is committed; if not, it can be repeated.",
            instant=self.requested_time,
            file=instant.file_name,
        )
        unknown.__cause__ = error
        return unknown

    def _clean_up(self, metadata: CommitMetadata) -> None:
        # The commit stands: what cannot be tidied now is only untidy.
        try:
            self._drop_leftovers(metadata)
            self.markers.drop()
        except Exception:
            logger.warning("Could not remove the markers of %s.", self.requested_time, exc_info=True)
        self._heartbeat.stop()

    def abort(self) -> None:
        """Undo the write: data files, markers, then its instant. Failing to is logged, not raised."""
        storage = self.state.storage
        try:
            delete_files(storage, self.markers.data_files(), self.requested_time)
            self.markers.drop()
            drop_instant(storage, self._directory, self.requested_time, self.action)
        except Exception:
            logger.warning(
                "Could not undo the write %s of %s; the next writer rolls it back.",
                self.requested_time,
                storage.root,
                exc_info=True,
            )
            self._heartbeat.abandon()
            return
        with suppress(Exception):
            self._heartbeat.stop()


def refuse_if_being_written(storage: Storage, *, clock: Clock = system_clock) -> None:
    """Raise `CommitConflict` when a write of the table is pending whose writer may be at work."""
    try:
        state = TableState.load(storage)
    except CorruptTable:
        return
    for instant in _pending_writes(state):
        _require_abandoned(state, instant, clock)


def _settle_pending(state: TableState, clock: Clock) -> TableState:
    pending = _pending_writes(state)
    for instant in pending:
        _require_abandoned(state, instant, clock)
        logger.warning(
            "Rolling back %s of %s, whose writer died.", instant.requested_time, state.storage.root
        )
        roll_back(state, instant, clock=clock)
    return TableState.load(state.storage) if pending else state


def _pending_writes(state: TableState) -> list[Instant]:
    return [i for i in state.timeline.pending if i.action in WRITE_ACTIONS]


def _require_abandoned(state: TableState, instant: Instant, clock: Clock) -> None:
    if not is_abandoned(state.storage, instant.requested_time, clock=clock):
        raise CommitConflict(
            f"Cannot write to {state.storage.root}: the write {instant.requested_time} "
            f"({instant.action.value}, {instant.state.value}) has not completed, and its writer may be at "
            "work. Nothing was written. Try again when it is done; if its writer is dead, call "
            "drawstring.write.rollback.rollback_pending, or let Apache Hudi's next write roll it back.",
            condition="WRITE_PENDING",
            path=state.storage.root,
            instant=instant.requested_time,
        )


def _landed(storage: Storage, path: str) -> bool | None:
    try:
        return storage.exists(path)
    except Exception:
        return None
