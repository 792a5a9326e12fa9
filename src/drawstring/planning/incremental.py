"""Incremental reads: what a range of commits wrote."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from drawstring.config.read_options import FULL_SCAN_FALLBACK, PATH_GLOB, ReadOptions
from drawstring.errors import CorruptTable, InvalidInput
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.globs import compile_glob
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction, TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.view.file_system_view import visible_slices

_LOOKUPS = 16
_COMPACTIONS = frozenset({"COMPACT", "LOG_COMPACT"})
_CLUSTERING = frozenset({"CLUSTER"})
_OF_NEW_ROWS = frozenset({"INSERT", "UPSERT", "BULK_INSERT", "INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})
"""Operations whose new file groups hold nothing but rows that get the commit's time."""


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


def writes_in_range(
    state: TableState, begin: str, end: str | None = None
) -> tuple[tuple[Instant, CommitMetadata], ...]:
    """Completed writes after `begin`, up to and including `end`, by requested time, with what they say.

    Bounds are as in `IncrementalRead`. The archive is read when it may hold some of the range.
    """

    def covers(instant: Instant) -> bool:
        moment = instant.completion_time or instant.requested_time
        return moment > begin and (end is None or moment <= end)

    found = {i.requested_time: (i, state.metadata(i)) for i in state.timeline.completed_writes if covers(i)}
    if state.reaches_archive(begin):
        for archived in state.history.writes:
            if covers(archived.instant):
                found.setdefault(archived.instant.requested_time, (archived.instant, archived.metadata))
    return tuple(found[time] for time in sorted(found))


@dataclass(frozen=True)
class IncrementalRead:
    """Rows written by commits after `begin`, up to and including `end`.

    1. Bounds are completion times from version 8 on, instant times in version 6.
    2. Only files that these commits name are read, not merged with older ones: an update that loses against
       an older row is returned all the same. No directory is listed for that.
    3. When such files are gone (cleaned), the newest slices are read instead, with the same filter on rows,
       unless `options` forbid it. Rows that were written again after `end` are then missing, as in Hudi.
       Where nothing was ever cleaned, a file to be read that is gone was lost: an error.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    schema_at: str | None = None
    """The instant whose schema rows have, where it is neither the newest one nor that of `options`."""
    only: frozenset[FileGroupId] | None = None
    """The file groups to read, if not all."""

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
        end = self.commits.last if self.options.end_schema else None
        return TableSchemas(self.state, self.schema_at or end)

    @property
    def reads_newest(self) -> bool:
        """A range reads files that may since have been replaced."""
        return False

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        chosen = (self.options.path_glob, self.options.end_schema, self._skipped, self._may_fall_back)
        more = "" if chosen == (None, False, frozenset(), True) else f":{chosen}"
        return f"{self.state.fingerprint}:{self.begin}..{self.end or ''}{more}"

    @property
    def _skipped(self) -> frozenset[str]:
        """Operations whose files are left out."""
        compactions = _COMPACTIONS if self.options.skip_compactions else frozenset[str]()
        return compactions | (_CLUSTERING if self.options.skip_clustering else frozenset())

    @property
    def _may_fall_back(self) -> bool:
        return self.options.full_scan_fallback

    @cached_property
    def commits(self) -> CommitRange:
        """The writes of the range."""
        found = writes_in_range(self.state, self.begin, self.end)
        return CommitRange(tuple(write for write in found if write[1].operation not in self._skipped))

    def partitions(self) -> Iterable[str]:
        """Partitions that the commits touched."""
        return sorted(self._slices)

    def slices(self, partition: str) -> Iterable[FileSlice]:
        """Slices made of the files that the commits wrote."""
        return self._slices.get(partition, ())

    def tasks(self, partition: str) -> Sequence[ReadTask]:
        """The tasks that read the slices of one partition, keeping rows of the range only."""
        tasks = map(self._facts.task, self.slices(partition))
        return [replace(task, keep_commit_times=None) if self._is_new(task.slice) else task for task in tasks]

    def _is_new(self, found: FileSlice) -> bool:
        """Whether the range wrote every row of a slice, so that there is none to leave out."""
        return found.base_file is not None and not found.log_files and found.base_file.path in self._new_files

    @cached_property
    def _new_files(self) -> frozenset[str]:
        """The base files that commits of the range wrote into new file groups, of rows that were theirs alone."""
        # A commit of a merge-on-read table is a compaction, whatever operation it says.
        action = Action.DELTACOMMIT if self.state.config.is_merge_on_read else Action.COMMIT
        return frozenset(
            stat.path
            for instant, metadata in self.commits.writes
            if instant.action in (action, Action.REPLACECOMMIT) and metadata.operation in _OF_NEW_ROWS
            for stat in metadata.stats
            if stat.prev_commit in ("", "null") and not stat.num_updates and not stat.num_deletes
        )

    @cached_property
    def _facts(self) -> TaskFacts:
        last = None if self._looks_for_all_files and self.gone_files else self.commits.last
        return TaskFacts(self.state, self.schemas, last, self.commits.requested_times)

    @cached_property
    def _slices(self) -> Mapping[str, tuple[FileSlice, ...]]:
        found = self._written_slices()
        if not self.options.path_glob:
            return found
        pattern = compile_glob(f"*{self.options.path_glob}", key=PATH_GLOB.key)
        root = self.state.storage.root
        matching = {
            partition: tuple(s for s in slices if pattern.fullmatch(f"{root}/{_path_of(s)}"))
            for partition, slices in found.items()
        }
        return {partition: slices for partition, slices in matching.items() if slices}

    def _written_slices(self) -> Mapping[str, tuple[FileSlice, ...]]:
        if self.gone_files:
            view = self.state.view(None)
            return {partition: view.slices(partition) for partition in view.partitions()}
        return self._slices_in_range

    @cached_property
    def gone_files(self) -> frozenset[str]:
        """The files that the range wrote and that are gone, so that the newest slices have to be read."""
        slices = self._slices_in_range.values()
        to_be_read = {file.path for each in slices for found in each for file in found.files}
        gone = self._gone(self._written_paths if self._looks_for_all_files else list(to_be_read))
        if gone & to_be_read and not self._may_have_been_cleaned:
            raise self._lost(min(gone & to_be_read))
        if gone and not self._may_fall_back:
            raise self._cleaned(min(gone))
        return frozenset(gone)

    @property
    def _looks_for_all_files(self) -> bool:
        """Whether files count that are in no slice to be read: from version 8 on Hudi misses them too."""
        config = self.state.config
        return self._may_fall_back and config.is_merge_on_read and config.layout >= 2

    @property
    def _written_paths(self) -> list[str]:
        return [f"{folder}/{name}".lstrip("/") for folder, files in self._files.items() for name in files]

    @cached_property
    def _slices_in_range(self) -> Mapping[str, tuple[FileSlice, ...]]:
        visibility = self.state.visibility(self.commits.last)
        return {
            partition: visible_slices(partition, files.items(), visibility)
            for partition, files in self._files.items()
        }

    @cached_property
    def _files(self) -> dict[str, dict[str, int]]:
        """Names and sizes of the files that the range wrote, by partition."""
        written: dict[str, dict[str, int]] = defaultdict(dict)
        for _, metadata in self.commits.writes:
            for stat in metadata.stats:
                if self.only is not None and FileGroupId(stat.partition_path, stat.file_id) not in self.only:
                    continue
                files = written[stat.partition_path]
                # In version 6 this list names the older logs of the slice too.
                if self.state.config.layout >= 2:
                    for log in stat.log_files:
                        files.setdefault(log.rsplit("/", 1)[-1], 0)
                if stat.path:
                    files[stat.name] = stat.file_size
        return written

    def _gone(self, paths: Sequence[str]) -> set[str]:
        """The files that are gone: by the cleans on the timeline, or by looking at storage if those may not be all."""
        cleans = self.state.timeline.completed_cleans
        first = self.commits.writes[0][0].requested_time if self.commits.writes else ""
        if cleans and cleans[0].requested_time < first:
            later = [clean for clean in cleans if clean.requested_time > first]
            cleaned = {path for clean in later for path in self.state.reader.cleaned_files(clean)}
            return cleaned.intersection(paths)
        with ThreadPoolExecutor(_LOOKUPS) as pool:
            present = pool.map(self.state.storage.exists, paths)
            return {path for path, is_there in zip(paths, present, strict=True) if not is_there}

    @property
    def _may_have_been_cleaned(self) -> bool:
        """Whether a clean is on the timeline, or may have been archived."""
        return bool(self.state.timeline.completed_cleans or self.state.history.writes)

    def _lost(self, path: str) -> CorruptTable:
        return CorruptTable(
            f"The file {path}, which a commit of the range wrote, is missing from {self.state.storage.root}, and no "
            "cleaner has run. Restore it from a copy, or restore the table to a savepoint.",
            condition="FILE_MISSING",
            path=path,
            partition=path.rpartition("/")[0],
        )

    def _cleaned(self, path: str) -> InvalidInput:
        return InvalidInput(
            f"The file {path}, which a commit of the range wrote, is no longer in "
            f"{self.state.storage.root}: it was cleaned. Begin later, or set {FULL_SCAN_FALLBACK.key}=true to read "
            "the newest files instead.",
            condition="RANGE_WAS_CLEANED",
            path=path,
            partition=path.rpartition("/")[0],
        )


def _path_of(found: FileSlice) -> str:
    """The path that a pattern is compared with: the base file's, else that of the newest log."""
    return found.base_file.path if found.base_file is not None else found.log_files[-1].path
