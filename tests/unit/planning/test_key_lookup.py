"""Conditions on record keys: files whose footers know none of the keys are left out."""

from __future__ import annotations

from functools import cache

import pyarrow as pa
import pytest

import drawstring
from drawstring.planning.key_lookup import BY_BLOOM_FILTER, KeyQuestion
from drawstring.predicates.parse import parse
from tests.support.row_evaluator import outcome

FILES, ROWS = 5, 40


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return cache(lambda kind: make(folder / str(kind), kind))


def make(path, kind, *, table_type="COPY_ON_WRITE"):
    """Files whose keys interleave, so that no range rules any out."""
    schema = pa.schema([("id", kind), ("p", pa.string()), ("v", pa.int32())])
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": table_type,
    }
    drawstring.create_table(str(path), schema, options=options)
    for k in range(FILES):
        ids = [k + FILES * i for i in range(ROWS)]
        values = [f"key {i}" for i in ids] if pa.types.is_string(kind) else ids
        rows = pa.table([pa.array(values, kind), ["a"] * ROWS, pa.array(ids, pa.int32())], schema=schema)
        options = {"hoodie.parquet.small.file.limit": "0"}
        drawstring.open_table(str(path)).write(rows, operation="insert", options=options)
    return str(path)


@pytest.mark.parametrize(
    ("kind", "condition", "files"),
    [
        (pa.int64(), "id = 57", 1),
        (pa.int32(), "id IN (57, 58)", 2),
        (pa.string(), "id = 'key 57'", 1),
        (pa.string(), "id = 'key 57' AND v > 3", 1),
        (pa.string(), "id = 'key 57' OR id <=> 'key 3'", 2),
        (pa.string(), "_hoodie_record_key = 'key 57'", 1),
        (pa.string(), "id = 'key 57' OR v = 57", FILES),
        (pa.string(), "NOT id = 'key 57'", FILES),
    ],
)
def test_a_key_is_read_from_its_file(table, kind, condition, files):
    everything = drawstring.open_table(table(kind)).snapshot().scan()
    scan, rows = everything.where(condition), everything.to_arrow().to_pylist()
    plan = scan.plan()
    # A filter may take a key for another, though hardly ever several.
    assert files <= len(plan.tasks) <= min(FILES, files + 1)
    assert files == FILES or BY_BLOOM_FILTER in plan.skipped.reasons
    found = sorted(row["v"] for row in scan.to_arrow().to_pylist())
    assert found == sorted(row["v"] for row in rows if _matches(condition, row))


def _matches(condition, row):
    return outcome(parse(condition), row) is True


def test_keys_that_were_inserted_twice_are_both_found(tmp_path):
    path = make(tmp_path / "t", pa.int64())
    again = pa.table({"id": pa.array([57], pa.int64()), "p": ["a"], "v": pa.array([1000], pa.int32())})
    options = {"hoodie.parquet.small.file.limit": "0"}
    drawstring.open_table(path).write(again, operation="insert", options=options)
    found = drawstring.open_table(path).snapshot().scan().where("id = 57").to_arrow()
    assert sorted(found["v"].to_pylist()) == [57, 1000]


def test_slices_with_logs_are_read(tmp_path):
    path = make(tmp_path / "t", pa.int64(), table_type="MERGE_ON_READ")
    changed = pa.table(
        {"id": pa.array([0, 1], pa.int64()), "p": ["a"] * 2, "v": pa.array([-1, -2], pa.int32())}
    )
    drawstring.open_table(path).write(changed, operation="upsert")
    scan = drawstring.open_table(path).snapshot().scan().where("id = 57")
    assert scan.to_arrow()["v"].to_pylist() == [57]
    assert {bool(task.slice.log_files) for task in scan.plan().tasks} == {True, False}


@pytest.mark.parametrize("condition", ["id = 5.0", "id IN (5, NULL)", "v = 5", "id > 5"])
def test_conditions_that_tell_no_key(table, condition):
    source = drawstring.open_table(table(pa.int64())).snapshot().scan().source
    assert KeyQuestion(source.state.config, source.schema).keys(parse(condition)) is None


def test_a_text_that_a_generator_replaces_is_not_looked_for(table):
    source = drawstring.open_table(table(pa.string())).snapshot().scan().source
    question = KeyQuestion(source.state.config, source.schema)
    assert question.keys(parse("id = ''")) is None
    assert question.keys(parse("id = 'a'")) == ("a", "id:a")
