"""Two sights of a file group: what both show is not compared by key, and a base file that both have is read once."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.model.read_task import ReadTask
from drawstring.reading.same_places import Differing, differing_rows
from drawstring.reading.slice_rows import SliceReader
from tests.small_writes import new_table, write
from tests.unit.reading.test_changed_rows import table

OLD = [("1", f"s{number}", f"k{number}") for number in range(10)]


def in_batches(rows: list[tuple[str, str, str]], size: int) -> list[pa.RecordBatch]:
    return table(rows).to_batches(max_chunksize=size)


def counts(found: Differing) -> tuple[int, int, int, int]:
    sides = (*found.updated, *found.others)
    before, after, old, new = (sum(batch.num_rows for batch in side) for side in sides)
    return before, after, old, new


@pytest.mark.parametrize("sizes", [(10, 10), (3, 4), (1, 7)])
def test_updates_in_place_are_found_without_keys_and_inserts_are_left(sizes):
    new = [("2", "n", "k4") if row[2] == "k4" else row for row in OLD] + [("2", "n", "new")]
    found = differing_rows(*(iter(in_batches(r, size)) for r, size in zip((OLD, new), sizes, strict=True)))
    assert counts(found) == (1, 1, 0, 1)
    assert found.updated[0][0].schema.names == found.updated[1][0].schema.names


def test_rows_are_left_to_be_compared_from_the_batch_on_where_keys_have_moved():
    found = differing_rows(iter(in_batches(OLD, 4)), iter(in_batches([*OLD[:5], *OLD[6:]], 4)))
    assert counts(found) == (0, 0, 6, 5)


def test_a_base_file_that_both_sights_have_gives_only_rows_that_one_of_them_hides(tmp_path, monkeypatch):
    settings = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    rows = [(str(number), "oslo", 1, "a") for number in range(50)]
    storage = new_table(tmp_path, rows, options=settings)
    before = only_task(tmp_path)
    write(storage, [("7", "oslo", 2, "b")])
    write(storage, [("9", "oslo", 2, "")], "delete")
    opened = drawstring.open_table(str(tmp_path))
    opened_files: list[str] = []
    read = SliceReader._base_rows
    monkeypatch.setattr(
        SliceReader,
        "_base_rows",
        lambda *given, **named: opened_files.append("base") or read(*given, **named),
    )
    reader = SliceReader(storage, opened.schema)
    names = opened.schema.names

    found = reader.differing(before, only_task(tmp_path), names)
    assert counts(found) == (0, 0, 2, 1)
    assert sorted(key for batch in found.others[0] for key in batch.column("id").to_pylist()) == ["7", "9"]
    assert opened_files == ["base"]
    assert counts(reader.differing(before, before, names)) == (0, 0, 0, 0)
    assert opened_files == ["base"]


def only_task(path: object) -> ReadTask:
    (task,) = drawstring.open_table(str(path)).snapshot().scan().plan().tasks
    return task
