"""Reads timelines from storage, and caches the contents of instants."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drawstring.config.table_config import TIMELINE_PATH, TableConfig
from drawstring.errors import CorruptTable
from drawstring.model.commit_metadata import CleanRecord, CommitMetadata, CompactionOperation, PlannedClean
from drawstring.model.instant import Action, Instant
from drawstring.storage.base import FileInfo, Storage
from drawstring.timeline import layout_v1, layout_v2
from drawstring.timeline.commit_metadata import (
    parse_clean_plan,
    parse_clean_record,
    parse_cleaned_files,
    parse_clustering_groups,
    parse_commit_metadata,
    parse_compaction_plan,
    parse_record,
    parse_savepointed_files,
)
from drawstring.timeline.folders import entries, listed
from drawstring.timeline.timeline import Timeline

_CACHED_STATS = 300_000
"""How many write stats are kept in memory, over all tables."""
_commits: OrderedDict[tuple[str, str, str], CommitMetadata] = OrderedDict()
_lock = threading.Lock()


_cached_stats = 0
"""Write stats in `_commits`, and one for each commit."""


def _remember(key: tuple[str, str, str], metadata: CommitMetadata) -> None:
    global _cached_stats
    with _lock:
        if key not in _commits:
            _commits[key] = metadata
            _cached_stats += len(metadata.stats) + 1
        while _cached_stats > _CACHED_STATS and len(_commits) > 1:
            _cached_stats -= len(_commits.popitem(last=False)[1].stats) + 1


@dataclass(frozen=True)
class TimelineReader:
    """Reads the active timeline of one table and what its instants say."""

    storage: Storage
    config: TableConfig
    _plans: dict[str, tuple[CompactionOperation, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def load(self, *, completed_until: str | None = None) -> Timeline:
        """List the timeline as it is now; with a time, what completed after it counts as pending still."""
        found = self.instants()
        if completed_until is None:
            return Timeline.of(found)
        return Timeline.of(i for i in found if (i.completion_time or "") <= completed_until)

    def instants(self) -> Iterable[Instant]:
        """Each file of the timeline as the instant it stands for: several for one that has advanced."""
        if self.config.layout >= 2:
            return self._instants_by_name()
        found = (layout_v1.parse_instant(entry) for entry in self._entries() if not entry.is_directory)
        return (instant for instant in found if instant is not None)

    def _instants_by_name(self) -> Iterator[Instant]:
        """Names say nearly all: only what was carried over from layout 1 is looked at."""
        for instant in filter(None, map(layout_v2.parse_name, self._names())):
            if instant.completion_time is None and layout_v2.needs_modification_time(instant):
                entry = self.storage.stat(f"{self.config.timeline_directory}/{instant.file_name}")
                yield layout_v2.parse_instant(entry, timezone=self.config.timezone) or instant
            else:
                yield instant

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write says; completed files never change, so they are kept in memory."""
        path = f"{self.config.timeline_directory}/{instant.file_name}"
        key = (self.storage.root, path, instant.completion_time or "")
        with _lock:
            known = _commits.get(key)
        if known is None:
            content = self._read(path, instant)
            self._refuse_empty(content, path, instant)
            known = parse_commit_metadata(content, source=path)
            _remember(key, known)
        return known

    def compaction_plan(self, instant: Instant) -> tuple[CompactionOperation, ...]:
        """The file groups of a pending compaction."""
        time = instant.requested_time
        if time not in self._plans:
            path = f"{self.config.timeline_directory}/{time}.{instant.action.value}.requested"
            self._plans[time] = parse_compaction_plan(self._read(path, instant), source=path)
        return self._plans[time]

    def clustering_groups(self, instant: Instant) -> tuple[tuple[str, str], ...]:
        """Partition path and file id of the groups of a pending clustering."""
        path = f"{self.config.timeline_directory}/{instant.requested_time}.{instant.action.value}.requested"
        return parse_clustering_groups(self._read(path, instant), source=path)

    def rollback_target(self, instant: Instant) -> str | None:
        """The instant that a rollback is to undo."""
        path = f"{self.config.timeline_directory}/{instant.requested_time}.{Action.ROLLBACK.value}.requested"
        record = parse_record(self._read(path, instant), source=path) or {}
        return (record.get("instantToRollback") or {}).get("commitTime")

    def cleaned_files(self, instant: Instant) -> frozenset[str]:
        """The files that a completed clean deleted, by their paths below the table."""
        path = f"{self.config.timeline_directory}/{instant.file_name}"
        return parse_cleaned_files(self._read(path, instant), source=path)

    def clean_plan(self, instant: Instant) -> PlannedClean:
        """What a pending clean is to delete."""
        path = f"{self.config.timeline_directory}/{instant.requested_time}.{Action.CLEAN.value}.requested"
        return parse_clean_plan(self._read(path, instant), source=path)

    def clean_record(self, instant: Instant) -> CleanRecord:
        """What a completed clean says to the next one."""
        path = f"{self.config.timeline_directory}/{instant.file_name}"
        return parse_clean_record(self._read(path, instant), source=path)

    def savepointed_files(self, instant: Instant) -> dict[str, tuple[str, ...]]:
        """Names of the files that a savepoint keeps, by partition path."""
        path = f"{self.config.timeline_directory}/{instant.file_name}"
        return parse_savepointed_files(self._read(path, instant), source=path)

    def _read(self, path: str, instant: Instant) -> bytes:
        try:
            return self.storage.read(path)
        except FileNotFoundError as error:
            raise CorruptTable(
                f"The timeline of {self.storage.root} has the {instant.state.value} {instant.action.value} "
                f"{instant.requested_time}, but its file {path} is missing. It may have been archived a moment ago: "
                "open the table again; otherwise restore the file.",
                condition="INSTANT_MISSING",
                path=path,
                instant=instant.requested_time,
            ) from error

    def _entries(self) -> Iterable[FileInfo]:
        folder = self.config.timeline_directory
        return entries(self.storage, folder, usual=".hoodie/timeline", setting=TIMELINE_PATH.key)

    def _names(self) -> list[str]:
        folder, storage = self.config.timeline_directory, self.storage
        usual, setting = ".hoodie/timeline", TIMELINE_PATH.key
        return listed(lambda: storage.list_names(folder), storage, folder, usual=usual, setting=setting)

    def _refuse_empty(self, content: bytes, path: str, instant: Instant) -> None:
        """A completed write says what it wrote and replaced; one that says nothing would bring replaced rows back."""
        if content or self.config.layout < 2:
            return
        raise CorruptTable(
            f"The completed {instant.action.value} {instant.requested_time} of {self.storage.root} is empty: "
            f"{path} has 0 bytes, expected the commit's metadata. It was damaged after it was published; "
            "restore the file from a copy.",
            condition="EMPTY_INSTANT",
            path=path,
            instant=instant.requested_time,
        )
