"""File groups, and the slices that a reader at one instant sees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.timeline.timeline import Timeline
from drawstring.view.listing import FileListing


@dataclass(frozen=True)
class Visibility:
    """What decides which files a reader sees; all of it comes from the timeline.

    - `by_completion`: logs carry their own instant and belong to slices by completion time (versions 8, 9);
      otherwise logs carry the base instant of their slice (version 6).
    - `has_base_named_logs`: a table upgraded from version 6, whose old logs still carry a base instant.
    - `compactions`: the pending compaction, by file group; `replaced`: the instant that took a group out.
    - `max_instant`: None, or the newest requested time that is seen (time travel).
    - `archived_completion`: completion time of an instant that has left the active timeline.
    - `committed_name`: of several files that retries left behind, the one that the commit names.
    """

    timeline: Timeline
    by_completion: bool
    has_base_named_logs: bool = False
    compactions: Mapping[FileGroupId, str] = field(default_factory=dict)
    replaced: Mapping[FileGroupId, str] = field(default_factory=dict)
    max_instant: str | None = None
    archived_completion: Callable[[str], str | None] = lambda _: None
    committed_name: Callable[[str, str], str | None] = lambda _instant, _file_id: None

    def sees(self, instant: str) -> bool:
        """Whether an instant is at or before the read point."""
        return self.max_instant is None or instant <= self.max_instant


class FileSystemView:
    """The visible slices of a table, computed and cached partition by partition."""

    def __init__(self, listing: FileListing, visibility: Visibility) -> None:
        self._listing = listing
        self._visibility = visibility
        self._slices: dict[str, tuple[FileSlice, ...]] = {}

    def partitions(self) -> Sequence[str]:
        """All partition paths, also those without visible slices."""
        return self._listing.partitions()

    def slices(self, partition: str) -> tuple[FileSlice, ...]:
        """For each file group of a partition the slice that the reader sees."""
        if partition not in self._slices:
            files = self._listing.files(partition)
            self._slices[partition] = visible_slices(partition, files, self._visibility)
        return self._slices[partition]

    def older_slices(self, partition: str) -> tuple[FileSlice, ...]:
        """The slices before those, newest first in each group: kept for time travel until they are cleaned."""
        files = self._listing.files(partition)
        return older_slices(partition, files, self._visibility)


def visible_slices(
    partition: str, files: Iterable[tuple[str, int]], visibility: Visibility
) -> tuple[FileSlice, ...]:
    """Return, for each file group, the slice that a reader sees.

    1. Its base file, if any, comes from an action that completed and is not after the read point.
    2. Log files of instants that did not complete are left out, and those after the read point.
    3. Logs written while a compaction is pending are merged with the slice before it.
    4. File groups replaced at or before the read point yield nothing.

    Slices come in the order of their file ids.
    """
    groups = _group_files(partition, files)
    return tuple(
        found
        for file_id in sorted(groups)
        if (found := _latest_slice(FileGroupId(partition, file_id), groups[file_id], visibility))
    )


def older_slices(
    partition: str, files: Iterable[tuple[str, int]], visibility: Visibility
) -> tuple[FileSlice, ...]:
    """Return, for each file group that a reader sees, the slices before the one that it reads."""
    groups = _group_files(partition, files)
    found: list[FileSlice] = []
    for file_id in sorted(groups):
        group = FileGroupId(partition, file_id)
        seen = _latest_slice(group, groups[file_id], visibility)
        if seen is not None:
            slices = _newest_first(group, groups[file_id], visibility)
            found += (older for older in slices if older.base_instant < seen.base_instant)
    return tuple(found)


def all_slices(
    partition: str, files: Iterable[tuple[str, int]], visibility: Visibility
) -> tuple[FileSlice, ...]:
    """Return every slice of every file group, newest first in each, of groups that were replaced too."""
    groups = _group_files(partition, files)
    found: list[FileSlice] = []
    for file_id in sorted(groups):
        found += _newest_first(FileGroupId(partition, file_id), groups[file_id], visibility)
    return tuple(found)


def _newest_first(group: FileGroupId, files: _Files, visibility: Visibility) -> Iterator[FileSlice]:
    """Yield the slices of a group that have files."""
    slices = _slices_of(group, files, visibility)
    for instant in sorted(slices, reverse=True):
        if slices[instant].base or slices[instant].logs:
            yield _made(group, instant, slices[instant], visibility)


class _Files(NamedTuple):
    bases: list[BaseFile]
    logs: list[LogFile]


class _Slice(NamedTuple):
    base: list[BaseFile]
    logs: list[LogFile]


def _group_files(partition: str, files: Iterable[tuple[str, int]]) -> dict[str, _Files]:
    groups: dict[str, _Files] = defaultdict(lambda: _Files([], []))
    for name, size in files:
        if name.startswith("."):
            log = parse_log_file(partition, name, size)
            if log is not None:
                groups[log.file_id].logs.append(log)
        else:
            base = parse_base_file(partition, name, size)
            if base is not None:
                groups[base.file_id].bases.append(base)
    return groups


def _latest_slice(group: FileGroupId, files: _Files, visibility: Visibility) -> FileSlice | None:
    replaced_at = visibility.replaced.get(group) if visibility.replaced else None
    if replaced_at is not None and visibility.sees(replaced_at):
        return None
    if len(files.bases) == 1 and not files.logs:
        bases = _seen_bases(files, visibility)
        return FileSlice(group, bases[0].instant, bases[0]) if bases else None
    return _pick(group, _slices_of(group, files, visibility), visibility)


def _seen_bases(files: _Files, visibility: Visibility) -> list[BaseFile]:
    return [
        b for b in files.bases if visibility.sees(b.instant) and visibility.timeline.is_committed(b.instant)
    ]


def _slices_of(group: FileGroupId, files: _Files, visibility: Visibility) -> dict[str, _Slice]:
    """All slices of a group at the read point, by their base instant."""
    bases, compaction = _seen_bases(files, visibility), visibility.compactions.get(group)
    if not files.logs:
        slices = {base.instant: _Slice([], []) for base in bases}
        for base in bases:
            slices[base.instant].base.append(base)
        return slices
    if visibility.by_completion:
        return _slices_by_completion(bases, files, compaction, visibility)
    return _slices_by_base_instant(bases, files.logs, compaction, visibility)


def _slices_by_base_instant(
    bases: list[BaseFile], logs: list[LogFile], compaction: str | None, visibility: Visibility
) -> dict[str, _Slice]:
    slices: dict[str, _Slice] = defaultdict(lambda: _Slice([], []))
    for base in bases:
        slices[base.instant].base.append(base)
    for log in logs:
        committed = log.instant == compaction or visibility.timeline.is_committed(log.instant)
        if committed and visibility.sees(log.instant):
            slices[log.instant].logs.append(log)
    return slices


def _slices_by_completion(
    bases: list[BaseFile], files: _Files, compaction: str | None, visibility: Visibility
) -> dict[str, _Slice]:
    """Give each log to the newest slice that existed when the log completed.

    Slices after the read point take part, as keys only: a log that completed after a compaction was planned
    belongs to the slice that the compaction makes, and is not seen by a reader before it.
    """
    committed = [b.instant for b in files.bases if visibility.timeline.is_committed(b.instant)]
    slices: dict[str, _Slice] = {instant: _Slice([], []) for instant in committed}
    if compaction is not None:
        slices.setdefault(compaction, _Slice([], []))
    for base in bases:
        slices[base.instant].base.append(base)
    for log in sorted(files.logs, key=log_order):
        if _is_live(log, compaction, visibility):
            slices.setdefault(_slice_of(log, slices, visibility), _Slice([], [])).logs.append(log)
    return {
        instant: _Slice(found.base, [log for log in found.logs if visibility.sees(log.instant)])
        for instant, found in slices.items()
        if visibility.sees(instant)
    }


def _is_live(log: LogFile, compaction: str | None, visibility: Visibility) -> bool:
    if visibility.timeline.is_committed(log.instant):
        return True
    return visibility.has_base_named_logs and log.instant == compaction


def _slice_of(log: LogFile, slices: Mapping[str, _Slice], visibility: Visibility) -> str:
    if not slices:
        return log.instant
    descending = sorted(slices, reverse=True)
    if descending[0] <= log.instant:
        return descending[0]
    completed = visibility.timeline.completion_time(log.instant) or visibility.archived_completion(
        log.instant
    )
    if completed is None:
        return log.instant if log.instant in slices else descending[0]
    return next((instant for instant in descending if instant <= completed), log.instant)


def _pick(group: FileGroupId, slices: Mapping[str, _Slice], visibility: Visibility) -> FileSlice | None:
    descending = sorted(
        (instant for instant, found in slices.items() if found.base or found.logs), reverse=True
    )
    if not descending:
        return None
    newest, found = descending[0], slices[descending[0]]
    if newest == visibility.compactions.get(group) and not found.base and len(descending) > 1:
        newest = descending[1]
        found = _Slice(slices[newest].base, slices[newest].logs + found.logs)
    return _made(group, newest, found, visibility)


def _made(group: FileGroupId, instant: str, found: _Slice, visibility: Visibility) -> FileSlice:
    logs = tuple(sorted(found.logs, key=log_order)) if found.logs else ()
    return FileSlice(group, instant, _base_of(found, visibility), logs)


def _base_of(found: _Slice, visibility: Visibility) -> BaseFile | None:
    if len(found.base) <= 1:
        return found.base[0] if found.base else None
    named = visibility.committed_name(found.base[0].instant, found.base[0].file_id)
    return next((b for b in found.base if b.name == named), None) or max(found.base, key=lambda b: b.name)


def log_order(log: LogFile) -> tuple[str, int, str]:
    """Logs are merged by the instant in their name, their version as a number, then their write token."""
    return log.instant, log.version, log.write_token
