"""Compact merge-on-read tables: a plan on the timeline, new base files, then the completed commit.

1. Under the lock a slot puts the plan on the timeline. Writers continue: what they append from here on belongs to
   the slices that the compaction makes, and readers merge it with the slices before.
2. A compactor has a heartbeat while it is running, and its tasks write to a staging folder that no reader lists.
3. Under the lock a slot gives the files their names, updates the metadata table and completes the commit.

Plans of any writer are run, also after a compactor died: the rest of its attempt is deleted, the plan stays.

Logs are merged with one another in the same steps (`LOGS`): the plan is a logcompaction, its outcome a deltacommit.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass

from drawstring.config.file_options import FileOptions
from drawstring.config.service_options import ServiceOptions
from drawstring.errors import CommitConflict, CorruptTable, UnsupportedTable
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileSlice
from drawstring.model.instant import Action, Instant, State
from drawstring.model.read_task import ReadTask
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write import slots, staging
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.clock import Clock, system_clock
from drawstring.write.commit_encoding import encode_commit
from drawstring.write.compaction import OPERATION, compact_slices
from drawstring.write.compaction_plan import encode_compaction_plan
from drawstring.write.heartbeat import DIRECTORY as HEARTBEATS
from drawstring.write.heartbeat import Heartbeat, has_stopped
from drawstring.write.log_compaction import OPERATION as LOG_COMPACT
from drawstring.write.log_compaction import compact_logs
from drawstring.write.markers import Markers, staged_path
from drawstring.write.plan import avro_schema_text
from drawstring.write.services.compact_plan import (
    are_logs_due,
    chosen_logs,
    chosen_slices,
    is_due,
    planned_tasks,
)
from drawstring.write.services.metadata_steps import steps_for_compaction
from drawstring.write.services.results import Compaction, CompactResult, PlannedGroup
from drawstring.write.services.support import COMPACT, check_serviceable, check_storage
from drawstring.write.services.turn import Turn, turn
from drawstring.write.signature import signature
from drawstring.write.slots import Decision, Step
from drawstring.write.steps import step
from drawstring.write.table_facts import load_state, schema_commit, table_schema

logger = logging.getLogger(__name__)
RunTasks = Callable[[WriteContext, Sequence[tuple[TaskContext, ReadTask]]], list[WriteStat]]
"""Writes the new base file of each slice, and returns what the commit says of them."""


@dataclass(frozen=True)
class Kind:
    """What logs become: the action of the plan, that of its completed instant, and the operation that it tells."""

    plans: Action
    completes: Action
    operation: str


BASE_FILES = Kind(Action.COMPACTION, Action.COMMIT, OPERATION)
LOGS = Kind(Action.LOGCOMPACTION, Action.DELTACOMMIT, LOG_COMPACT)


def compact(
    storage: Storage,
    options: ServiceOptions | None = None,
    *,
    only_if_due: bool = False,
    schedules: bool = True,
    runs: bool = True,
    files: FileOptions | None = None,
    kind: Kind = BASE_FILES,
    run_tasks: RunTasks | None = None,
    clock: Clock = system_clock,
) -> CompactResult:
    """Merge log files into new base files, or with one another; returns the compactions that were run or scheduled.

    Args:
        storage: where the table is.
        options: which slices are taken, when a compaction is due.
        only_if_due: schedule only when the trigger of the options says so.
        schedules: make a new plan; without, only plans that are there are run.
        runs: run plans, those of others first; without, a new plan is left to somebody else.
        files: how base files are made.
        kind: what the logs become.
        run_tasks: who merges slices: this process, or Spark; logs alone are always merged by this process.
        clock: tells the time.
    """
    options, began = options or ServiceOptions(), time.perf_counter()
    check_storage(storage)
    _require_merge_on_read(load_state(storage))
    run_tasks = compact_logs if kind is LOGS else run_tasks or compact_slices
    service = _Service(storage, options, files or FileOptions(), run_tasks, clock, kind)
    done, running = service.run_pending() if runs else ([], [])
    if schedules and (planned := service.schedule(only_if_due=only_if_due)) is not None:
        done.append(service.run(planned) or service.told(planned) if runs else service.told(planned))
    return CompactResult(storage.root, tuple(done), tuple(running), seconds=time.perf_counter() - began)


def plan_of_compact(
    storage: Storage,
    options: ServiceOptions | None = None,
    *,
    only_if_due: bool = False,
    kind: Kind = BASE_FILES,
    clock: Clock = system_clock,
) -> CompactResult:
    """Return what `compact` would do now; nothing is changed. A compaction without an instant would be new."""
    options, state = options or ServiceOptions(), load_state(storage)
    _require_merge_on_read(state)
    check_serviceable(state, COMPACT)
    found = [Compaction(i.requested_time, groups=_groups(state, i)) for i in _pending(state, kind)]
    if not only_if_due or _is_due(state, options, kind, clock):
        slices = _chosen(state, options, kind)
        groups = tuple(
            PlannedGroup(
                one.group.partition_path,
                one.group.file_id,
                one.base_file.name if one.base_file else None,
                tuple(log.name for log in one.log_files),
                one.size,
            )
            for one in slices
        )
        found += [Compaction("", groups=groups)] if groups else []
    return CompactResult(storage.root, tuple(found), is_dry_run=True)


def _pending(state: TableState, kind: Kind) -> list[Instant]:
    return [instant for instant in state.timeline.pending if instant.action is kind.plans]


def _is_due(state: TableState, options: ServiceOptions, kind: Kind, clock: Clock) -> bool:
    if kind is LOGS:
        return are_logs_due(state, options.compact)
    return is_due(state, options.compact, clock=clock)


def _chosen(state: TableState, options: ServiceOptions, kind: Kind) -> list[FileSlice]:
    choose = chosen_logs if kind is LOGS else chosen_slices
    return choose(state, options.compact)


def _require_merge_on_read(state: TableState) -> None:
    if not state.config.is_merge_on_read:
        raise UnsupportedTable(
            f"Cannot compact {state.storage.root}: it is a copy-on-write table, which has no log files. Its "
            "writes merge rows into base files at once; there is nothing to do.",
            condition="NOTHING_TO_COMPACT",
            operation=COMPACT,
            path=state.storage.root,
        )


def _groups(state: TableState, instant: Instant) -> tuple[PlannedGroup, ...]:
    return tuple(
        PlannedGroup(op.partition_path, op.file_id, op.base_file, op.log_files)
        for op in state.reader.compaction_plan(instant)
    )


@dataclass(frozen=True)
class _Attempt:
    """One try to run a plan; its number is in the names of its files, so that no two attempts share one."""

    instant: Instant
    state: TableState
    number: int
    heartbeat: Heartbeat


@dataclass(frozen=True)
class _Service:
    storage: Storage
    options: ServiceOptions
    files: FileOptions
    run_tasks: RunTasks
    clock: Clock
    kind: Kind

    def run_pending(self) -> tuple[list[Compaction], list[str]]:
        """Run the plans that are on the timeline; returns those that ran, and those that others are running."""
        done, running = [], []
        for instant in _pending(load_state(self.storage), self.kind):
            ran = self.run(instant)
            if ran is not None:
                done.append(ran)
            elif any(i == instant.requested_time for i in self._pending_times()):
                running.append(instant.requested_time)
        return done, running

    def _pending_times(self) -> list[str]:
        return [i.requested_time for i in _pending(load_state(self.storage), self.kind)]

    def _turn(self, *, rolls_back: bool = False) -> AbstractContextManager[Turn]:
        return turn(
            self.storage, self.options.concurrency, clock=self.clock, action=COMPACT, rolls_back=rolls_back
        )

    def schedule(self, *, only_if_due: bool) -> Instant | None:
        """Put a plan on the timeline; None when nothing is due, or there are no logs."""
        with self._turn(rolls_back=True) as held:
            if only_if_due and not _is_due(held.state, self.options, self.kind, self.clock):
                return None
            slices = _chosen(held.state, self.options, self.kind)
            plan = encode_compaction_plan(slices, logs_only=self.kind is LOGS)
            return held.request(self.kind.plans, plan) if slices else None

    def told(self, instant: Instant) -> Compaction:
        """Return a plan as results show it before it is run."""
        return Compaction(instant.requested_time, groups=_groups(load_state(self.storage), instant))

    def run(self, instant: Instant) -> Compaction | None:
        """Run a plan; None when another process runs it, or has run it."""
        attempt = self._begin(instant)
        if attempt is None:
            return None
        try:
            stats = self._write(attempt)
            with step("completing the compaction"), self._turn() as held:
                completed = self._complete(held, attempt, stats)
        except BaseException:
            attempt.heartbeat.abandon()
            self._drop_staged(attempt)
            raise
        with suppress(OSError):
            self.storage.delete(Markers(self.storage, instant.requested_time).directory, recursive=True)
        attempt.heartbeat.stop()
        return Compaction(
            instant.requested_time,
            completed,
            _groups(attempt.state, instant),
            rows=sum(stat.num_writes for stat in stats),
            bytes_written=sum(stat.file_size for stat in stats),
        )

    def _begin(self, instant: Instant) -> _Attempt | None:
        """Mark the plan as running, after deleting what a dead attempt left."""
        time_ = instant.requested_time
        with self._turn() as held:
            found = held.find(instant)
            if found is None or found.is_completed or self._is_running(time_):
                return None
            self._drop_attempt(held, found)
            heartbeat = Heartbeat(
                self.storage, time_, interval_seconds=self.options.concurrency.heartbeat_interval_seconds
            )
            if not heartbeat.start():
                return None
            self.storage.create_if_absent(_inflight(held, instant), b"", durable=False)
            state = load_state(self.storage)
        return _Attempt(instant, state, random.randrange(1, 1 << 31), heartbeat)

    def _is_running(self, requested_time: str) -> bool:
        """Whether a compactor has a live heartbeat. Hudi's compactors have none; Hudi itself takes them for dead."""
        path = f"{HEARTBEATS}/{requested_time}"
        try:
            return not has_stopped(self.storage, path, self.options.concurrency, clock=self.clock)
        except FileNotFoundError:
            return False

    def _drop_attempt(self, held: Turn, found: Instant) -> None:
        """Roll an unfinished compaction back as Hudi does: its files are deleted, the plan stays."""
        self.storage.delete(f"{HEARTBEATS}/{found.requested_time}")
        markers = Markers(self.storage, found.requested_time)
        if found.state is State.REQUESTED and not markers.exist():
            return
        logger.warning(
            "Taking back the attempt at compaction %s of %s.", found.requested_time, self.storage.root
        )
        files = [path for path in markers.data_files() if self.storage.exists(path)]
        inflight = _inflight(held, found)
        held.decide(
            Decision(
                f"attempt_{found.requested_time}",
                # The inflight file stays, or is made: nobody repeats these steps over the next attempt's files.
                (*map(Step.delete, files), Step.delete_tree(markers.directory), Step.create(inflight, b"")),
                creates=inflight,
            )
        )

    def _write(self, attempt: _Attempt) -> list[WriteStat]:
        schema = TableSchemas(attempt.state, None).table_schema
        context = WriteContext(
            self.storage,
            attempt.instant.requested_time,
            schema,
            self.files,
            avro_schema=avro_schema_text(schema, attempt.state.config.name),
        )
        tasks = [
            (TaskContext(number, attempt.number), task)
            for number, task in enumerate(planned_tasks(attempt.state, attempt.instant))
        ]
        with step("merging slices", len(tasks)):
            return self.run_tasks(context, tasks)

    def _complete(self, held: Turn, attempt: _Attempt, stats: Sequence[WriteStat]) -> str:
        time_ = attempt.instant.requested_time
        self._check(held, attempt, stats)
        extra = {"schema": _schema_text(held.state), **signature()}
        metadata = CommitMetadata(self.kind.operation, tuple(stats), extra=extra)
        steps, newest = steps_for_compaction(held, time_, metadata)
        completed = held.next_time(newest)
        path = f"{held.directory}/{time_}_{completed}.{self.kind.completes.value}"
        content = encode_commit(metadata, is_replace=False)
        all_steps = (*staging.publishing_steps(time_, stats), *steps, Step.create(path, content))
        held.decide(Decision(time_, all_steps, creates=path, needs=_inflight(held, attempt.instant)))
        return completed

    def _check(self, held: Turn, attempt: _Attempt, stats: Sequence[WriteStat]) -> None:
        """Raise `CommitConflict` when somebody took this attempt for dead, and took it back or was quicker."""
        time_ = attempt.instant.requested_time
        found = held.find(attempt.instant)
        if found is None or found.is_completed or not self.storage.exists(_inflight(held, attempt.instant)):
            raise _taken_over(self.storage, time_)
        try:
            staging.check_staged(self.storage, time_, stats)
        except CorruptTable:
            if any(self.storage.exists(staged_path(time_, stat.path)) for stat in stats):
                raise
            raise _taken_over(self.storage, time_) from None

    def _drop_staged(self, attempt: _Attempt) -> None:
        """Delete what this attempt wrote, and nothing of others, unless a slot may have decided it."""
        time_ = attempt.instant.requested_time
        if _is_decided(self.storage, time_):
            return
        folder, mark = staged_path(time_, ""), f"-{attempt.number}-"
        with suppress(OSError):
            for entry in list(self.storage.list(folder.rstrip("/"), recursive=True)):
                if not entry.is_directory and mark in entry.name:
                    self.storage.delete(entry.path)


def _is_decided(storage: Storage, requested_time: str) -> bool:
    """Whether a slot decides that this compaction completes, or that cannot be told."""
    try:
        return slots.holds(storage, requested_time, since=0)
    except (OSError, CorruptTable):
        return True


def _inflight(held: Turn, plan: Instant) -> str:
    return f"{held.directory}/{plan.requested_time}.{plan.action.value}.inflight"


def _schema_text(state: TableState) -> str:
    commit = schema_commit(state)
    if commit is not None:
        return commit.schema
    schema = table_schema(state)
    return avro_schema_text(schema, state.config.name) if schema is not None else ""


def _taken_over(storage: Storage, requested_time: str) -> CommitConflict:
    return CommitConflict(
        f"The compaction {requested_time} of {storage.root} was not completed here: another compactor took this one "
        "for dead, and ran the plan itself or takes it back. The plan stands until it is completed.",
        condition="ROLLED_BACK",
        path=storage.root,
        instant=requested_time,
    )
