"""What a clean is planned from, looked up in a table: slices, savepoints, plans, and what the last clean said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from drawstring.config.service_options import CleanOptions
from drawstring.model.commit_metadata import CleanRecord, CommitMetadata
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.planning.table_state import TableState
from drawstring.timeline.layout_v2 import instant_of_epoch
from drawstring.view.file_system_view import all_slices
from drawstring.write.clock import Clock
from drawstring.write.conflicts import planned_groups
from drawstring.write.services.clean import (
    CleanInput,
    CleanPlan,
    CleanPolicy,
    CleanRetention,
    earliest_retained,
    plan_clean,
)

SAVEPOINTS = "savepointed_timestamps"
"""Where Hudi's cleans say which savepoints they respected."""
_PLANS = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)
_HOUR_MS = 3_600_000


def planned(state: TableState, options: CleanOptions, *, clock: Clock) -> CleanPlan:
    """Return what a clean of the table would delete now."""
    retention = retention_of(options)
    last = last_clean(state)
    where = _Bounds(state, options, last, clock)
    retained = earliest_retained(state.timeline, retention, oldest_time=where.oldest_time, limit=where.limit)
    paths = _partitions(state, options, last, retained)
    given = CleanInput(
        timeline=state.timeline,
        slices={path: _slices(state, path) for path in paths},
        replaced=state.visibility(None).replaced,
        savepointed=_savepointed(state),
        compactions=_planned_groups(state),
    )
    plan = plan_clean(given, retention, oldest_time=where.oldest_time, limit=where.limit)
    saved = ",".join(sorted(i.requested_time for i in state.timeline.savepoints))
    extra = {SAVEPOINTS: saved} if saved else {}
    return CleanPlan(plan.policy, plan.earliest_retained, plan.last_completed, plan.files, extra)


def retention_of(options: CleanOptions) -> CleanRetention:
    """Return what stays, by the options."""
    return CleanRetention(CleanPolicy(options.policy), options.commits, options.hours, options.file_versions)


class _Bounds:
    """How far a clean goes by the clock, and by the most commits that it may take."""

    def __init__(
        self, state: TableState, options: CleanOptions, last: CleanRecord | None, clock: Clock
    ) -> None:
        self.oldest_time = oldest_time(options, clock, state.config.timezone)
        writes = [write.requested_time for write in state.timeline.completed_writes]
        begun = [time for time in writes if last is None or time >= last.earliest_retained]
        self.limit = begun[options.most_commits] if options.most_commits < len(begun) else ""


def oldest_time(options: CleanOptions, clock: Clock, timezone: str) -> str:
    """Return now less the hours that commits are retained for, in the digits of a timeline."""
    return instant_of_epoch(clock() - options.hours * _HOUR_MS, timezone)


def last_clean(state: TableState) -> CleanRecord | None:
    """Return what the newest completed clean says; None when there is none on the active timeline."""
    cleans = state.timeline.completed_cleans
    return state.reader.clean_record(cleans[-1]) if cleans else None


def is_due(state: TableState, options: CleanOptions) -> bool:
    """Whether there were as many commits since the last clean as a clean after a write waits for."""
    last = last_clean(state)
    since = last.last_completed if last else ""
    writes = [write for write in state.timeline.completed_writes if write.requested_time > since]
    return len(writes) >= options.trigger_commits


def _partitions(
    state: TableState, options: CleanOptions, last: CleanRecord | None, retained: Instant | None
) -> Iterable[str]:
    by_versions = options.policy == CleanPolicy.KEEP_LATEST_FILE_VERSIONS.value
    if retained is None and not by_versions:
        return ()
    if retained is not None and options.incremental:
        begin = _changed_since(state, last)
        if begin is not None:
            return _changed(state, begin, retained.requested_time)
    return _selected(state.view(None).partitions(), options)


def _selected(paths: Iterable[str], options: CleanOptions) -> list[str]:
    if options.incremental:
        return list(paths)
    if options.partitions:
        return [path for path in paths if path in options.partitions]
    pattern = re.compile(options.partition_regex or ".*")
    return [path for path in paths if pattern.fullmatch(path)]


def _changed_since(state: TableState, last: CleanRecord | None) -> str | None:
    """Return the time from which on changes matter; None when that cannot be told and all partitions do."""
    start = state.timeline.start or ""
    if last is None:
        # Nothing was ever cleaned, or long ago: what was written before the active timeline may be waiting.
        return None if _has_history(state) else ""
    if not last.earliest_retained or last.earliest_retained < start:
        return None
    removed = set(filter(None, last.extra.get(SAVEPOINTS, "").split(","))) - {
        i.requested_time for i in state.timeline.savepoints
    }
    return None if removed else last.earliest_retained


def _has_history(state: TableState) -> bool:
    try:
        return any("manifest_" in name for name in state.storage.list_names(state.config.history_directory))
    except FileNotFoundError:
        return False


def _changed(state: TableState, begin: str, end: str) -> list[str]:
    """Return partitions in which a write of this range made a slice the last one but one, or took groups out."""
    found: dict[str, None] = {}
    for write in state.timeline.completed_writes:
        if begin <= write.requested_time < end:
            found.update(dict.fromkeys(outdating_partitions(state.metadata(write))))
    return sorted(found)


def outdating_partitions(metadata: CommitMetadata) -> Iterable[str]:
    """Yield the partitions in which a commit put new slices in the place of others."""
    yield from metadata.replaced
    for stat in metadata.stats:
        is_base = not stat.name.startswith(".")
        if is_base and (stat.prev_commit != "null" or metadata.operation == "COMPACT"):
            yield stat.partition_path


def _slices(state: TableState, path: str) -> tuple[FileSlice, ...]:
    return all_slices(path, state.listing.files(path), state.visibility(None))


def _savepointed(state: TableState) -> Mapping[str, set[str]]:
    kept: dict[str, set[str]] = {}
    for savepoint in state.timeline.savepoints:
        for path, names in state.reader.savepointed_files(savepoint).items():
            kept.setdefault(path, set()).update(names)
    return kept


def _planned_groups(state: TableState) -> Mapping[FileGroupId, str]:
    return {
        group: instant.requested_time
        for instant in state.timeline.pending
        if instant.action in _PLANS
        for group in planned_groups(state, instant)
    }
