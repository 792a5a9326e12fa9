"""Incremental reads: what a range of commits wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileSlice
from drawstring.model.instant import Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction, TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.view.file_system_view import visible_slices


@dataclass(frozen=True)
class CommitRange:
    """The writes of a range, by requested time, with what they say."""

    writes: tuple[tuple[Instant, CommitMetadata], ...]

    @property
    def requested_times(self) -> frozenset[str]:
        """The commit times that rows of the range carry."""
        return frozenset(instant.requested_time for instant, _ in self.writes)

    @property
    def last(self) -> str | None:
        """The newest requested time of the range."""
        return self.writes[-1][0].requested_time if self.writes else None


@dataclass(frozen=True)
class IncrementalRead:
    """Rows written by commits after `begin`, up to and including `end`.

    1. Bounds are completion times from version 8 on, instant times in version 6.
    2. Only files that these commits name are read, not merged with older ones: an update that loses against
       an older row is returned all the same.
    3. When such files are gone (cleaned), the newest slices are read instead, with the same filter on rows.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None

    def scan(self) -> Scan:
        """Start a scan of all columns and rows, to be refined."""
        return Scan(self)

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's newest schema."""
        return self.schemas.table_schema

    @cached_property
    def schemas(self) -> TableSchemas:
        """The schemas that files may have."""
        return TableSchemas(self.state, None)

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        return f"{self.state.timeline.fingerprint}:{self.begin}..{self.end or ''}"

    @cached_property
    def commits(self) -> CommitRange:
        """The writes of the range; the archive is read when the range reaches before the active timeline."""
        active = self.state.timeline.completed_writes
        found = {i.requested_time: (i, self.state.metadata(i)) for i in active if self._covers(i)}
        if not active or self.begin < active[0].requested_time:
            for archived in self.state.history.writes:
                if self._covers(archived.instant):
                    found.setdefault(archived.instant.requested_time, (archived.instant, archived.metadata))
        return CommitRange(tuple(found[time] for time in sorted(found)))

    def _covers(self, instant: Instant) -> bool:
        moment = instant.completion_time or instant.requested_time
        return moment > self.begin and (self.end is None or moment <= self.end)

    def partitions(self) -> Iterable[str]:
        """Partitions that the commits touched."""
        return sorted(self._slices)

    def slices(self, partition: str) -> Iterable[FileSlice]:
        """Slices made of the files that the commits wrote."""
        return self._slices.get(partition, ())

    def tasks(self, partition: str) -> Sequence[ReadTask]:
        """The tasks that read the slices of one partition, keeping rows of the range only."""
        return [self._facts.task(found) for found in self.slices(partition)]

    @cached_property
    def _facts(self) -> TaskFacts:
        return TaskFacts(self.state, self.schemas, self.commits.last, self.commits.requested_times)

    @cached_property
    def _slices(self) -> Mapping[str, tuple[FileSlice, ...]]:
        if not self.commits.writes:
            return {}
        written = self._written_files()
        found = {p: self._written_slices(p, names) for p, names in written.items()}
        return self._newest_slices(found) if self._has_gaps(found) else found

    def _written_files(self) -> dict[str, dict[str, int]]:
        """Names and sizes of the files that the range wrote, by partition."""
        files: dict[str, dict[str, int]] = defaultdict(dict)
        for _, metadata in self.commits.writes:
            for stat in metadata.stats:
                if stat.path:
                    files[stat.partition_path][stat.name] = stat.file_size
                for log in stat.log_files:
                    files[stat.partition_path].setdefault(log.rsplit("/", 1)[-1], 0)
        return files

    def _written_slices(self, partition: str, names: Mapping[str, int]) -> tuple[FileSlice, ...]:
        visibility = self.state.visibility(self.commits.last)
        return visible_slices(partition, names.items(), visibility)

    def _has_gaps(self, found: Mapping[str, tuple[FileSlice, ...]]) -> bool:
        return any(
            not self.state.storage.exists(file.path)
            for slices in found.values()
            for part in slices
            for file in ([part.base_file] if part.base_file else []) + list(part.log_files)
        )

    def _newest_slices(
        self, found: Mapping[str, tuple[FileSlice, ...]]
    ) -> Mapping[str, tuple[FileSlice, ...]]:
        view = self.state.view(None)
        return {partition: view.slices(partition) for partition in view.partitions()}
