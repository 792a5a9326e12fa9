"""One write as a transaction: announce, stage files, validate, decide, publish; the outcome is a value.

1. `requested` and `inflight` announce the write; a heartbeat says that its writer lives.
2. Tasks write to a staging folder that no reader lists (`staging`).
3. Under the table's lock, what others decided is finished, and the write is validated against what they did: the
   rule for schemas, then the rules for file groups and keys (`conflicts`).
4. The next slot decides the commit (`slots`). From here on it is never undone.
5. Files get their final names, the metadata table lists them, and last the completed instant makes them visible.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.metadata_options import MetadataTableOptions
from drawstring.errors import CommitConflict, CommitOutcomeUnknown, CorruptTable
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import Action, Instant, State
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import recover_table_properties
from drawstring.timeline.timeline import COMPLETES_AS
from drawstring.write import cleaned_since, conflicts, heartbeat, slots, staging
from drawstring.write.clock import Clock, newest_time, next_time, system_clock
from drawstring.write.column_ids import column_id_steps, with_column_ids
from drawstring.write.commit_encoding import encode_commit, encode_inflight, encode_requested_replace
from drawstring.write.heartbeat import Heartbeat
from drawstring.write.landing import is_completed
from drawstring.write.locks import configured_lock
from drawstring.write.markers import Markers, staged_path
from drawstring.write.metadata_table import keeping, upkeep
from drawstring.write.metadata_table.keeping import CommitFacts
from drawstring.write.non_blocking import keeps_record_index
from drawstring.write.replace_table import sweep_overwrites
from drawstring.write.rollback import drop_instant_steps, inflight_name, roll_back_dead_writers
from drawstring.write.schema_commit import is_hidden, schema_steps
from drawstring.write.signature import signature
from drawstring.write.slots import Decision, Step
from drawstring.write.support import check_writable
from drawstring.write.table_facts import load_state
from drawstring.write.write_set import WriteSet, existing_groups

logger = logging.getLogger(__name__)
_NOTHING_KNOWN = CommitFacts()

_SLOT_TRIES = 3
"""How often a slot is tried for: it is lost only to a writer that got in although the lock was held."""

SchemaRule = Callable[[TableState, TableState, WriteSet, str], str]
"""Decides the schema that a commit records, from start, now, write set and instant; raises when it must not be."""


def written_schema(_start: TableState, _now: TableState, write_set: WriteSet, _instant: str) -> str:
    """Record the writer's own schema, whatever others did."""
    return write_set.schema_written


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
    3. It commits only if it conflicts with nothing that others did since it began, and nobody rolled it back.
    """

    def __init__(
        self,
        state: TableState,
        requested_time: str,
        action: Action,
        *,
        options: ConcurrencyOptions,
        clock: Clock = system_clock,
    ) -> None:
        self.state = state
        self.requested_time = requested_time
        self.action = action
        self.options = options
        self._clock = clock
        self._heartbeat = Heartbeat(
            state.storage, requested_time, interval_seconds=options.heartbeat_interval_seconds
        )
        self._decision: Decision | None = None
        self._announced: bool | None = False

    @classmethod
    def begin(
        cls,
        storage: Storage,
        *,
        operation: str,
        action: Action = Action.COMMIT,
        options: ConcurrencyOptions | None = None,
        metadata_table: MetadataTableOptions | None = None,
        clock: Clock = system_clock,
    ) -> Transaction:
        """Announce a write.

        What others decided is finished first, and what dead writers left is rolled back. The metadata table is made
        or removed as `metadata_table` says; None leaves it as it is. Raises `UnsupportedTable` for a table that
        cannot be written.
        """
        options = options or ConcurrencyOptions()
        transaction: Transaction | None = None
        try:
            with configured_lock(storage, options):
                state = _settled_state(storage, options, metadata_table, clock)
                newest = newest_time(state.timeline.ascending_instants)
                time = next_time(newest, clock=clock, timezone=state.config.timezone)
                transaction = cls(state, time, action, options=options, clock=clock)
                transaction._announce(operation)
        except BaseException:
            if transaction is not None:
                transaction.abort()
            raise
        return transaction

    def _announce(self, operation: str) -> None:
        if not self._heartbeat.start():
            raise self._instant_taken()
        is_replace = self.action is Action.REPLACECOMMIT
        named = operation if operation == "DELETE_PARTITION" else None
        signed = signature()
        inflight = encode_inflight(operation, signed)
        request = encode_requested_replace(named, signed) if is_replace else inflight
        self._announced = None  # until storage has answered, it is not known
        try:
            self._create(f"{self.requested_time}.{self.action.value}.requested", request, durable=is_replace)
        except CommitConflict:
            self._announced = False
            raise
        self._announced = True
        self._create(inflight_name(self.requested_time, self.action), inflight, durable=True)

    def _create(self, name: str, content: bytes, *, durable: bool) -> None:
        path = f"{self._directory}/{name}"
        if not self.state.storage.create_if_absent(path, content, durable=durable):
            raise self._instant_taken()

    def _instant_taken(self) -> CommitConflict:
        return CommitConflict(
            f"Another writer took the instant {self.requested_time} of {self.state.storage.root} at the "
            "same moment. Nothing was written; try again.",
            condition="INSTANT_TAKEN",
            instant=self.requested_time,
        )

    @property
    def _directory(self) -> str:
        return self.state.config.timeline_directory

    @property
    def _inflight(self) -> str:
        return f"{self._directory}/{inflight_name(self.requested_time, self.action)}"

    def commit(
        self,
        metadata: CommitMetadata,
        write_set: WriteSet | None = None,
        *,
        schema_rule: SchemaRule = written_schema,
        facts: CommitFacts = _NOTHING_KNOWN,
    ) -> Outcome:
        """Publish the write, or undo it when another writer was first.

        Without a write set, the file groups that the metadata names are taken to be all that it touched. `facts`
        spares the metadata table from reading the files again. Any failure before the decision undoes the write and
        is raised.
        """
        declared = write_set or WriteSet(existing_groups(metadata), schema_written=metadata.schema)
        try:
            self._check_files(metadata)
            outcome = self._decided(metadata, declared, schema_rule, facts)
        except BaseException as error:
            return self._failed(error, metadata)
        self._clean_up(outcome)
        return outcome

    def _decided(
        self, metadata: CommitMetadata, write_set: WriteSet, schema_rule: SchemaRule, facts: CommitFacts
    ) -> Outcome:
        """Validate and take the next slot; where another writer took it meanwhile, do both again on the new state."""
        for tries_left in reversed(range(_SLOT_TRIES)):
            try:
                with self._locked():
                    number = slots.settle(self.state.storage)
                    now = load_state(self.state.storage)
                    resolved = self._validated(now, metadata, write_set, schema_rule)
                    return self._publish(now, number + 1, resolved, facts)
            except CommitConflict as error:
                if error.condition != "OVERTAKEN" or not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    def _check_files(self, metadata: CommitMetadata) -> None:
        try:
            staging.check_staged(self.state.storage, self.requested_time, metadata.stats)
        except CorruptTable:
            if self.state.storage.exists(self._inflight):
                raise
            raise conflicts.rolled_back(self.state.storage, self.requested_time) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock. Once the commit is decided, a failure to release the lock does not undo it."""
        lock = configured_lock(self.state.storage, self.options)
        lock.__enter__()
        try:
            yield
        finally:
            try:
                lock.__exit__(None, None, None)
            except Exception:
                logger.warning("Could not release the lock of %s.", self.state.storage.root, exc_info=True)

    def _validated(
        self, now: TableState, metadata: CommitMetadata, write_set: WriteSet, schema_rule: SchemaRule
    ) -> CommitMetadata:
        """Return the metadata to record, with the schema that the rule decided; raises `CommitConflict`."""
        storage, ours = self.state.storage, self.requested_time
        if not self.is_pending(now):
            raise conflicts.rolled_back(storage, ours)
        if self._shares_instant(now):
            raise self._instant_taken()
        if _settings(now) != _settings(self.state):
            raise conflicts.settings_changed(storage, ours)
        if write_set.non_blocking and keeps_record_index(now.config):
            raise conflicts.settings_changed(storage, ours)
        conflicts.check_pending_rollbacks(now, ours)
        conflicts.check_history(self.state, now, ours)
        schema = schema_rule(self.state, now, write_set, ours)
        since = conflicts.completed_since(self.state, now)
        conflicts.check_batch(since, write_set, storage, ours)
        conflicts.check_groups(since, write_set, storage, ours)
        cleaned_since.check_listed(self.state, now, since, write_set, ours)
        conflicts.check_pending_plans(now, write_set, ours)
        conflicts.check_pending_rewrites(now, write_set, ours)
        if write_set.checks_new_keys:
            staged = [(stat, staged_path(ours, stat.path)) for stat in metadata.stats]
            conflicts.check_new_keys(since, staged, storage, ours, is_global=write_set.keys_are_global)
        return replace(metadata, extra={**metadata.extra, "schema": schema}) if schema else metadata

    def is_pending(self, now: TableState) -> bool:
        """Whether the instant is announced still: a rollback takes it away, and so does an overwrite of the table."""
        pending = {instant.requested_time for instant in now.timeline.pending}
        # A rollback deletes the requested file last, and it is never made twice: one that came between the two files
        # leaves an inflight file alone, which is no pending write.
        requested = f"{self._directory}/{self.requested_time}.{self.action.value}.requested"
        exists = self.state.storage.exists
        return self.requested_time in pending and exists(requested) and exists(self._inflight)

    def _shares_instant(self, now: TableState) -> bool:
        """Whether a plan of a process that had lost the lock has the same instant: file names have only the time."""
        known = now.timeline.ascending_instants
        if any(i.requested_time == self.requested_time and i.action is not self.action for i in known):
            return True
        # The timeline would take a plan that completes with the same action for the same instant.
        plans = (plan for plan, completed in COMPLETES_AS.items() if completed is self.action)
        names = (f"{self._directory}/{self.requested_time}.{plan.value}.requested" for plan in plans)
        return any(map(self.state.storage.exists, names))

    def _publish(self, now: TableState, slot: int, metadata: CommitMetadata, facts: CommitFacts) -> Outcome:
        storage = self.state.storage
        newest = newest_time(now.timeline.ascending_instants)
        metadata = with_column_ids(now, metadata)
        before: tuple[Step, ...] = ()
        if is_hidden(now, self.requested_time, metadata.schema):
            before, newest = schema_steps(now, metadata, newest, clock=self._clock)
        kept, newest = keeping.steps_for_commit(
            now, self.requested_time, metadata, newest=newest, clock=self._clock, facts=facts
        )
        completed = next_time(newest, clock=self._clock, timezone=self.state.config.timezone)
        name = f"{self.requested_time}_{completed}.{self.action.value}"
        instant = Instant(self.requested_time, self.action, State.COMPLETED, completed, name)
        content = encode_commit(metadata, is_replace=self.action is Action.REPLACECOMMIT)
        steps = (
            *staging.publishing_steps(self.requested_time, metadata.stats),
            *before,
            *kept,
            *column_id_steps(now, metadata, self.requested_time, completed),
            Step.create(f"{self._directory}/{name}", content),
        )
        self._decision = Decision(
            self.requested_time, steps, creates=f"{self._directory}/{name}", needs=self._inflight
        )
        if not slots.take(storage, slot, self._decision):
            self._decision = None
            raise conflicts.overtaken(storage, self.requested_time)
        slots.carry_out(storage, self._decision)
        return Committed(instant, metadata)

    def _failed(self, error: BaseException, metadata: CommitMetadata) -> Outcome:
        """Undo the write if it was not decided; keep, and if possible finish, what was or may have been decided."""
        if self._decision is None:
            self.abort()
            if isinstance(error, CommitConflict):
                return Conflicted(error)
            raise error
        landed = slots.has_landed(self.state.storage, self.requested_time)
        if landed is False:
            self._decision = None
            self.abort()
            raise error
        if landed and isinstance(error, Exception) and (finished := self._finish_decided()) is not None:
            return self._committed_after_all(metadata) if finished else self._void(error)
        # Another writer finishes the decided commit; the heartbeat of a dead writer tells it not to wait.
        self._heartbeat.abandon()
        if isinstance(error, Exception):
            return OutcomeUnknown(self._unknown(error))
        raise error

    def _finish_decided(self) -> bool | None:
        """Whether the decided commit is completed now, or (False) void and undone; None when neither is known."""
        assert self._decision is not None
        storage = self.state.storage
        try:
            with self._locked():
                slots.settle(storage)
                # Others may have finished, and even archived it, while this process was paused.
                if is_completed(load_state(storage), self.requested_time):
                    return True
                if not self._decision.is_void(storage):
                    return None
                slots.undo(storage, self._decision)
                return False
        except Exception:
            logger.warning("Could not finish the commit %s.", self.requested_time, exc_info=True)
            return None

    def _void(self, error: Exception) -> Outcome:
        """The slot was taken, but the instant or a file was gone before it could be carried out: nothing stands."""
        self._decision = None
        self.abort()
        if isinstance(error, CommitConflict):
            return Conflicted(error)
        conflict = conflicts.rolled_back(self.state.storage, self.requested_time)
        conflict.__cause__ = error
        return Conflicted(conflict)

    def _committed_after_all(self, metadata: CommitMetadata) -> Committed:
        outcome = self._committed(metadata)
        self._clean_up(outcome)
        return outcome

    def _committed(self, metadata: CommitMetadata) -> Committed:
        assert self._decision is not None
        name = self._decision.creates.rpartition("/")[2]
        completed = name.partition("_")[2].partition(".")[0]
        return Committed(
            Instant(self.requested_time, self.action, State.COMPLETED, completed, name), metadata
        )

    def _unknown(self, error: Exception) -> CommitOutcomeUnknown:
        assert self._decision is not None
        name = self._decision.creates.rpartition("/")[2]
        unknown = CommitOutcomeUnknown(
            f"It is not known whether the write to {self.state.storage.root} was committed: storage failed "
            f"while {name} was published ({error}). No file was deleted. The next write finishes the commit if it was "
            f"decided, and rolls it back if not; if {name} is in {self._directory} then, it is committed.",
            instant=self.requested_time,
            file=name,
        )
        unknown.__cause__ = error
        return unknown

    def _clean_up(self, outcome: Outcome) -> None:
        # The commit is complete: files that cannot be tidied up now do no harm.
        storage = self.state.storage
        try:
            storage.delete(Markers(storage, self.requested_time).directory, recursive=True)
            slots.forget_old(storage, slots.newest(storage))
        except Exception:
            logger.warning("Could not tidy up after %s.", self.requested_time, exc_info=True)
        finally:
            # After an interrupt the heartbeat must not go on for as long as the process lives.
            self._heartbeat.stop()

    def abort(self) -> None:
        """Undo the write: staged files, then its instant. Failing to is logged, not raised."""
        storage = self.state.storage
        if self._decision is not None or self._announced is None:
            # Perhaps decided, or announced: the next writer can tell, and finishes or rolls back.
            self._heartbeat.abandon()
            return
        if not self._announced:
            with suppress(Exception):
                self._heartbeat.stop()
            return
        try:
            storage.delete(Markers(storage, self.requested_time).directory, recursive=True)
            for step in drop_instant_steps(self._directory, self.requested_time, self.action):
                storage.delete(step.path)
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


def _settings(state: TableState) -> dict[str, str]:
    """The table settings that a write relies on; the list of indexes is looked up again under the lock."""
    left_out = ("hoodie.table.metadata.partitions", "hoodie.table.index.defs.path")
    return {key: value for key, value in state.config.properties.items() if not key.startswith(left_out)}


def _settled_state(
    storage: Storage,
    options: ConcurrencyOptions,
    metadata_table: MetadataTableOptions | None,
    clock: Clock,
) -> TableState:
    """Finish what was decided, roll back what dead writers left, sweep; the lock must be held."""
    folders, beats = staging.temporary_folders(storage), heartbeat.heartbeats(storage)
    recover_table_properties(storage)
    number = slots.settle(storage)
    state = load_state(storage)
    check_writable(state)
    number, state = roll_back_dead_writers(state, number, options, clock=clock)
    state = upkeep.prepared(state, number, metadata_table, clock=clock)
    staging.sweep(storage, folders, state.timeline.pending)
    sweep_overwrites(storage, folders)
    own = (slots.DIRECTORY, heartbeat.DIRECTORY, state.config.timeline_directory)
    staging.sweep_unpublished(storage, (*own, *keeping.directories(state.config)))
    heartbeat.sweep(storage, beats, state.timeline.pending, options, clock=clock)
    return state
