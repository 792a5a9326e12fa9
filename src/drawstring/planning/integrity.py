"""Checks that the files which commits name exist and are complete: a lost file must not pass for older data."""

from __future__ import annotations

from collections import defaultdict

from drawstring.errors import CorruptTable, DrawstringError, InvalidInput
from drawstring.model.file_group import BaseFile, FileSlice, LogFile
from drawstring.planning.table_state import TableState
from drawstring.view.file_system_view import visible_slices

_STATS_CHECKED = 20_000
"""How many files are looked for, newest commits first; older commits are vouched for by newer ones."""


def check_files_present(state: TableState, max_instant: str | None) -> None:
    """Raise `CorruptTable` when a file that readers at `max_instant` must see is gone, or a log was cut.

    Where the timeline says that a cleaner took it, the table is whole and the time is wrong: `InvalidInput`.

    A listing does not show what is missing: the slice before would be read in its place. So the slices are
    computed once more, as if every file that commits name were there; what they need must be in storage.
    """
    for partition, named in _named_files(state, max_instant).items():
        present = dict(state.listing.files(partition))
        if all(present.get(name, -1) >= size for name, size in named.items()):
            continue
        files = {**present, **named}.items()
        for found in visible_slices(partition, files, state.visibility(max_instant)):
            for file in found.files:
                if file.name not in present and not _is_rightly_absent(state, found, file, max_instant):
                    raise _absent(state, file, max_instant)
                if isinstance(file, LogFile) and present.get(file.name, file.size) < file.size:
                    raise _cut(state, file, present[file.name])


def _named_files(state: TableState, max_instant: str | None) -> dict[str, dict[str, int]]:
    """The files that the newest commits name and the bytes they vouch for, by partition."""
    named: dict[str, dict[str, int]] = defaultdict(dict)
    remaining = _STATS_CHECKED
    for _, metadata in state.writes_descending(max_instant):
        for stat in metadata.stats:
            if stat.path:
                known = named[stat.partition_path].get(stat.name, 0)
                named[stat.partition_path][stat.name] = max(known, stat.file_size)
        remaining -= len(metadata.stats)
        if remaining <= 0:
            break
    if max_instant is not None:
        _add_cleaned(state, named)
    return named


def _add_cleaned(state: TableState, named: dict[str, dict[str, int]]) -> None:
    """Add the files that cleans deleted: a reader in the past may need them, whoever wrote them."""
    for path in _cleaned_files(state):
        partition, _, name = path.rpartition("/")
        named[partition].setdefault(name, 0)


def _cleaned_files(state: TableState) -> set[str]:
    return {path for clean in state.timeline.completed_cleans for path in state.reader.cleaned_files(clean)}


def _is_rightly_absent(
    state: TableState, found: FileSlice, file: BaseFile | LogFile, max_instant: str | None
) -> bool:
    """Whether the listing only overlooks the file, or an archived commit took its group out in time."""
    if state.storage.exists(file.path):
        return True
    return max_instant is not None and any(
        write.instant.requested_time <= max_instant
        and found.group.file_id in write.metadata.replaced.get(found.group.partition_path, ())
        for write in state.history.writes
    )


def _absent(state: TableState, file: BaseFile | LogFile, max_instant: str | None) -> DrawstringError:
    is_cleaned = max_instant is not None and file.path in _cleaned_files(state)
    return _cleaned(state, file, max_instant) if is_cleaned else _missing(state, file, max_instant)


def _cleaned(state: TableState, file: BaseFile | LogFile, max_instant: str | None) -> InvalidInput:
    return InvalidInput(
        f"{state.storage.root} can no longer be read as of {max_instant}: a cleaner removed {file.path}, which instant "
        f"{file.instant} wrote. Read as of a later instant; savepoints keep their files.",
        condition="SNAPSHOT_WAS_CLEANED",
        path=file.path,
        instant=file.instant,
        as_of=max_instant,
    )


def _missing(state: TableState, file: BaseFile | LogFile, max_instant: str | None) -> CorruptTable:
    advice = "Restore it from a copy, or restore the table to a savepoint."
    if max_instant is not None:
        advice = "The cleaner may have removed it: read as of a later instant."
    return CorruptTable(
        f"The file {file.path} is missing from {state.storage.root}, though the timeline says that instant "
        f"{file.instant} wrote it and nothing has replaced it. {advice}",
        condition="FILE_MISSING",
        path=file.path,
        instant=file.instant,
        as_of=max_instant,
    )


def _cut(state: TableState, file: LogFile, found: int) -> CorruptTable:
    return CorruptTable(
        f"The log file {file.path} of {state.storage.root} has {found} bytes, but commits vouch for {file.size}: "
        "it was cut. Restore it from a copy, or restore the table to a savepoint.",
        condition="LOG_FILE_CUT",
        path=file.path,
        instant=file.instant,
        found=found,
        expected=file.size,
    )
