"""Which files of a range hold rows of other commits too, so that rows have to be told apart."""

from __future__ import annotations

import pytest

import drawstring
from tests.small_writes import new_table, write


def kept(path: object, begin: str = "earliest") -> list[bool]:
    """Whether rows are told apart by their commit time, for each file of a range by partition."""
    tasks = drawstring.open_table(str(path)).incremental(begin).scan().plan().tasks
    ordered = sorted(tasks, key=lambda task: task.slice.group.partition_path)
    return [task.keep_commit_times is not None for task in ordered]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert", "insert_overwrite"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_of_new_groups_are_read_as_they_are(tmp_path, kind, operation):
    storage = new_table(tmp_path, options={"hoodie.datasource.write.table.type": kind})
    write(storage, [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")], operation)
    assert kept(tmp_path) == [False, False]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_files_that_were_rewritten_or_have_logs_are_told_apart(tmp_path, kind):
    rows = [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")]
    storage = new_table(tmp_path, rows, options={"hoodie.datasource.write.table.type": kind})
    table = drawstring.open_table(str(tmp_path))
    first = table.timeline.completed_writes[-1].completion_time
    write(storage, [("1", "oslo", 2, "A")])
    if kind == "MERGE_ON_READ":
        table.compact()
    assert kept(tmp_path, first) == [True]
    assert kept(tmp_path) == [True, False]
    found = table.incremental(first).scan().to_arrow()
    assert found.column("id").to_pylist() == ["1"]
