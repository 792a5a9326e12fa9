"""Whether the files that commits name are there: a lost file must not pass for older data."""

from __future__ import annotations

from collections import defaultdict

from drawstring.errors import CorruptTable
from drawstring.model.file_group import BaseFile, FileSlice, LogFile
from drawstring.planning.table_state import TableState
from drawstring.view.file_system_view import visible_slices

_STATS_CHECKED = 20_000
"""How many files are looked for, newest commits first; older commits are vouched for by newer ones."""


def check_files_present(state: TableState, max_instant: str | None) -> None:
    """Raise `CorruptTable` when a file that readers at `max_instant` must see is gone.

    A listing does not show what is missing: the slice before would be read in its place. So the slices are
    computed once more, as if every file that commits name were there; what they need must be in storage.
    """
    for partition, names in _named_files(state, max_instant).items():
        present = {name for name, _ in state.listing.files(partition)}
        if names <= present:
            continue
        files = [(name, 0) for name in names | present]
        for found in visible_slices(partition, files, state.visibility(max_instant)):
            for file in _files_of(found):
                if file.name not in present and not state.storage.exists(file.path):
                    raise _missing(state, file, max_instant)


def _named_files(state: TableState, max_instant: str | None) -> dict[str, set[str]]:
    named: dict[str, set[str]] = defaultdict(set)
    remaining = _STATS_CHECKED
    for instant in reversed(state.timeline.writes_until(max_instant)):
        stats = state.metadata(instant).stats
        for stat in stats:
            if stat.path:
                named[stat.partition_path].add(stat.name)
        remaining -= len(stats)
        if remaining <= 0:
            break
    return named


def _files_of(found: FileSlice) -> list[BaseFile | LogFile]:
    return [*([found.base_file] if found.base_file else []), *found.log_files]


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
