"""When a compaction is due, which slices it takes, and how a plan of anybody becomes read tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drawstring.config.service_options import (
    NUM_AFTER_REQUEST,
    NUM_AND_TIME,
    NUM_COMMITS,
    NUM_OR_TIME,
    CompactOptions,
)
from drawstring.errors import CorruptTable
from drawstring.model.commit_metadata import CompactionOperation
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.timeline.layout_v2 import instant_of_epoch
from drawstring.write.clock import Clock
from drawstring.write.compaction import CompactionLimits, CompactionOrder, select_slices
from drawstring.write.conflicts import planned_groups
from drawstring.write.log_compaction import OPERATION as LOG_COMPACT
from drawstring.write.log_compaction import has_many_blocks

_PLANS = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)


def chosen_slices(state: TableState, options: CompactOptions) -> list[FileSlice]:
    """Return the slices that a new plan takes: those with logs, of groups that no other plan has."""
    limits = CompactionLimits(
        CompactionOrder(options.strategy), options.target_io_mb, options.min_log_bytes, options.min_log_files
    )
    return select_slices(_slices(state), limits, busy=_busy(state))


def _slices(state: TableState) -> Iterator[FileSlice]:
    view = state.view(None)
    yield from (found for path in view.partitions() for found in view.slices(path))


def _busy(state: TableState) -> set[FileGroupId]:
    return {
        group
        for instant in state.timeline.pending
        if instant.action in _PLANS
        for group in planned_groups(state, instant)
    }


def chosen_logs(state: TableState, options: CompactOptions) -> list[FileSlice]:
    """Return the slices whose logs a new plan merges with one another: those with many blocks.

    None as long as a write is pending: its log would have an older time than the one that stands for the logs before
    it, and Hudi's readers go by that.
    """
    if any(instant.action in WRITE_ACTIONS for instant in state.timeline.pending):
        return []
    schemas, busy = TableSchemas(state, None), _busy(state)
    facts = TaskFacts(state, schemas)

    def is_chosen(one: FileSlice) -> bool:
        return has_many_blocks(state.storage, facts.task(one), schemas.table_schema, many=options.log_blocks)

    return [one for one in _slices(state) if one.log_files and one.group not in busy and is_chosen(one)]


def are_logs_due(state: TableState, options: CompactOptions) -> bool:
    """Whether logs are to be merged with one another: so many delta commits since they were merged with anything."""
    count = 0
    for instant in reversed(state.timeline.completed_writes):
        if count >= options.log_blocks or instant.action is not Action.DELTACOMMIT:
            break
        if state.metadata(instant).operation == LOG_COMPACT:
            break
        count += 1
    return count >= options.log_blocks


def is_due(state: TableState, options: CompactOptions, *, clock: Clock) -> bool:
    """Whether a compaction is due by Hudi's triggers: delta commits, or time, since the last one."""
    instants = state.timeline.ascending_instants
    last = _last_compaction(instants, requested=options.trigger == NUM_AFTER_REQUEST)
    since = [
        i.requested_time
        for i in instants
        if i.action is Action.DELTACOMMIT and (last is None or i.requested_time > last)
    ]
    begun = last or (since[0] if since else None)
    if begun is None:
        return False
    limit = instant_of_epoch(clock() - options.seconds * 1000, state.config.timezone)
    by_number, by_time = len(since) >= options.commits, begun <= limit
    if options.trigger in (NUM_COMMITS, NUM_AFTER_REQUEST):
        return by_number
    if options.trigger == NUM_AND_TIME:
        return by_number and by_time
    return by_number or by_time if options.trigger == NUM_OR_TIME else by_time


def _last_compaction(instants: Sequence[Instant], *, requested: bool) -> str | None:
    """Return the newest compaction, also one that is pending where that counts."""
    found = [
        i.requested_time
        for i in instants
        if (i.is_completed and i.action is Action.COMMIT) or (requested and i.action is Action.COMPACTION)
    ]
    return found[-1] if found else None


def planned_tasks(state: TableState, instant: Instant) -> Iterator[ReadTask]:
    """Yield, for each file group of a plan, the task that reads what is to be merged.

    Groups that Apache Hudi has replaced since, and whose files it has cleaned, are left out: nobody reads them.
    """
    facts, replaced = TaskFacts(state, TableSchemas(state, None)), state.visibility(None).replaced
    sizes: dict[str, dict[str, int]] = {}
    for operation in state.reader.compaction_plan(instant):
        path = operation.partition_path
        if path not in sizes:
            sizes[path] = dict(state.listing.files(path))
        group, names = (
            FileGroupId(path, operation.file_id),
            {operation.base_file, *operation.log_files} - {None},
        )
        if group not in replaced or names <= sizes[path].keys():
            yield facts.task(_slice(state, operation, sizes[path]))


def _slice(state: TableState, operation: CompactionOperation, sizes: dict[str, int]) -> FileSlice:
    """Return exactly the files that a plan names: logs that came since belong to the slice after it."""
    path, base, logs = operation.partition_path, None, []
    if operation.base_file is not None:
        size = _size(state, operation, operation.base_file, sizes)
        base = parse_base_file(path, operation.base_file, size)
    for name in operation.log_files:
        log = parse_log_file(path, name, _size(state, operation, name, sizes))
        if log is not None:
            logs.append(log)
    group = FileGroupId(path, operation.file_id)
    return FileSlice(group, operation.base_instant, base, tuple(logs))


def _size(state: TableState, operation: CompactionOperation, name: str, sizes: dict[str, int]) -> int:
    if name in sizes:
        return sizes[name]
    raise CorruptTable(
        f"Cannot compact {state.storage.root}: the plan names {name} in partition {operation.partition_path!r}, which "
        "is not there. Restore the file, or take the plan away with Apache Hudi (unschedule).",
        condition="PLANNED_FILE_MISSING",
        path=name,
        partition=operation.partition_path,
    )
