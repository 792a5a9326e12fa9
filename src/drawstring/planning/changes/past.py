"""File groups as they were when no later instant had completed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.instant import Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.changes.groups import touched_groups
from drawstring.planning.incremental import writes_in_range
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.timeline.timeline import Timeline
from drawstring.view.file_system_view import visible_slices

BEFORE_ALL = "0"
NOW = "9"
"""Stands after every instant."""


@dataclass(frozen=True)
class PastTimeline(Timeline):
    """The timeline when no instant after `until` had completed, or none from then on.

    Archived instants count by when they completed.
    """

    until: str = ""
    inclusive: bool = True
    whole_start: str | None = None
    archived: Mapping[str, str] | None = None

    @property
    def start(self) -> str | None:
        """Where the active timeline begins today: what is older was archived, not absent."""
        return self.whole_start

    def is_committed(self, requested_time: str) -> bool:
        """Whether files of this instant were visible."""
        if not super().is_committed(requested_time):
            return False
        if self.archived is None or requested_time in self.by_requested_time:
            return True
        return _is_by(self.archived.get(requested_time, BEFORE_ALL), self.until, self.inclusive)

    def completion_time(self, requested_time: str) -> str | None:
        """When a write completed."""
        found = super().completion_time(requested_time)
        return found or (self.archived or {}).get(requested_time)


@dataclass(frozen=True)
class PastSlices:
    """Slices of file groups at points of the past.

    `state` is the table now, `instants` every file of its timeline: those of instants that have completed since, too,
    because a compaction that ran later was pending then. With `with_archive` the points reach before the active
    timeline.
    """

    state: TableState
    instants: tuple[Instant, ...]
    schemas: TableSchemas
    with_archive: bool = False

    @classmethod
    def at(cls, state: TableState, schemas: TableSchemas, time: str) -> PastSlices:
        """For a sight of the past at one time; what completed since may have been archived."""
        instants = tuple(state.reader.instants())
        return cls(state, instants, schemas, with_archive=state.reaches_archive(time))

    def task(self, group: FileGroupId, *, until: str, inclusive: bool) -> ReadTask | None:
        """Reads a group as it was after everything had completed up to `until`, or before it; None for no rows.

        Raises `InvalidInput` when files are gone that the slice was made of.
        """
        then, found = self._sight(group, until, inclusive)
        if found is None:
            return None
        self._check(group, found, until)
        return TaskFacts(then, self.schemas).task(found)

    def slices(self, *, until: str) -> list[FileSlice]:
        """All slices as of `until`, by partition and file id, whether or not their files are there.

        The answer stays the same whatever is cleaned and archived later.
        """
        found = (self._sight(group, until, True)[1] for group in self._groups())
        return [each for each in found if each is not None]

    def _groups(self) -> list[FileGroupId]:
        """Every file group that is known by its files, or by commits that wrote to it or replaced it."""
        named = {group for _, metadata in self._known_writes for group in touched_groups(metadata)}
        for partition in self.state.listing.partitions():
            named.update(FileGroupId(partition, file_id) for file_id in self._files_by_id(partition))
        return sorted(named, key=lambda group: (group.partition_path, group.file_id))

    def _sight(self, group: FileGroupId, until: str, inclusive: bool) -> tuple[TableState, FileSlice | None]:
        """The table as it was, and the slice of a group then."""
        then = self._then(until, inclusive)
        files = {**self._named.get(group, {}), **self._present(group)}.items()
        found = visible_slices(group.partition_path, files, then.visibility(None))
        if self._may_be_of_archived(group, found, then):
            return self._reaching_back._sight(group, until, inclusive)
        return then, next(iter(found), None)

    def _may_be_of_archived(self, group: FileGroupId, found: tuple[FileSlice, ...], then: TableState) -> bool:
        """Whether archived commits may name files of then that are gone, so that the group only seems to be empty."""
        first = self._first_writes.get(group)
        if self.with_archive or group in then.visibility(None).replaced:
            return False
        if first is None:
            return not found
        instant, stat = first
        if then.timeline.is_committed(instant) or stat.prev_commit in ("", "null", instant):
            return False
        return not found or found[0].base_instant < stat.prev_commit

    @cached_property
    def _reaching_back(self) -> PastSlices:
        return replace(self, with_archive=True)

    @cached_property
    def _first_writes(self) -> Mapping[FileGroupId, tuple[str, WriteStat]]:
        """The first known write to each file group: it tells what the group was based on."""
        first: dict[FileGroupId, tuple[str, WriteStat]] = {}
        for instant, metadata in self._known_writes:
            for stat in metadata.stats:
                first.setdefault(
                    FileGroupId(stat.partition_path, stat.file_id), (instant.requested_time, stat)
                )
        return first

    @cached_property
    def _known_writes(self) -> tuple[tuple[Instant, CommitMetadata], ...]:
        if self.with_archive:
            return writes_in_range(self.state, BEFORE_ALL)
        return tuple((i, self.state.metadata(i)) for i in self.state.timeline.completed_writes)

    def _then(self, until: str, inclusive: bool) -> TableState:
        key = (until, inclusive)
        if key not in self._states:
            if len(self._states) > 2:
                self._states.clear()
            kept = (i for i in self.instants if _is_by(i.completion_time or "", until, inclusive))
            archived = self.state.history.completion_times if self.with_archive else None
            seen = Timeline.of(kept).ascending_instants
            timeline = PastTimeline(seen, until, inclusive, self.state.timeline.start, archived)
            self._states[key] = replace(self.state, timeline=timeline)
        return self._states[key]

    @cached_property
    def _states(self) -> dict[tuple[str, bool], TableState]:
        return {}

    @cached_property
    def _named(self) -> Mapping[FileGroupId, dict[str, int]]:
        """The files that known commits say they wrote, there or not."""
        named: dict[FileGroupId, dict[str, int]] = defaultdict(dict)
        for _, metadata in self._known_writes:
            for stat in metadata.stats:
                if stat.path:
                    named[FileGroupId(stat.partition_path, stat.file_id)][stat.name] = stat.file_size
        return named

    def _present(self, group: FileGroupId) -> dict[str, int]:
        return self._files_by_id(group.partition_path).get(group.file_id, {})

    def _files_by_id(self, partition: str) -> dict[str, dict[str, int]]:
        if partition not in self._listed:
            by_id: dict[str, dict[str, int]] = defaultdict(dict)
            for name, size in self.state.listing.files(partition):
                parse = parse_log_file if name.startswith(".") else parse_base_file
                parsed = parse(partition, name, size)
                if parsed is not None:
                    by_id[parsed.file_id][name] = size
            self._listed[partition] = by_id
        return self._listed[partition]

    @cached_property
    def _listed(self) -> dict[str, dict[str, dict[str, int]]]:
        return {}

    def _check(self, group: FileGroupId, found: FileSlice, until: str) -> None:
        present = self._present(group)
        gone = next((file.path for file in found.files if file.name not in present), None)
        if gone is not None and not self.state.storage.exists(gone):
            raise InvalidInput(
                f"The changes of {self.state.storage.root} at {until} can no longer be computed: {gone}, which held "
                "rows from before or after that commit, was cleaned. Begin later, or keep more commits "
                "(hoodie.clean.commits.retained).",
                condition="CHANGES_WERE_CLEANED",
                path=gone,
                partition=group.partition_path,
            )


def _is_by(time: str, until: str, inclusive: bool) -> bool:
    return time <= until if inclusive else time < until
