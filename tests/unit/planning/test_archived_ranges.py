"""Ranges whose commits, or what these changed, were archived: found, or told to be gone, but never passed over."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import InvalidInput
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.storage import LocalStorage
from tests.small_writes import hooked, new_table, write

PLAIN = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}
CONCURRENT = {**PLAIN, "hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
ARCHIVED = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
}


def keys(rows) -> list[str]:
    return sorted(row["id"] for row in rows.select(["id"]).to_pylist())


def test_a_long_write_that_is_archived_as_soon_as_it_completed_is_read(tmp_path):
    """It began before every commit that stays active, and completed after them."""
    new_table(tmp_path / "t", [("1", "oslo", 1, "a")], options=PLAIN)
    table = drawstring.open_table(str(tmp_path / "t"))
    long, read_until = hooked(table.path), list[str]()

    def others(_number: int, operation: str, _path: str) -> None:
        if operation == "open_output" and not read_until:
            read_until.append("")
            for n in range(4):
                write(LocalStorage(table.path), [(f"r{n}", "rome", 1, "b")], options=CONCURRENT)
            read_until[0] = table.timeline.completed_writes[-1].completion_time or ""

    long.before = others
    write(long, [("2", "kiel", 1, "late")], options=CONCURRENT)
    table.archive(options=ARCHIVED)
    begin = read_until[0]
    assert begin > (table.timeline.start or "")
    assert len(table.timeline.completed_writes) < 6
    assert keys(table.incremental(begin).scan().to_arrow()) == ["2"]
    assert keys(table.changes(begin).to_arrow()) == ["2"]
    stream, start = table.stream(), StreamOffset(begin)
    end = stream.next_offset(start)
    assert keys(stream.batch(start, end).scan().to_arrow()) == ["2"]
    assert stream.next_offset(end) == end == stream.newest_offset()
    whole = table.stream({"hoodie.datasource.streaming.startOffset": "snapshot"})
    start = whole.initial_offset()
    end = whole.next_offset(start)
    assert keys(whole.batch(start, end).scan().to_arrow()).count("2") == 1
    assert whole.next_offset(end) == end


def test_rows_of_archived_commits_whose_files_were_cleaned_are_told_to_be_gone(tmp_path):
    """Otherwise the rows before would be taken for none, and those that stayed for new ones."""
    storage = new_table(tmp_path / "t", [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b")], options=PLAIN)
    for n in range(2, 5):
        write(storage, [("1", "oslo", n, "c")], options=PLAIN)
    write(storage, [("3", "rome", 1, "x")], options=PLAIN)
    write(storage, [("2", "oslo", 7, "d")], options=PLAIN)
    table = drawstring.open_table(str(tmp_path / "t"))
    table.archive(options=ARCHIVED)
    begin = table.timeline.completed_writes[0].completion_time
    write(storage, [("2", "oslo", 8, "e")], options=PLAIN)
    assert keys(table.changes(begin, net=True).to_arrow()) == ["2", "2"]
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    with pytest.raises(InvalidInput) as caught:
        table.changes(begin, net=True).to_arrow()
    assert caught.value.condition == "CHANGES_WERE_CLEANED"
