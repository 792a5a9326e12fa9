"""A snapshot that comes first in pieces, while the table goes on: cleaned, archived, overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.errors import InvalidInput
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.planning.streams.source import TableStream
from tests.small_writes import OPTIONS, new_table, write

CITIES = ("bonn", "kiel", "oslo", "rome")
SNAPSHOT_FIRST = {"maxFilesPerTrigger": "2", "hoodie.datasource.streaming.startOffset": "snapshot"}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
ONE = {**OPTIONS, "hoodie.clean.commits.retained": "1"}
FEW = {**ONE, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}


def begun(path: Path, **options: str) -> tuple[TableStream, StreamOffset]:
    """A stream that has delivered the first two of four file groups."""
    new_table(path, [(city, city, 1, "old") for city in CITIES], options=QUIET)
    found = drawstring.open_table(str(path)).stream({**SNAPSHOT_FIRST, **options})
    start = found.initial_offset()
    end = found.next_offset(start)
    assert rows(found, start, end) == [("bonn", "old"), ("kiel", "old")]
    return found, end


def rows(found: TableStream, start: StreamOffset, end: StreamOffset) -> list[tuple[str, str]]:
    read = found.batch(start, end).scan().select("id", "v").to_arrow()
    return sorted(zip(*read.to_pydict().values(), strict=True))


def changed(path: Path, city: str, operation: str, *, times: int) -> None:
    storage = drawstring.open_table(str(path)).storage
    for number in range(times):
        write(storage, [(city, city, 2 + number, f"new{number}")], operation, options=QUIET)
    drawstring.open_table(str(path)).clean(options=ONE)


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
def test_what_is_left_of_a_snapshot_comes_although_its_commits_were_archived(tmp_path, operation):
    found, position = begun(tmp_path)
    changed(tmp_path, "bonn", operation, times=7)
    table = drawstring.open_table(str(tmp_path))
    assert table.archive(options=FEW).instants
    again = table.stream(SNAPSHOT_FIRST)
    for stream in (found, again):
        assert rows(stream, position, stream.next_offset(position)) == [("oslo", "old"), ("rome", "old")]


@pytest.mark.parametrize("archived", [False, True])
def test_files_of_a_snapshot_that_were_cleaned_are_told_or_read_as_they_are_now(tmp_path, archived):
    for lenient in (False, True):
        path = tmp_path / str(lenient)
        found, position = begun(path, failOnDataLoss=str(not lenient).lower())
        changed(path, "rome", "upsert", times=7)
        if archived:
            assert drawstring.open_table(str(path)).archive(options=FEW).instants
        end = found.next_offset(position)
        if lenient:
            assert rows(found, position, end) == [("oslo", "old"), ("rome", "new6")]
            assert found.batch(position, end).lost_files == 1
            continue
        with pytest.raises(InvalidInput, match="before this query had read it") as told:
            found.batch(position, end)
        assert told.value.condition == "STREAM_DATA_LOST"
