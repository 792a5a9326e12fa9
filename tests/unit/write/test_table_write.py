"""Whole writes without Spark, read back by drawstring and by hudi-rs."""

from __future__ import annotations

import logging
import threading

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.write_options import WriteOptions
from drawstring.errors import CommitConflict, InvalidInput
from drawstring.storage import LocalStorage
from drawstring.timeline.reader import TimelineReader
from drawstring.write import in_process
from drawstring.write.in_process import ArrowRows
from drawstring.write.pipeline import write_rows
from drawstring.write.transaction import Transaction
from tests.small_writes import new_table, write
from tests.support.trips_table import OPTIONS, SCHEMA, rows, seen


@pytest.fixture
def table(tmp_path):
    return drawstring.create_table(tmp_path / "t", SCHEMA, options=OPTIONS)


def test_all_operations(table):
    first = table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b"), (3, "rome", 1, "c")))
    assert (first.operation, first.inserted, first.files_written, first.tries) == ("upsert", 3, 2, 1)
    changed = table.write(rows((1, "oslo", 2, "A"), (2, "oslo", 0, "late"), (4, "bern", 1, "d")))
    assert (changed.inserted, changed.updated) == (1, 1)
    assert table.write(rows((3, "rome", 9, "")).select(["id", "city"]), operation="delete").deleted == 1
    table.write(rows((1, "oslo", 3, "again")), operation="insert")
    table.write(rows((5, "kiel", 1, "e")), operation="bulk_insert")
    expected = [(1, "oslo", "A"), (1, "oslo", "again"), (2, "oslo", "b"), (4, "bern", "d"), (5, "kiel", "e")]
    assert seen(table) == expected
    assert table.write(rows((6, "oslo", 1, "f")), operation="insert_overwrite").groups_replaced == 1
    assert seen(table) == [(4, "bern", "d"), (5, "kiel", "e"), (6, "oslo", "f")]
    table.delete_partitions("k*")
    assert seen(table) == [(4, "bern", "d"), (6, "oslo", "f")]
    table.write(rows((7, "rome", 1, "g")), operation="insert_overwrite_table")
    assert seen(table) == [(7, "rome", "g")]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert"])
def test_rows_of_null_and_of_empty_text_share_a_partition(table, operation):
    def shown():
        found = table.snapshot().scan().select("id", "city", "v").to_arrow().to_pylist()
        return sorted(tuple(row.values()) for row in found)

    table.write(rows((1, None, 1, "a"), (2, "", 1, "b"), (3, "oslo", 1, "c")), operation=operation)
    assert shown() == [(1, None, "a"), (2, None, "b"), (3, "oslo", "c")]
    table.write(rows((1, "", 2, "A"), (2, None, 2, "B")), operation="upsert")
    assert shown() == [(1, None, "A"), (2, None, "B"), (3, "oslo", "c")]
    table.write(rows((1, None, 3, ""), (2, "", 3, "")), operation="delete")
    assert shown() == [(3, "oslo", "c")]


def test_only_a_star_stands_for_other_text_in_the_partitions_to_drop(table):
    cities = ["a", "a?", "ab", "[b]", "b"]
    table.write(rows(*((number, city, 1, "x") for number, city in enumerate(cities))))
    table.delete_partitions("a?", "[b]")
    assert [city for _, city, _ in seen(table)] == ["a", "ab", "b"]
    table.delete_partitions("*b")
    assert [city for _, city, _ in seen(table)] == ["a"]


def test_delete_partition_without_names_drops_the_partitions_of_the_rows(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "rome", 1, "b"), (3, "r*", 1, "c"), (4, "bonn", 1, "d")))
    given = rows((7, "r*", 1, "x"), (8, "bonn", 1, "x"), (9, "nowhere", 1, "x")).select(["id", "city"])
    result = table.write(given, operation="delete_partition")
    assert (result.operation, result.groups_replaced) == ("delete_partition", 2)
    assert [city for _, city, _ in seen(table)] == ["oslo", "rome"]
    for named, left in (("", ["oslo", "rome"]), ("rome", ["oslo"])):
        options = {"hoodie.datasource.write.partitions.to.delete": named}
        table.write(rows((1, "oslo", 1, "a")), operation="delete_partition", options=options)
        assert [city for _, city, _ in seen(table)] == left


def test_partitions_are_dropped_by_rows_without_record_key(tmp_path):
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.partitionpath.field": "city"}
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options=options)
    table.write(rows((1, "oslo", 1, "a"), (2, "rome", 1, "b")))
    table.write(rows((1, "oslo", 1, "a")).select(["city"]), operation="delete_partition")
    assert [city for _, city, _ in seen(table)] == ["rome"]


def test_rows_in_every_form(table):
    one = rows((1, "oslo", 1, "a"))
    table.write(one.to_batches()[0])
    table.write(pa.RecordBatchReader.from_batches(SCHEMA, rows((2, "oslo", 1, "b")).to_batches()))
    reader = pa.RecordBatchReader.from_batches(SCHEMA, rows((3, "rome", 1, "c")).to_batches())
    table.write(reader, operation="bulk_insert")
    table.write(rows((4, "rome", 1, "d")).to_pandas())
    assert [row[0] for row in seen(table)] == [1, 2, 3, 4]
    with pytest.raises(InvalidInput, match="expected a pyarrow Table"):
        table.write([{"id": 1}])


def test_generated_keys_differ_between_batches(tmp_path):
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options={"hoodie.table.name": "t"})
    batches = rows((1, "a", 1, "x")).to_batches() + rows((2, "b", 1, "y")).to_batches()
    table.write(pa.RecordBatchReader.from_batches(SCHEMA, batches), operation="bulk_insert")
    table.write(pa.Table.from_batches(batches), operation="insert")
    keys = [row[0] for row in seen(table, "_hoodie_record_key")]
    assert len(keys) == len(set(keys)) == 4


def racing(table, monkeypatch, mine, theirs, **options):
    """Write `mine`, with `theirs` committed by another writer right before the commit."""
    commit = Transaction.commit

    def late(self, *args, **kwargs):
        monkeypatch.undo()
        table.write(theirs)
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    return table.write(mine, **options)


def test_key_that_both_insert_becomes_an_update(table, monkeypatch):
    result = racing(table, monkeypatch, rows((1, "oslo", 2, "mine")), rows((1, "oslo", 1, "theirs")))
    assert (result.tries, result.inserted, result.updated) == (2, 0, 1)
    assert seen(table) == [(1, "oslo", "mine")]


def test_different_keys_of_a_new_partition_both_commit_at_once(table, monkeypatch):
    result = racing(table, monkeypatch, rows((1, "oslo", 1, "mine")), rows((2, "oslo", 1, "theirs")))
    assert result.tries == 1
    assert seen(table) == [(1, "oslo", "mine"), (2, "oslo", "theirs")]


def test_retries_are_counted_and_then_the_conflict_is_raised(table, monkeypatch):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    none = {"hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(CommitConflict) as caught:
        racing(table, monkeypatch, rows((1, "oslo", 2, "A")), rows((2, "oslo", 2, "B")), options=none)
    assert caught.value.condition == "CONCURRENT_COMMIT"
    assert len(caught.value.fields["groups"]) == 1
    assert seen(table) == [(1, "oslo", "a"), (2, "oslo", "B")]


def test_log_tells_of_conflicts_once_for_each_write(table, monkeypatch, caplog):
    table.write(rows((1, "oslo", 0, "first")))
    commit, others = Transaction.commit, iter([1, 2])

    def late(self, *args, **kwargs):
        if (version := next(others, None)) is not None:
            with monkeypatch.context() as alone:
                alone.setattr(Transaction, "commit", commit)
                table.write(rows((1, "oslo", version, "theirs")))
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    monkeypatch.setattr("drawstring.write.pipeline._FIRST_WAIT_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, logger="drawstring"):
        assert table.write(rows((1, "oslo", 3, "mine"))).tries == 3
    told = [record for record in caplog.records if "Trying again" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.INFO]
    assert "(try 3)" in caplog.records[-1].getMessage()
    assert seen(table) == [(1, "oslo", "mine")]


def test_overwrite_is_not_tried_again_on_rows_that_it_did_not_know(table, monkeypatch):
    table.write(rows((1, "oslo", 1, "a")))
    with pytest.raises(CommitConflict):
        racing(
            table,
            monkeypatch,
            rows((9, "oslo", 1, "all")),
            rows((2, "oslo", 1, "new")),
            operation="insert_overwrite",
        )
    assert seen(table) == [(1, "oslo", "a"), (2, "oslo", "new")]


def test_jobs_that_make_one_table_at_once_all_append_to_it(tmp_path):
    path, failures = tmp_path / "t", []

    def job(number: int) -> None:
        try:
            write_rows(
                ArrowRows(rows((number, "oslo", 1, "x"))),
                LocalStorage(str(path)),
                mode="append",
                options=WriteOptions.of(OPTIONS),
            )
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=job, args=(number,)) for number in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures
    assert [row[0] for row in seen(drawstring.open_table(path))] == list(range(6))


@pytest.mark.parametrize("keys", ["given", "generated"])
def test_bulk_insert_splits_rows_in_pieces_and_keeps_their_order(tmp_path, monkeypatch, keys):
    monkeypatch.setattr(in_process, "_PIECE_ROWS", 7)
    options = {
        k: v for k, v in OPTIONS.items() if keys == "given" or "field" not in k or "partitionpath" in k
    }
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options=options)
    given = rows(*((number, f"c{number % 3}", 1, "x") for number in range(100)))
    reader = pa.RecordBatchReader.from_batches(given.schema, given.to_batches(max_chunksize=40))
    assert table.write(reader, operation="bulk_insert").inserted == 100
    found = table.snapshot().scan().to_arrow().select(["_hoodie_record_key", "id", "city"]).to_pylist()
    assert len({row["_hoodie_record_key"] for row in found}) == 100
    for city in ("c0", "c1", "c2"):
        numbers = [row["id"] for row in found if row["city"] == city]
        assert numbers == [number for number in range(100) if f"c{number % 3}" == city]


def test_new_keys_go_beside_the_file_groups_of_a_pending_clustering(tmp_path, monkeypatch):
    """Growing one of them as a small file would end in PENDING_PLAN, where Hudi writes a new group."""
    storage = new_table(tmp_path / "t", [("1", "oslo", 1, "a")])
    (planned,) = drawstring.open_table(storage.root).snapshot().all_slices()
    group = (planned.group.partition_path, planned.group.file_id)
    monkeypatch.setattr(TimelineReader, "clustering_groups", lambda *_: (group,))
    storage.create_if_absent(".hoodie/timeline/20200101000000000.clustering.requested", b"")
    write(storage, [("2", "oslo", 1, "b")], "insert")
    slices = list(drawstring.open_table(storage.root).snapshot().all_slices())
    assert len(slices) == 2
    assert planned.group in [each.group for each in slices]
