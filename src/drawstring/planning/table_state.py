"""The state of a table for one read: settings, timeline, and what both say about files."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from drawstring.config.read_options import ReadOptions
from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Action, Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.slice_statistics import KeptFacts
from drawstring.storage.base import Storage
from drawstring.timeline.history import History
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline
from drawstring.view.column_stats import ColumnStats
from drawstring.view.file_system_view import FileSystemView, Visibility
from drawstring.view.listing import FileListing, StorageListing
from drawstring.view.metadata_table import MetadataTable, open_metadata_table

_CACHED_STATES = 8
_CACHED_VIEWS = 8
_states: OrderedDict[tuple[Any, ...], TableState] = OrderedDict()
_lock = threading.Lock()


def pin(
    storage: Storage, config: TableConfig, options: ReadOptions, *, timeline: Timeline | None = None
) -> TableState:
    """Load the timeline, unless an earlier one is given, and return the table's state.

    Files become visible or disappear only with instants, so a state whose timeline has not changed is used again: its
    listings are still valid.
    """
    timeline = TimelineReader(storage, config).load() if timeline is None else timeline
    settings = tuple(sorted(config.properties.items()))
    switches = (options.use_metadata_table, options.data_skipping)
    key = (type(storage), storage.root, timeline.fingerprint, settings, switches)
    with _lock:
        known = _states.pop(key, None)
        if known is None or known.has_lost_statistics:
            known = TableState(storage, config, timeline, *switches)
        _states[key] = known
        while len(_states) > _CACHED_STATES:
            _states.popitem(last=False)
    return known


@dataclass(frozen=True)
class TableState:
    """One consistent state of a table: everything a read needs is derived from it and cached.

    Invariant: `timeline` is what the timeline was when the state was taken; later commits are not seen.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    use_metadata_table: bool = True
    data_skipping: bool = True

    @cached_property
    def fingerprint(self) -> str:
        """A digest of everything that rows and plans derive from: the timeline, the table's properties with what
        the read adds to them, and the switches.
        """
        settings = (sorted(self.config.properties.items()), self.use_metadata_table, self.data_skipping)
        return f"{self.timeline.fingerprint}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:8]}"

    @cached_property
    def reader(self) -> TimelineReader:
        """Reads what instants say."""
        return TimelineReader(self.storage, self.config)

    @cached_property
    def history(self) -> History:
        """Archived instants, read when first asked."""
        return History(self.storage, self.config)

    @cached_property
    def metadata_table(self) -> MetadataTable | None:
        """The metadata table, if reads may use it and it is in step with the timeline."""
        if not self.use_metadata_table:
            return None
        return open_metadata_table(self.storage, self.config, self.timeline)

    @cached_property
    def column_stats(self) -> ColumnStats | None:
        """The statistics of columns that the metadata table keeps."""
        return ColumnStats.of(self.metadata_table)

    @property
    def has_lost_statistics(self) -> bool:
        """Whether statistics turned out to be gone: rebuilding the metadata table changes no instant of the table."""
        known: ColumnStats | None = self.__dict__.get("column_stats")
        return known is not None and known.is_gone

    @cached_property
    def listing(self) -> FileListing:
        """Where files are found: in the metadata table, or in the directories."""
        return self.metadata_table or StorageListing(self.storage, self.config)

    def view(self, max_instant: str | None) -> FileSystemView:
        """The slices seen at a point in time, or now."""
        views = self._views
        if max_instant not in views:
            views[max_instant] = FileSystemView(self.listing, self.visibility(max_instant))
            if len(views) > _CACHED_VIEWS:
                del views[next(iter(views))]
        return views[max_instant]

    def visibility(self, max_instant: str | None) -> Visibility:
        """What decides which files are seen at a point in time."""
        return replace(self._visibility, max_instant=max_instant)

    def metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write of the active timeline says, also when it was archived since that was listed."""
        try:
            return self.reader.commit_metadata(instant)
        except CorruptTable as error:
            if error.condition != "INSTANT_MISSING":
                raise
            # The history that this state knows may be older than the archival.
            archived = History(self.storage, self.config).find(instant)
            if archived is None:
                raise
            return archived.metadata

    def writes_descending(self, max_instant: str | None) -> Iterator[tuple[Instant, CommitMetadata]]:
        """Writes until a point in time, or all of the active timeline, newest first, with what they say.

        The archive is read when the point lies before the active timeline.
        """
        for instant in reversed(self.timeline.writes_until(max_instant)):
            yield instant, self.metadata(instant)
        start = self.timeline.start
        if max_instant is not None and (start is None or max_instant < start):
            for write in reversed(self.history.writes):
                if write.instant.requested_time <= max_instant:
                    yield write.instant, write.metadata

    def reaches_archive(self, begin: str) -> bool:
        """Whether writes after a time may be archived: those that began before the active ones may complete later."""
        start = self.timeline.start
        return start is None or begin < start or begin < self.history.newest_completion

    def known_tasks(self, max_instant: str | None, query_type: str) -> dict[str, tuple[ReadTask, ...]]:
        """Tasks made so far at a read point, by partition, to be added to."""
        known = self._tasks.setdefault((max_instant, query_type), {})
        if len(self._tasks) > _CACHED_VIEWS:
            del self._tasks[next(iter(self._tasks))]
        return known

    @cached_property
    def _tasks(self) -> dict[tuple[str | None, str], dict[str, tuple[ReadTask, ...]]]:
        return {}

    @cached_property
    def known_facts(self) -> KeptFacts:
        """What was found out of slices and their columns."""
        return KeptFacts()

    @cached_property
    def known_file_schemas(self) -> dict[str, pa.Schema | None]:
        """Schemas of base files, by what tells them apart; None for files that cannot be read."""
        return {}

    @cached_property
    def verified(self) -> set[str | None]:
        """The read points whose files were looked for."""
        return set()

    @cached_property
    def known_schemas(self) -> dict[str | None, Any]:
        """Schemas resolved so far, by read point."""
        return {}

    @cached_property
    def known_key_places(self) -> list[Any]:
        """Where the record index says that keys are, or why it proves nothing; empty until that was asked."""
        return []

    @cached_property
    def _views(self) -> dict[str | None, FileSystemView]:
        return {}

    @cached_property
    def _visibility(self) -> Visibility:
        return Visibility(
            timeline=self.timeline,
            by_completion=self.config.layout >= 2,
            has_base_named_logs=self.config.was_upgraded_from_v6,
            compactions=self._compactions(),
            replaced=self._replaced(),
            archived_completion=lambda instant: self.history.completion_times.get(instant),
            committed_name=self._committed_name,
        )

    def _compactions(self) -> dict[FileGroupId, str]:
        return {
            FileGroupId(operation.partition_path, operation.file_id): instant.requested_time
            for instant in self.timeline.pending_compactions
            for operation in self.reader.compaction_plan(instant)
        }

    def _replaced(self) -> dict[FileGroupId, str]:
        replaced: dict[FileGroupId, str] = {}
        for instant in self.timeline.completed_writes:
            if instant.action is Action.REPLACECOMMIT:
                for partition, file_ids in self.metadata(instant).replaced.items():
                    replaced.update(
                        {FileGroupId(partition, file_id): instant.requested_time for file_id in file_ids}
                    )
        return replaced

    def _committed_name(self, instant: str, file_id: str) -> str | None:
        completed = self.timeline.by_requested_time.get(instant)
        if completed is None:
            return None
        stats = self.metadata(completed).stats
        return next((s.name for s in stats if s.file_id == file_id and not s.name.startswith(".")), None)

    def partition_types(self, schema: pa.Schema) -> Mapping[str, pa.DataType]:
        """Types of the partition columns."""
        by_name = {field.name: field.type for field in schema}
        return {name: by_name[name] for name in self.config.partition_fields if name in by_name}
