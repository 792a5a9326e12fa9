"""Detects that a cleaner deleted files of the state that a write is based on, before the write listed or read them.

A listing does not show deleted files: a file group whose files were cleaned seems not to exist, or to be as it was
earlier, and its keys seem to be new. That happens to long writes while others commit often, because partitions are
listed only after the rows have been counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from drawstring.errors import CommitConflict, CorruptTable
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.instant import Action, Instant
from drawstring.planning.table_state import TableState
from drawstring.view.file_system_view import visible_slices
from drawstring.write.conflicts import COMPACTIONS, Candidate, completed_since, files_cleaned
from drawstring.write.write_set import WriteSet, groups_of

Cleaned = Mapping[FileGroupId, frozenset[str]]


def check_listed(
    start: TableState, now: TableState, since: Iterable[Candidate], write_set: WriteSet, ours: str
) -> None:
    """Raise `CommitConflict` when the write did not see a file group as it was when it began."""
    candidates = list(since)
    created = {group for candidate in candidates for group in _created(candidate)}
    for candidate in candidates:
        changed = {
            g for g in groups_of(candidate.metadata) if g.partition_path in write_set.searched
        } - created
        if changed and (unseen := _seen_otherwise(start, changed, _cleaned(start, now))):
            raise files_cleaned(now.storage, ours, candidate.instant, unseen)


def conflict_of_missing_file(start: TableState, now: TableState, ours: str) -> CommitConflict | None:
    """Return the conflict that explains why a file was not found: another write replaced it, and it was cleaned."""
    cleaned = _cleaned(start, now)
    for candidate in completed_since(start, now):
        if common := groups_of(candidate.metadata) & cleaned.keys():
            return files_cleaned(now.storage, ours, candidate.instant, common)
    return None


def _created(candidate: Candidate) -> Iterator[FileGroupId]:
    """The groups that a write made: a compaction makes none, though it may make a group's first base file."""
    if candidate.metadata.operation in COMPACTIONS:
        return
    ours = candidate.instant.requested_time
    for stat in candidate.metadata.stats:
        if stat.prev_commit in ("", "null") or (stat.prev_commit == ours and stat.num_inserts):
            yield FileGroupId(stat.partition_path, stat.file_id)


def _seen_otherwise(start: TableState, groups: set[FileGroupId], cleaned: Cleaned) -> set[FileGroupId]:
    found = set()
    for partition in {group.partition_path for group in groups}:
        seen = {one.group: one for one in start.view(None).slices(partition)}
        asked = {group for group in groups if group.partition_path == partition}
        lost = {name: 0 for group in asked for name in cleaned.get(group, ())}
        found |= asked - seen.keys()
        if lost:
            files = {**lost, **dict(start.listing.files(partition))}.items()
            there = {one.group: one for one in visible_slices(partition, files, start.visibility(None))}
            found |= {group for group in asked & seen.keys() if _names(there[group]) != _names(seen[group])}
    return found


def _names(found: FileSlice) -> set[str]:
    return {file.name for file in found.files}


def _cleaned(start: TableState, now: TableState) -> Cleaned:
    """What cleans deleted, or are about to delete, that had not completed when the write began."""
    before = {instant.requested_time for instant in start.timeline.completed_cleans}
    found: dict[FileGroupId, set[str]] = defaultdict(set)
    for instant in now.timeline.ascending_instants:
        if instant.action is Action.CLEAN and instant.requested_time not in before:
            for partition, name in _files_of(now, instant):
                file = parse_base_file(partition, name, 0) or parse_log_file(partition, name, 0)
                if file is not None:
                    found[FileGroupId(partition, file.file_id)].add(name)
    return {group: frozenset(names) for group, names in found.items()}


def _files_of(now: TableState, clean: Instant) -> Iterator[tuple[str, str]]:
    if clean.is_completed:
        for path in now.reader.cleaned_files(clean):
            partition, _, name = path.rpartition("/")
            yield partition, name
        return
    with suppress(CorruptTable):  # nobody can have begun with a plan that cannot be read
        for partition, names in now.reader.clean_plan(clean).files.items():
            yield from ((partition, name) for name in names)
