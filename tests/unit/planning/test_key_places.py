"""The record index on reads: it is asked only where it is proved to tell of every row."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

import drawstring
from drawstring.planning.key_places import BY_RECORD_INDEX
from tests.golden.harness import extract
from tests.support.histories import COLUMNS, History, Shape
from tests.unit.write.test_histories import take

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("v", pa.string())]
)
INDEX = {
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    # Bloom filters would skip the same files.
    "hoodie.parquet.bloom.filter.enabled": "false",
}
HISTORIES = int(os.environ.get("KEY_HISTORIES", "2"))


def options(table_type="COPY_ON_WRITE", key="id", index="SIMPLE"):
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.table.ordering.fields": "ts",
        "hoodie.index.type": index,
        **INDEX,
    }


def write(path, keys, operation="insert", *, partition="a", ts=1, **more):
    rows = [{"id": f"k{n}", "p": partition, "ts": ts, "n": n, "v": f"{operation} {n}"} for n in keys]
    table = drawstring.open_table(path)
    table.write(pa.Table.from_pylist(rows, schema=SCHEMA), operation=operation, options={**INDEX, **more})


@pytest.fixture
def path(tmp_path, request):
    """Three files, two of them in one partition, of keys that interleave."""
    found = tmp_path / "t"
    drawstring.create_table(found, SCHEMA, options=options(*getattr(request, "param", ())))
    write(found, range(0, 30, 3))
    write(found, range(1, 30, 3))
    write(found, range(2, 30, 3), partition="b")
    return found


def planned(path, condition, **snapshot):
    return drawstring.open_table(path).snapshot(**snapshot).scan().where(condition).plan()


def skipped(path, condition, **snapshot):
    return planned(path, condition, **snapshot).skipped.reasons.get(BY_RECORD_INDEX, 0)


def same_as_plain(path, condition):
    def rows(**more):
        scan = drawstring.open_table(path, options=more).snapshot().scan().where(condition)
        return sorted(map(repr, scan.to_arrow().to_pylist()))

    found = rows()
    assert found == rows(**{"hoodie.enable.data.skipping": "false"})
    return len(found)


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [
        ("id = 'k4'", 2, 1),
        ("_hoodie_record_key = 'k4'", 2, 1),
        ("id IN ('k4', 'k5')", 1, 2),
        ("id IN ('k4', 'k1x') AND v <> 'insert 4'", 2, 0),
        ("id = 'k1x'", 3, 0),
        ("id = 'k4' OR id = 'k6'", 1, 2),
        ("id = 'k4' AND p = 'a'", 1, 1),
        ("id = 'k4' OR n = 5", 0, 2),
        ("NOT id = 'k4'", 0, 29),
    ],
)
def test_files_are_skipped_by_the_record_index(path, condition, files, rows):
    assert skipped(path, condition) == files
    assert same_as_plain(path, condition) == rows


@pytest.mark.parametrize("path", [("COPY_ON_WRITE", "id,n")], indirect=True)
def test_a_key_of_several_columns_is_looked_for_where_each_has_a_value(path):
    assert skipped(path, "id = 'k4' AND n IN (4, 5)") == 2
    assert same_as_plain(path, "id = 'k4' AND n IN (4, 5)") == 1
    assert skipped(path, "id = 'k4'") == 0
    assert same_as_plain(path, "id = 'k4'") == 1


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_a_key_that_is_there_twice_is_found_twice(path, operation):
    write(path, [4, 100], operation)
    (note,) = planned(path, "id = 'k4'").notes
    assert "31 keys" in note
    assert "32 rows" in note
    assert skipped(path, "id = 'k4'") == 0
    assert same_as_plain(path, "id = 'k4'") == 2


def test_a_deleted_key_of_two_leaves_the_other(path):
    write(path, [4], "insert", partition="b")
    # The index knows the second place alone, which goes; as many rows are left as there were keys.
    write(path, [4], "delete", partition="b")
    assert same_as_plain(path, "id = 'k4'") == 1
    assert skipped(path, "id = 'k4'") == 0


def test_a_table_that_lost_its_second_rows_is_proved_again(path):
    write(path, [4], "insert")
    write(path, [4], "delete")
    assert skipped(path, "id = 'k5'") >= 2
    assert same_as_plain(path, "id = 'k4'") == 0


@pytest.mark.parametrize("path", [("COPY_ON_WRITE", "id", "RECORD_INDEX")], indirect=True)
def test_rows_that_moved_to_another_partition_are_found_there(path):
    moving = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
    write(path, [4, 7], "upsert", partition="b", ts=2, **moving)
    assert skipped(path, "id = 'k4'") >= 2
    assert same_as_plain(path, "id = 'k4'") == 1
    assert same_as_plain(path, "id = 'k4' AND p = 'a'") == 0


@pytest.mark.parametrize("path", [("MERGE_ON_READ",)], indirect=True)
def test_logs_of_updates_keep_the_proof_and_deletes_in_logs_end_it(path):
    write(path, [4, 7], "upsert", ts=2)
    plan = planned(path, "id = 'k4'")
    assert [bool(task.slice.log_files) for task in plan.tasks] == [True]
    assert skipped(path, "id = 'k4'") == 2
    assert same_as_plain(path, "id = 'k4'") == 1
    write(path, [7], "delete", ts=3)
    assert skipped(path, "id = 'k4'") == 0
    assert same_as_plain(path, "id = 'k4'") == 1
    drawstring.open_table(path).compact()
    assert skipped(path, "id = 'k4'") == 2
    assert same_as_plain(path, "id IN ('k4', 'k7')") == 1


def test_logs_of_buckets_may_hold_any_key(tmp_path):
    path, buckets = tmp_path / "t", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    drawstring.create_table(path, SCHEMA, options={**options("MERGE_ON_READ"), **buckets})
    write(path, range(30), "upsert", **buckets)
    drawstring.open_table(path).compact()
    write(path, [4, 200], "upsert", ts=2, **buckets)
    assert skipped(path, "id = 'k4'") == 0
    assert "logs may hold keys" in planned(path, "id = 'k4'").notes[0]
    assert same_as_plain(path, "id IN ('k4', 'k200')") == 2


def test_older_states_and_ranges_do_not_ask_it(path):
    table = drawstring.open_table(path)
    before = table.snapshot().latest_instant.requested_time
    write(path, [4], "upsert", ts=2)
    assert skipped(path, "id = 'k4'", as_of=before) == 0
    assert "newest" in planned(path, "id = 'k4'", as_of=before).notes[0]
    changed = drawstring.open_table(path).incremental(begin="000").scan().where("id = 'k4'")
    assert BY_RECORD_INDEX not in changed.plan().skipped.reasons
    assert changed.to_arrow().num_rows == 1


def test_a_write_that_comes_after_the_table_was_opened_is_not_believed(path):
    snapshot = drawstring.open_table(path).snapshot()
    write(path, [4], "delete")
    write(path, [4], "insert", partition="b")
    assert snapshot.scan().where("id = 'k4'").to_arrow()["p"].to_pylist() == ["a"]
    pinned = replace(snapshot, state=replace(snapshot.state))
    assert "a write came after" in pinned.scan().where("id = 'k4'").plan().notes[0]
    assert pinned.scan().where("id = 'k4'").to_arrow()["p"].to_pylist() == ["a"]


def test_an_index_whose_files_are_gone_is_not_asked(path):
    scan = drawstring.open_table(path).snapshot().scan().where("id = 'k4'")
    assert BY_RECORD_INDEX in scan.plan().skipped.reasons
    shutil.rmtree(path / ".hoodie/metadata/record_index")
    assert "cannot be read" in scan.plan().notes[0]
    assert scan.to_arrow().num_rows == 1


def test_too_many_logs_of_the_index_are_not_read(path, monkeypatch):
    monkeypatch.setattr("drawstring.planning.key_places._MAX_LOG_BYTES", 10)
    assert "stands in logs" in planned(path, "id = 'k4'").notes[0]
    assert same_as_plain(path, "id = 'k4'") == 1


def test_only_the_file_of_the_key_is_opened(path):
    plan = planned(path, "id = 'k4'")
    for left_out, _ in plan.skipped.left_out:
        os.unlink(path / left_out.base_file.path)
    scan = drawstring.open_table(path).snapshot().scan().where("id = 'k4'")
    assert [row["n"] for batch in map(scan._read, scan.plan().tasks) for b in batch for row in b.to_pylist()]


def test_the_index_that_hudi_wrote_is_asked(tmp_path):
    path = extract("v9_cow_record_index", tmp_path)
    rows = drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()
    keys = [row["_hoodie_record_key"] for row in rows]
    assert len(set(keys)) == len(keys) > 1
    for key in keys:
        assert same_as_plain(path, f"_hoodie_record_key = '{key}'") == 1
    assert any(skipped(path, f"_hoodie_record_key = '{key}'") for key in keys)


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_key_of_random_histories_is_found_as_without_the_index(tmp_path, kind, seed):
    path, chosen = tmp_path / "t", random.Random(seed)
    index = chosen.choice(["RECORD_INDEX", "SIMPLE", "GLOBAL_SIMPLE"])
    shape = Shape(kind, index != "GLOBAL_SIMPLE", index)
    history = History(shape, seed, engines=("drawstring",))
    drawstring.create_table(path, SCHEMA, options={**shape.options("drawstring", "upsert"), **INDEX})
    for number in range(6):
        take(path, shape, history.next(), INDEX)
        if number == 3:
            take(path, shape, history.next(), INDEX | {"hoodie.datasource.write.operation": "insert"})
        plain = drawstring.open_table(path).snapshot().scan().to_arrow().select(COLUMNS).to_pylist()
        for key in chosen.sample(sorted(row["id"] for row in plain), min(4, len(plain))):
            assert same_as_plain(path, f"id = '{key}'") == sum(row["id"] == key for row in plain)
