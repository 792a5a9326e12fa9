"""Batches of streaming writes are written once, wherever their writer was killed."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace

import pytest

import drawstring
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.errors import CommitConflict
from drawstring.model.sink_batch import CHECKPOINT, QUERY, SinkBatch
from drawstring.storage import LocalStorage
from drawstring.write.in_process import ArrowRows
from drawstring.write.pipeline import CommitResult, write_rows
from drawstring.write.sink_batches import is_written
from drawstring.write.table_facts import load_state
from tests.small_writes import OPTIONS, arrow, hooked, in_child, leftovers, new_table, rows_of, write

OLD = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")]
NEW = [("3", "oslo", 1, "c"), ("4", "kiel", 1, "d")]


def write_batch(
    storage, rows, number, *, operation="bulk_insert", identifier="q", query="id-1"
) -> CommitResult:
    wanted = WriteOptions.of({**OPTIONS, OPERATION.key: operation})
    batch = SinkBatch(identifier, number, query)
    return write_rows(
        ArrowRows(arrow(rows)), storage, mode="append", options=replace(wanted, sink_batch=batch)
    )


def newest_extra(path) -> dict[str, str]:
    state = load_state(LocalStorage(str(path)))
    return dict(state.metadata(state.timeline.completed_writes[-1]).extra)


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert", "insert_overwrite", "delete"])
def test_a_batch_that_a_commit_tells_of_is_not_written_again(tmp_path, operation):
    storage = new_table(tmp_path / "t", OLD)
    first = write_batch(storage, NEW, 0, operation=operation)
    found = rows_of(tmp_path / "t")
    assert newest_extra(tmp_path / "t")[CHECKPOINT] == '{"q":"0"}'
    again = write_batch(storage, NEW, 0, operation=operation)
    assert first.instant is not None
    assert again.instant is None
    assert rows_of(tmp_path / "t") == found
    assert leftovers(tmp_path / "t") == set()


def test_commits_of_others_stand_between_and_change_nothing(tmp_path):
    storage = new_table(tmp_path / "t")
    write_batch(storage, OLD, 4)
    write(storage, NEW, "insert")
    assert CHECKPOINT not in newest_extra(tmp_path / "t")
    assert write_batch(storage, OLD, 4).instant is None
    assert write_batch(storage, [("9", "oslo", 1, "z")], 5).instant is not None


def test_queries_with_identifiers_of_their_own_do_not_meet(tmp_path):
    storage = new_table(tmp_path / "t")
    assert write_batch(storage, OLD, 0, identifier="a").instant
    assert write_batch(storage, NEW, 0, identifier="b").instant
    assert write_batch(storage, OLD, 0, identifier="a").instant is None
    assert write_batch(storage, NEW, 0, identifier="b").instant is None
    assert rows_of(tmp_path / "t") == sorted(OLD + NEW)


def test_a_query_with_another_checkpoint_folder_is_another_one(tmp_path):
    storage = new_table(tmp_path / "t")
    write_batch(storage, OLD, 7, query="old")
    assert newest_extra(tmp_path / "t")[QUERY] == "old"
    assert write_batch(storage, NEW, 0, query="new").instant
    assert write_batch(storage, OLD, 7, query="old").instant is None


def test_a_batch_that_hudi_wrote_counts_whichever_query_it_was(tmp_path):
    storage = new_table(tmp_path / "t")
    write_batch(storage, OLD, 3, query="")
    assert QUERY not in newest_extra(tmp_path / "t")
    assert write_batch(storage, OLD, 3, query="new").instant is None
    assert write_batch(storage, NEW, 4, query="new").instant


@pytest.mark.parametrize("recorded", ['{"q":5}', '{"q":"5"}'])
def test_numbers_are_read_as_text_and_as_numbers(recorded):
    assert SinkBatch("q", 5).is_covered_by({CHECKPOINT: recorded}) is True
    assert SinkBatch("q", 6).is_covered_by({CHECKPOINT: recorded}) is False


@pytest.mark.parametrize("recorded", ["", "{}", "[]", "no json", '{"other":"5"}', '{"q":"x"}', '{"q":null}'])
def test_what_is_no_checkpoint_of_the_query_tells_nothing(recorded):
    assert SinkBatch("q", 5).is_covered_by({CHECKPOINT: recorded}) is None


def test_of_two_drivers_of_one_query_one_commits_the_batch(tmp_path):
    storage = hooked(str(tmp_path / "t"))
    new_table(tmp_path / "t", OLD)
    other = LocalStorage(str(tmp_path / "t"))
    done: list[CommitResult] = []

    def beside(_number, operation, name):
        if not done and ".parquet" in name:
            storage.after = lambda *_: None
            done.append(write_batch(other, NEW, 0))

    storage.after = beside
    with pytest.raises(CommitConflict, match="BATCH_COMMITTED"):
        write_batch(storage, NEW, 0)
    assert done[0].instant
    assert rows_of(tmp_path / "t") == sorted(OLD + NEW)


def test_a_batch_is_written_once_wherever_its_writer_is_killed(tmp_path):
    template = tmp_path / "template"
    new_table(template, OLD)
    skipped = points = 0
    for point in range(1, 100):
        path = tmp_path / str(point)
        shutil.copytree(template, path)
        storage = hooked(str(path))

        def kill(number, _operation, _name, point=point):
            if number == point:
                os.kill(os.getpid(), signal.SIGKILL)

        storage.before = kill
        code = in_child(lambda storage=storage: write_batch(storage, NEW, 0))
        again = write_batch(LocalStorage(str(path)), NEW, 0)
        assert rows_of(path) == sorted(OLD + NEW), point
        assert leftovers(path) == set(), point
        skipped += again.instant is None
        points += code != 0
        shutil.rmtree(path)
        if code == 0:
            break
    assert points >= 9
    assert skipped >= 2, "decided batches are finished by the next writer, and found"


def test_an_archived_commit_still_tells_of_its_batch(tmp_path):
    storage = new_table(tmp_path / "t", OLD)
    write_batch(storage, NEW, 0)
    state = load_state(storage)

    class Older:
        def __init__(self, writes):
            self.writes = writes

    from drawstring.timeline.history import ArchivedWrite
    from drawstring.timeline.timeline import Timeline

    archived = tuple(ArchivedWrite(i, state.metadata(i)) for i in state.timeline.completed_writes)
    bare = replace(state, timeline=Timeline.of(()))
    object.__setattr__(bare, "__dict__", {**bare.__dict__, "history": Older(archived)})
    assert is_written(bare, SinkBatch("q", 0, "id-1"))
    assert not is_written(bare, SinkBatch("q", 1, "id-1"))


def test_the_public_table_is_not_concerned(tmp_path):
    new_table(tmp_path / "t", OLD)
    drawstring.open_table(str(tmp_path / "t")).write(arrow(NEW))
    assert CHECKPOINT not in newest_extra(tmp_path / "t")
