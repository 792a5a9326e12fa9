"""Snapshots: the pinned state of a table, and the entry point to scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from drawstring.config.read_options import READ_OPTIMIZED
from drawstring.config.support import found_in_files
from drawstring.model.file_group import FileSlice
from drawstring.model.instant import Instant
from drawstring.model.read_task import ColumnMapping, ReadTask
from drawstring.planning.integrity import check_files_present
from drawstring.planning.scan import Scan
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.view.partitions import shown_values

METADATA_BOOTSTRAP = "00000000000001"
"""The instant of every metadata-only bootstrap."""

ReadFunction = Callable[..., Iterator[pa.RecordBatch]]
"""Reads one task: `read(task, storage=…, table_schema=…, columns=…, predicate=…)`."""


@dataclass(frozen=True)
class Snapshot:
    """The table as of one instant.

    1. The timeline is pinned: commits after the snapshot was taken are not seen.
    2. `max_instant` is None for the newest state, else the newest requested time that is seen.
    3. `query_type` is `snapshot` (logs are merged) or `read_optimized` (base files only).
    """

    state: TableState
    read: ReadFunction
    max_instant: str | None = None
    query_type: str = "snapshot"

    def scan(self) -> Scan:
        """Start a scan of all columns and rows, to be refined."""
        return Scan(self)

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's schema at this snapshot, meta columns first."""
        return self.schemas.table_schema

    @cached_property
    def schemas(self) -> TableSchemas:
        """The schemas that files of this snapshot may have."""
        known = self.state.known_schemas
        if self.max_instant not in known:
            known[self.max_instant] = TableSchemas(self.state, self.max_instant)
        found: TableSchemas = known[self.max_instant]
        return found

    @property
    def reads_newest(self) -> bool:
        """Whether this is the newest state, logs merged."""
        return self.max_instant is None and self.query_type != READ_OPTIMIZED

    @property
    def snapshot_id(self) -> str:
        """An id of what is read: equal ids mean equal rows."""
        return f"{self.state.fingerprint}:{self.max_instant or ''}:{self.query_type}"

    @property
    def latest_instant(self) -> Instant | None:
        """The newest write that the snapshot includes."""
        writes = self.state.timeline.writes_until(self.max_instant)
        return writes[-1] if writes else None

    def partitions(self) -> Iterable[str]:
        """All partition paths. Raises `CorruptTable` when a file that must be seen is gone."""
        if self.max_instant not in self.state.verified:
            check_files_present(self.state, self.max_instant)
            self.state.verified.add(self.max_instant)
        return self.state.view(self.max_instant).partitions()

    def slices(self, partition: str) -> Iterable[FileSlice]:
        """The slices to read of one partition."""
        found = self.state.view(self.max_instant).slices(partition)
        return base_files_only(found) if self.query_type == READ_OPTIMIZED else found

    def all_slices(self) -> Iterator[FileSlice]:
        """The slices of all partitions as listed, without checking that no file is missing."""
        for partition in self.state.view(self.max_instant).partitions():
            yield from self.slices(partition)

    def older_slices(self) -> Iterator[FileSlice]:
        """Older slices that have not been cleaned yet."""
        view = self.state.view(self.max_instant)
        for partition in view.partitions():
            yield from view.older_slices(partition)

    def tasks(self, partition: str) -> Sequence[ReadTask]:
        """The slices of one partition with everything a reader needs beside the files."""
        if partition not in self._known_tasks:
            self._known_tasks[partition] = tuple(map(self._facts.task, self.slices(partition)))
        return self._known_tasks[partition]

    @cached_property
    def _known_tasks(self) -> dict[str, tuple[ReadTask, ...]]:
        return self.state.known_tasks(self.max_instant, self.query_type)

    @cached_property
    def _facts(self) -> TaskFacts:
        return TaskFacts(self.state, self.schemas, self.max_instant)


def base_files_only(slices: Iterable[FileSlice]) -> Iterator[FileSlice]:
    """The slices without their logs; slices without a base file are left out."""
    return (
        FileSlice(found.group, found.base_instant, found.base_file)
        for found in slices
        if found.base_file is not None
    )


@dataclass(frozen=True)
class TaskFacts:
    """What the tasks of one read have in common, and how a slice becomes a task."""

    state: TableState
    schemas: TableSchemas
    max_instant: str | None = None
    keep_commit_times: frozenset[str] | None = None

    def task(self, found: FileSlice) -> ReadTask:
        """The task that reads a slice."""
        refuse_skeleton(found)
        _refuse_other_formats(found)
        config = self.state.config
        has_logs = bool(found.log_files)
        filters_blocks = has_logs and (config.layout < 2 or config.was_upgraded_from_v6)
        return ReadTask(
            slice=found,
            merge=config.merge if has_logs else None,
            keys=config.keys,
            valid_instants=self._valid_instants if filters_blocks else None,
            valid_before=self.state.timeline.start if filters_blocks else None,
            max_instant=self.max_instant if has_logs else None,
            keep_commit_times=self.keep_commit_times,
            partition_values=self._partition_values(found.group.partition_path),
            mappings=self._mappings(found),
            file_schema_known_equal=self._is_known_equal(found),
            row_count=self._row_count(found),
        )

    @cached_property
    def _valid_instants(self) -> frozenset[str]:
        return frozenset(self.state.timeline.by_requested_time)

    def _partition_values(self, partition: str) -> Mapping[str, Any]:
        if partition not in self._known_values:
            types = self.state.partition_types(self.schemas.table_schema)
            self._known_values[partition] = shown_values(self.state.config, partition, types)
        return self._known_values[partition]

    @cached_property
    def _known_values(self) -> dict[str, Mapping[str, Any]]:
        return {}

    def _mappings(self, found: FileSlice) -> Mapping[str, tuple[ColumnMapping, ...]]:
        if self.schemas.history is None:
            return {}
        pairs = [(log.path, log.instant) for log in found.log_files]
        if found.base_file is not None:
            pairs.append((found.base_file.path, found.base_file.instant))
        mappings = {path: self._mapping(instant) for path, instant in pairs}
        if self.state.config.layout < 2 or self.state.config.was_upgraded_from_v6:
            # Logs named by their base instant hold blocks of several schemas; an empty mapping goes by name.
            for log in found.log_files:
                mappings.update({f"{log.path}@{i}": self._mapping(i) or () for i in self._valid_instants})
        return {key: mapping for key, mapping in mappings.items() if mapping is not None}

    def _mapping(self, instant: str) -> tuple[ColumnMapping, ...] | None:
        history, internal = self.schemas.history, self.schemas.internal_schema
        if history is None or internal is None:
            return None
        if instant not in self._known_mappings:
            self._known_mappings[instant] = history.mappings_from(instant, to=internal)
        return self._known_mappings[instant]

    @cached_property
    def _known_mappings(self) -> dict[str, tuple[ColumnMapping, ...] | None]:
        return {}

    def _is_known_equal(self, found: FileSlice) -> bool:
        base = found.base_file
        if base is None or self._mapping(base.instant) is not None:
            return False
        if base.instant not in self._known_equal:
            self._known_equal[base.instant] = self.schemas.matches(base.instant)
        return self._known_equal[base.instant]

    @cached_property
    def _known_equal(self) -> dict[str, bool]:
        return {}

    def _row_count(self, found: FileSlice) -> int | None:
        if found.log_files or found.base_file is None or self.keep_commit_times is not None:
            return None
        return self._rows_written(found.base_file.instant).get(found.base_file.path)

    def _rows_written(self, instant: str) -> Mapping[str, int]:
        if instant not in self._row_counts:
            completed = self.state.timeline.by_requested_time.get(instant)
            stats = self.state.metadata(completed).stats if completed else ()
            self._row_counts[instant] = {stat.path: stat.num_writes for stat in stats}
        return self._row_counts[instant]

    @cached_property
    def _row_counts(self) -> dict[str, Mapping[str, int]]:
        return {}


def _refuse_other_formats(found: FileSlice) -> None:
    """Refuse base files of other formats: a table may mix them, and its properties name only one."""
    base = found.base_file
    if base is not None and base.extension != "parquet":
        raise found_in_files(
            "BASE_FILE_FORMAT_NOT_SUPPORTED",
            path=base.path,
            partition=found.group.partition_path,
            instant=base.instant,
            found=base.extension.upper(),
        )


def refuse_skeletons(state: TableState) -> None:
    """Raise `UnsupportedTable` while rows of the newest state lie outside the table."""
    for found in Snapshot(state, read=_nothing).all_slices():
        refuse_skeleton(found)


def _nothing(*_: Any, **__: Any) -> Iterator[pa.RecordBatch]:
    return iter(())


def refuse_skeleton(found: FileSlice) -> None:
    """Refuse files of a metadata-only bootstrap: they hold only meta columns, and the rows are outside the table."""
    base = found.base_file
    if base is not None and base.instant == METADATA_BOOTSTRAP:
        raise found_in_files(
            "BOOTSTRAPPED_TABLE_NOT_SUPPORTED",
            path=base.path,
            partition=found.group.partition_path,
            instant=base.instant,
        )
