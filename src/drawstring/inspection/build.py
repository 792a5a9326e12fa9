"""Reports made from a table's timeline, slices and settings."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from drawstring.config.table_config import INDEX_DEFINITIONS, TableConfig
from drawstring.inspection.plan_report import PlanReport, SkippedGroup, SkippedSlice, TaskReport
from drawstring.inspection.problems import Problems
from drawstring.inspection.schema_diff import Node, nodes, schema_changes
from drawstring.inspection.table_report import (
    IndexReport,
    InstantReport,
    SchemaChange,
    SliceReport,
    TableReport,
)
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata
from drawstring.model.file_group import FileSlice
from drawstring.model.instant import WRITE_ACTIONS, Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.scan import Scan, SkipReport
from drawstring.schema.internal_schema import parse_internal_schema
from drawstring.schema.table_schema import table_schema_from_avro
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import are_settings_changed
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline

_METADATA_KINDS = {
    "files": "file listing",
    "column_stats": "column statistics",
    "partition_stats": "partition statistics",
    "record_index": "record index",
    "bloom_filters": "bloom filters",
}


def table_report(
    reader: TimelineReader,
    *,
    timeline: Timeline,
    slices: Iterable[FileSlice],
    older: Iterable[FileSlice] = (),
    as_of: str | None = None,
    check: Callable[[], object] = lambda: None,
) -> TableReport:
    """Report on the table behind `reader` as `timeline` and slices show it, now or `as_of` an instant.

    What is damaged is left out and told among the problems, with what `check` finds; the rest is shown.
    """
    config, problems = reader.config, Problems()
    problems.attempt(check, None)
    return TableReport(
        path=reader.storage.root,
        name=config.name,
        table_type=config.table_type,
        version=config.version,
        record_key=config.record_key_fields,
        partition_fields=config.partition_fields,
        ordering_fields=config.ordering_fields,
        merge_mode=config.merge.mode,
        instants=tuple(
            _instant_report(reader, instant, problems)
            for instant in timeline.ascending_instants
            if as_of is None or instant.requested_time <= as_of
        ),
        slices=problems.gather(map(SliceReport.of, slices)),
        older_slices=problems.gather(map(SliceReport.of, older)),
        schema_history=problems.gather(schema_history(reader, timeline, as_of, problems)),
        indexes=tuple(indexes(reader.storage, config)),
        settings_changed=problems.attempt(lambda: are_settings_changed(reader.storage), False),
        as_of=as_of,
        problems=tuple(problems.found),
    )


def schema_history(
    reader: TimelineReader, timeline: Timeline, as_of: str | None = None, problems: Problems | None = None
) -> Iterator[SchemaChange]:
    """How the schema changed, commit by commit, over the active timeline; before any commit, as created."""
    before: tuple[Node, ...] = ()
    created, problems = reader.config.create_schema, problems or Problems()
    if created and not timeline.completed_writes:
        yield SchemaChange("created", schema_changes(before, nodes(table_schema_from_avro(created))))
    for instant in timeline.writes_until(as_of):
        after = problems.attempt(partial(_instant_nodes, reader, instant), None)
        if after is None:
            continue
        changes = schema_changes(before, after)
        if changes:
            yield SchemaChange(instant.requested_time, changes)
        before = after


def indexes(storage: Storage, config: TableConfig) -> Iterator[IndexReport]:
    """The partitions of the metadata table, with what the index definitions say about them."""
    defined = _index_definitions(storage, config)
    for name in config.metadata_partitions:
        definition = defined.get(name, {})
        kind = _METADATA_KINDS.get(name) or str(definition.get("indexType") or "index").lower()
        yield IndexReport(name, kind, tuple(map(str, definition.get("sourceFields") or ())))


def _instant_report(reader: TimelineReader, instant: Instant, problems: Problems) -> InstantReport:
    identity = (instant.requested_time, instant.completion_time, instant.action.value, instant.state.value)
    if not instant.is_completed or instant.action not in WRITE_ACTIONS:
        return InstantReport(*identity)
    commit = problems.attempt(lambda: reader.commit_metadata(instant), CommitMetadata(operation=""))
    return InstantReport(
        *identity,
        operation=commit.operation,
        files=len(commit.stats),
        rows_written=sum(stat.num_writes for stat in commit.stats),
        rows_deleted=sum(stat.num_deletes for stat in commit.stats),
        bytes_written=sum(stat.file_size for stat in commit.stats),
        groups_replaced=sum(map(len, commit.replaced.values())),
    )


def _instant_nodes(reader: TimelineReader, instant: Instant) -> tuple[Node, ...] | None:
    commit = reader.commit_metadata(instant)
    if commit.operation in SERVICE_OPERATIONS:
        return None
    if commit.internal_schema:
        return nodes(parse_internal_schema(commit.internal_schema))
    return nodes(table_schema_from_avro(commit.schema)) if commit.schema else None


def _index_definitions(storage: Storage, config: TableConfig) -> dict[str, dict[str, Any]]:
    path = INDEX_DEFINITIONS.find(config.properties)
    try:
        parsed = json.loads(storage.read(path))
    except (FileNotFoundError, ValueError):
        return {}
    found = parsed.get("indexDefinitions") if isinstance(parsed, dict) else None
    return found if isinstance(found, dict) else {}


def plan_report(
    scan: Scan, *, path: str, where: str | None, instant: str | None, aggregate: Sequence[str] = ()
) -> PlanReport:
    """Plan a scan, of all rows or of what aggregates need, and report what it reads and skips."""
    started = time.perf_counter()
    plan = scan.plan_aggregate(*aggregate) if aggregate else scan.plan()
    seconds = time.perf_counter() - started
    return PlanReport(
        path=path,
        instant=instant,
        where=where,
        columns=tuple(plan.schema.names),
        tasks=tuple(_task_report(task) for task in plan.tasks),
        skipped=tuple(_skipped_groups(plan.skipped)),
        skipped_slices=tuple(
            SkippedSlice(found.group.partition_path, found.group.file_id, reason, found.size)
            for found, reason in plan.skipped.left_out
        ),
        bytes_skipped=plan.skipped.bytes_skipped,
        planning_seconds=seconds,
        notes=plan.notes,
    )


def _skipped_groups(skipped: SkipReport) -> Iterator[SkippedGroup]:
    for reason, count in sorted(skipped.reasons.items()):
        yield SkippedGroup(reason, count, sum(found.size for found, why in skipped.left_out if why == reason))


def _task_report(task: ReadTask) -> TaskReport:
    found = task.slice
    return TaskReport(
        partition=found.group.partition_path,
        file_id=found.group.file_id,
        kind=_kind(task),
        base_file=found.base_file.name if found.base_file else None,
        log_files=len(found.log_files),
        bytes=found.size,
        rows=task.row_count,
        base_instant=found.base_instant,
    )


def _kind(task: ReadTask) -> str:
    if task.slice.base_file is None:
        return "logs"
    return "merged" if task.needs_merge else "plain"
