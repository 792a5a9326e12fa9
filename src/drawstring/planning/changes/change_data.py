"""The change data of a range of commits as Hudi's readers return it: op, ts_ms, before, after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa

from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.instant import Instant
from drawstring.model.read_task import ChangeSpec, ImageSpec, ReadTask
from drawstring.planning.changes.changelog import Changelog
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_state import TableState
from drawstring.planning.tasks_by_partition import TasksByPartition
from drawstring.schema.change_images import BEFORE_ONLY, BOTH
from drawstring.schema.change_images import CHANGE_DATA as SCHEMA
from drawstring.schema.row_kinds import ROW_KIND


@dataclass(frozen=True)
class ChangeData(TasksByPartition):
    """What the commits after `begin`, up to and including `end`, changed.

    1. `op` is `i`, `u` or `d`, `ts_ms` the commit's instant, `before` and `after` are rows as JSON.
    2. Images that change files hold come as they are, without meta columns; an absent one is the text `null`. Images
       taken from data files have the meta columns, and an absent one is null.
    3. Table services change nothing. A replaced file group is deleted row by row.

    A scan of it reads every file group of every commit, in any order. Invariant: nothing is pushed down; no column of
    it is one of the table's.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None
    schema_at: str | None = None
    skips_cleaned: bool = False
    only: frozenset[FileGroupId] | None = None
    """Both as in `Changelog`."""

    @property
    def schema(self) -> pa.Schema:
        """Four columns of text."""
        return SCHEMA

    def scan(self) -> Scan:
        """Start a scan of everything, to be refined."""
        return Scan(self)

    @property
    def reads_newest(self) -> bool:
        """Changes are read from slices of the past."""
        return False

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        return f"{self.state.timeline.fingerprint}:cdc:{self.begin}..{self.end or ''}"

    def to_arrow(self) -> pa.Table:
        """Read everything into one table."""
        return pa.Table.from_batches(self.to_batches(), schema=SCHEMA)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read, one file group of one commit at a time."""
        for task in self._ordered:
            yield from self.read(
                task, storage=self.state.storage, table_schema=SCHEMA, columns=SCHEMA.names, predicate=None
            )

    def _made(self) -> Sequence[ReadTask]:
        return self._ordered

    @cached_property
    def _ordered(self) -> list[ReadTask]:
        found = []
        for instant, metadata in self._changelog.writes:
            stats = {FileGroupId(stat.partition_path, stat.file_id): stat for stat in metadata.stats}
            for group in self._changelog.groups_of(metadata):
                task = self._changelog.or_skipped(partial(self._task, group, instant, stats.get(group)))
                found += [task] if task is not None else []
        return found

    @property
    def cleaned(self) -> list[str]:
        """Files that were gone when tasks were made."""
        return self._changelog.cleaned

    @cached_property
    def _changelog(self) -> Changelog:
        return Changelog(
            self.state,
            self.read,
            self.begin,
            self.end,
            schema_at=self.schema_at,
            skips_cleaned=self.skips_cleaned,
            only=self.only,
        )

    @cached_property
    def _mode(self) -> str:
        return self.state.config.cdc_logging_mode

    @cached_property
    def _row_schema(self) -> bytes:
        shown = pa.schema([field for field in self._changelog.schema if field.name != ROW_KIND])
        return bytes(shown.serialize().to_pybytes())

    def _task(self, group: FileGroupId, instant: Instant, stat: WriteStat | None) -> ReadTask | None:
        files = stat.cdc_files if stat is not None else ()
        images = ImageSpec(self._mode, instant.requested_time, files, self._row_schema)
        if stat is not None and files and self._mode == BOTH:
            # The change files say everything: data files may have been cleaned.
            return ReadTask(_slice_of(group, stat), change=ChangeSpec(images=images))
        if files and self._mode == BEFORE_ONLY:
            after = self._changelog.after(group, instant)
            return after and ReadTask(after.slice, change=ChangeSpec(after=(after,), images=images))
        task = self._changelog.comparison(group, instant)
        change = task.change if task is not None else None
        if task is None or change is None:
            return None
        return ReadTask(task.slice, change=replace(change, images=images))


def _slice_of(group: FileGroupId, stat: WriteStat) -> FileSlice:
    """The slice that a commit wrote, by what it says alone."""
    if stat.name.startswith("."):
        log = parse_log_file(group.partition_path, stat.name, stat.file_size)
        return FileSlice(group, log.instant if log else "", None, (log,) if log else ())
    base = parse_base_file(group.partition_path, stat.name, stat.file_size)
    return FileSlice(group, base.instant if base else "", base)
