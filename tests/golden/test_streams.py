"""Golden tables read as streams: whatever the limits, batches hold what the incremental read of their range holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drawstring.planning.streams.offsets import StreamOffset
from drawstring.table import Table, open_table
from tests.golden.harness import arrow_rows, expectation, extract, table_names

LIMITS: dict[str, dict[str, Any]] = {
    "none": {},
    "one file": {"maxFilesPerTrigger": 1},
    "two files": {"maxFilesPerTrigger": 2},
    "few bytes": {"read.stream.maxBytesPerTrigger": 1_000_000},
    "rows and files": {"maxRowsPerTrigger": 3, "maxFilesPerTrigger": 5},
}
NAMES = [name for name in table_names() if not name.endswith("_no_meta")]


def rows_of(source: Any) -> list[str]:
    return sorted(str(row) for row in arrow_rows(source.scan().to_arrow()))


def opened(name: str, folder: Path) -> Table:
    return open_table(extract(name, folder), options=expectation(name)["read_options"])


def batches(table: Table, options: dict[str, Any]) -> list[tuple[StreamOffset, StreamOffset, list[str]]]:
    stream = table.stream({"failOnDataLoss": "false", **options})
    start, found = stream.initial_offset(), []
    while (end := stream.next_offset(start)) != start:
        # What a checkpoint keeps is enough to go on.
        kept = StreamOffset.from_json(start.to_json()), StreamOffset.from_json(end.to_json())
        found.append((start, end, rows_of(stream.batch(*kept))))
        start = end
        assert len(found) < 500
    backlog = stream.backlog(start)
    assert (backlog.commits, backlog.amount.files, backlog.amount.rows) == (0, 0, 0)
    return found


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_batches_hold_the_rows_of_the_incremental_reads_of_their_ranges(
    name: str, limits: str, tmp_path: Path
) -> None:
    table = opened(name, tmp_path)
    begin, rows = "00000000000000", list[str]()
    for start, end, found in batches(table, LIMITS[limits]):
        # A divided commit begins behind the table services before it, whose files need not be there any more.
        begin, rows = max(begin, start.time), rows + found
        if end.commit is None:
            assert sorted(rows) == rows_of(table.incremental(begin, end.time)), (begin, end)
            begin, rows = end.time, []
    assert rows == []
    assert rows_of(table.incremental(begin)) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_snapshot_in_pieces_comes_first_and_then_nothing_that_it_held(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    found = batches(table, {"hoodie.datasource.streaming.startOffset": "snapshot", "maxFilesPerTrigger": 1})
    rows = sorted(row for *_, each in found for row in each)
    assert rows == rows_of(table.snapshot())
