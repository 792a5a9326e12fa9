"""Files and merges without Spark; an independent reader reads the tables."""

from __future__ import annotations

import datetime as dt
import errno
import os
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest_write import OPTIONS

from drawstring.config.file_options import FileOptions
from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.storage import LocalStorage
from drawstring.write import base_files
from drawstring.write.assignment import Bucket, Way
from drawstring.write.base_files import PartitionedWriter, TaskContext, WriteContext
from drawstring.write.create import create_table
from drawstring.write.group_writers import write_bucket
from drawstring.write.key_generator import (
    KeyGenerator,
    check_partition_path,
    is_derivable,
    partition_paths,
    record_keys,
)
from drawstring.write.merge_group import DELETED, MergeRules
from drawstring.write.table_facts import load_state, visible_slices
from drawstring.write.transaction import Committed, Transaction

SCHEMA = pa.schema([("id", pa.int32()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
AVRO = (
    '{"type":"record","name":"trips_record","namespace":"hoodie.trips","fields":['
    '{"name":"id","type":["null","int"],"default":null},{"name":"city","type":["null","string"],"default":null},'
    '{"name":"ts","type":["null","long"],"default":null},{"name":"v","type":["null","string"],"default":null}]}'
)
BY_TIME = MergeRules(ordering_fields=("ts",))


@pytest.fixture
def storage(tmp_path):
    storage = LocalStorage(str(tmp_path / "table"))
    create_table(storage, OPTIONS)
    return storage


def context_of(transaction, schema=SCHEMA, **files):
    return WriteContext(
        transaction.state.storage,
        transaction.requested_time,
        prepend_meta_columns(schema),
        FileOptions(**files),
        ("id",),
    )


def incoming(rows, schema=SCHEMA, deleted=False) -> pa.Table:
    """Rows as a task gets them; an id ending in `d` marks a delete."""
    data = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
    keys = pa.array([str(row[0]) for row in rows], pa.string())
    front = pa.table({"_hoodie_record_key": keys, "_hoodie_partition_path": data.column("city")})
    front = front.append_column(DELETED, pa.array([deleted] * len(rows)))
    for field in schema:
        front = front.append_column(field, data.column(field.name))
    return front


def upsert(storage, rows, rules=BY_TIME, *, deleted=False, schema=SCHEMA):
    """Write all rows to the one file group of their partition."""
    transaction = Transaction.begin(storage, operation="UPSERT")
    table = incoming(rows, schema, deleted)
    path = table.column("_hoodie_partition_path")[0].as_py()
    slices = visible_slices(transaction.state, [path])
    bucket = Bucket(0, FileGroupId(path, "f-0"))
    if slices:
        bucket = Bucket(0, slices[0].group, slices[0], Way.REWRITE)
    stats = tuple(write_bucket(context_of(transaction, schema), TaskContext(0), bucket, table, rules))
    assert isinstance(transaction.commit(CommitMetadata("UPSERT", stats, extra={"schema": AVRO})), Committed)
    return stats[0] if stats else None


def rows_of(storage, *columns) -> list[tuple]:
    state = load_state(storage)
    tables = [
        pq.ParquetFile(storage.local_path(s.base_file.path)).read()
        for s in visible_slices(state, state.view(None).partitions())
    ]
    rows = pa.concat_tables(tables).to_pylist() if tables else []
    return sorted(tuple(row[name] for name in (columns or SCHEMA.names)) for row in rows)


def test_newer_row_replaces_older_one_and_ties_go_to_the_newer_write(storage):
    upsert(storage, [(1, "oslo", 10, "a"), (2, "oslo", 10, "b"), (3, "oslo", 10, "c")])
    stat = upsert(storage, [(1, "oslo", 9, "late"), (2, "oslo", 10, "tie"), (4, "oslo", 1, "new")])
    assert rows_of(storage, "id", "v") == [(1, "a"), (2, "tie"), (3, "c"), (4, "new")]
    assert (stat.num_writes, stat.num_updates, stat.num_inserts) == (4, 1, 1)


def test_commit_time_ordering_always_takes_the_last_write(storage):
    upsert(storage, [(1, "oslo", 10, "a")])
    upsert(storage, [(1, "oslo", 1, "b")], MergeRules())
    assert rows_of(storage, "id", "v") == [(1, "b")]


def test_untouched_rows_keep_their_commit_time_but_get_the_new_file_name(storage):
    first = upsert(storage, [(1, "oslo", 10, "a"), (2, "oslo", 10, "b")])
    second = upsert(storage, [(2, "oslo", 11, "B")])
    times = dict(rows_of(storage, "id", "_hoodie_commit_time"))
    assert times[1] < times[2]
    assert {name for (name,) in rows_of(storage, "_hoodie_file_name")} == {second.name}
    assert second.prev_base_file == first.name


def test_rows_of_one_key_are_combined_by_ordering_then_by_arrival(storage):
    upsert(storage, [(1, "oslo", 5, "x"), (1, "oslo", 7, "y"), (1, "oslo", 7, "z"), (1, "oslo", None, "n")])
    assert rows_of(storage, "id", "v") == [(1, "z")]


def test_delete_respects_the_ordering_value_unless_it_has_none(storage):
    upsert(storage, [(1, "oslo", 10, "a"), (2, "oslo", 10, "b"), (3, "oslo", 10, "c")])
    upsert(storage, [(1, "oslo", 9, None), (2, "oslo", 10, None), (3, "oslo", None, None)], deleted=True)
    assert rows_of(storage, "id", "v") == [(1, "a")]


def test_deleting_everything_leaves_an_empty_file(storage):
    upsert(storage, [(1, "oslo", 10, "a")])
    stat = upsert(storage, [(1, "oslo", 11, None)], deleted=True)
    assert (stat.num_writes, stat.num_deletes) == (0, 1)
    assert rows_of(storage) == []


def test_rows_that_all_lose_rewrite_nothing(storage):
    upsert(storage, [(1, "oslo", 10, "a")])
    assert upsert(storage, [(1, "oslo", 1, "late")]) is None


def test_every_stored_row_of_a_repeated_key_is_updated(storage):
    upsert(storage, [(1, "oslo", 1, "a"), (1, "oslo", 1, "b")], MergeRules(by_key=False, combine=False))
    upsert(storage, [(1, "oslo", 2, "c")])
    assert rows_of(storage, "id", "v") == [(1, "c"), (1, "c")]


def test_insert_adds_rows_without_looking_at_keys(storage):
    upsert(storage, [(1, "oslo", 1, "a")], MergeRules(by_key=False, combine=False))
    upsert(storage, [(1, "oslo", 1, "b")], MergeRules(by_key=False, combine=False))
    assert rows_of(storage, "id", "v") == [(1, "a"), (1, "b")]


def test_rewritten_file_takes_the_wider_schema(storage):
    upsert(storage, [(1, "oslo", 1, "a"), (2, "oslo", 1, "b")])
    wide = pa.schema(
        [("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.int32())]
    )
    upsert(storage, [(2, "oslo", 2, "B", 7)], schema=wide)
    assert rows_of(storage, "id", "v", "w") == [(1, "a", None), (2, "B", 7)]


def test_rows_arrive_in_the_files_of_their_partitions(storage, monkeypatch):
    monkeypatch.setattr(base_files, "ROW_GROUP_BYTES", 1 << 14)
    transaction = Transaction.begin(storage, operation="BULK_INSERT")
    writer = PartitionedWriter(context_of(transaction, max_file_size=6000), TaskContext(3, 1, 9))
    cities = ["oslo", "rome", "a/b"]
    for start in range(0, 3000, 300):
        rows = [(n, cities[n % 3], n, f"value {n}") for n in range(start, start + 300)]
        for batch in incoming(rows).drop_columns([DELETED]).to_batches():
            writer.write(batch)
    stats = writer.close()
    assert isinstance(
        transaction.commit(CommitMetadata("BULK_INSERT", tuple(stats), extra={"schema": AVRO})), Committed
    )
    assert [row[0] for row in rows_of(storage)] == list(range(3000))
    assert {s.partition_path for s in stats} == set(cities)
    assert len(stats) > 3
    assert all(s.name.split("_")[1] == "3-1-9" for s in stats)
    names = rows_of(storage, "_hoodie_file_name", "_hoodie_partition_path", "city")
    assert {(n, p) for n, p, _ in names} == {(s.name, s.partition_path) for s in stats}
    assert all(p == c for _, p, c in names)
    sequence = [s for (s,) in rows_of(storage, "_hoodie_commit_seqno")]
    assert len(set(sequence)) == 3000
    assert all(s.startswith(f"{transaction.requested_time}_3_") for s in sequence)
    assert sum(s.num_inserts for s in stats) == 3000
    assert [storage.stat(s.path).size for s in stats] == [s.file_size for s in stats]


@pytest.mark.parametrize("hive_style", [True, False])
@pytest.mark.parametrize("url_encode", [True, False])
def test_tasks_make_keys_and_paths_themselves(storage, hive_style, url_encode):
    rule = KeyGenerator(("id",), ("city",), False, hive_style, url_encode)
    assert is_derivable(rule, SCHEMA)
    assert not is_derivable(KeyGenerator(("id", "missing"), ("city",), True, False, False), SCHEMA)
    rows = [(1, "os:lo", 1, "a"), (2, None, 1, "b"), (3, "", 1, "c"), (4, "os:lo", 1, "d")]
    batch = incoming(rows).drop_columns([DELETED]).to_batches()[0]
    assert record_keys(batch, rule).to_pylist() == ["1", "2", "3", "4"]
    named = "city=" if hive_style else ""
    oslo, none = named + ("os%3Alo" if url_encode else "os:lo"), f"{named}__HIVE_DEFAULT_PARTITION__"
    assert partition_paths(batch, rule).to_pylist() == [oslo, none, none, oslo]
    by_text = KeyGenerator(("v",), (), False, False, False)
    keys = record_keys(batch.set_column(5, "v", pa.array(["x", "", None, "y"])), by_text)
    assert keys.to_pylist() == ["x", None, None, "y"]
    assert partition_paths(batch, by_text).to_pylist() == [""] * 4


def written_by_path(transaction, rows):
    writer = PartitionedWriter(context_of(transaction), TaskContext(0))
    for batch in incoming(rows).drop_columns([DELETED]).to_batches():
        writer.write(batch)
    return writer


def test_every_file_is_on_disk_when_the_writer_is_closed(storage, monkeypatch):
    synced, fsync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (fsync(fd), synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    )
    monkeypatch.setattr(base_files, "_MOST_CLOSING", 3)
    transaction = Transaction.begin(storage, operation="BULK_INSERT")
    synced.clear()
    stats = written_by_path(transaction, [(n, f"p{n}", n, "v") for n in range(40)]).close()
    names = [path.rpartition("/")[2] for path in synced]
    assert sorted(names) == sorted(stat.name for stat in stats)
    assert len(names) == 40
    transaction.abort()


def test_file_that_does_not_reach_the_disk_fails_the_write(storage, monkeypatch):
    transaction = Transaction.begin(storage, operation="BULK_INSERT")
    writer, fsync = written_by_path(transaction, [(n, f"p{n}", n, "v") for n in range(8)]), os.fsync

    def failing(fd):
        if "/p5/" in os.readlink(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EIO, "the disk is gone")
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="the disk is gone"):
        writer.close()
    transaction.abort()


def test_row_without_key_is_shown(storage):
    transaction = Transaction.begin(storage, operation="BULK_INSERT")
    writer = PartitionedWriter(context_of(transaction), TaskContext(0))
    rows = incoming([(1, "oslo", 1, "a"), (2, "oslo", 1, "culprit")]).drop_columns([DELETED])
    rows = rows.set_column(0, "_hoodie_record_key", pa.array(["1", None]))
    with pytest.raises(InvalidInput, match="culprit") as caught:
        writer.write(rows.to_batches()[0])
    assert caught.value.condition == "NULL_RECORD_KEY"
    transaction.abort()


@pytest.mark.parametrize("path", ["..", "a/../b", "/a", "a//b", "a/", ".", "a\0b", ".hoodie", "x" * 256])
def test_partition_path_that_leaves_the_table_is_refused(path):
    with pytest.raises(InvalidInput) as caught:
        check_partition_path(path)
    assert caught.value.condition == "INVALID_PARTITION_PATH"


@pytest.mark.parametrize("path", ["", "a", "a/b", "p=1/q=__HIVE_DEFAULT_PARTITION__", "..a", "é ü"])
def test_ordinary_partition_paths_pass(path):
    assert check_partition_path(path) == path


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed", "lz4_raw"])
def test_independent_reader_reads_every_type(storage, codec):
    hudi = pytest.importorskip("hudi")
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("city", pa.string()),
            ("d", pa.decimal128(10, 2)),
            ("t", pa.timestamp("us", tz="UTC")),
            ("n", pa.timestamp("us")),
            ("day", pa.date32()),
            ("b", pa.binary()),
            ("xs", pa.list_(pa.field("element", pa.int64()))),
            ("m", pa.map_(pa.string(), pa.float64())),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ]
    )
    moment = dt.datetime(2024, 3, 5, 6, 7, 8, 123456)
    row = (
        1,
        "oslo",
        Decimal("-12.34"),
        moment.replace(tzinfo=dt.timezone.utc),
        moment,
        dt.date(2024, 3, 5),
        b"\x00\xff",
        [1, None, 3],
        [("k", 1.5)],
        {"x": 1, "y": None},
    )
    nulls = (2, "oslo", *[None] * 8)
    transaction = Transaction.begin(storage, operation="BULK_INSERT")
    writer = PartitionedWriter(context_of(transaction, schema, codec=codec), TaskContext(0))
    for batch in incoming([row, nulls], schema).drop_columns([DELETED]).to_batches():
        writer.write(batch)
    transaction.commit(CommitMetadata("BULK_INSERT", tuple(writer.close())))
    table = hudi.HudiTableBuilder.from_base_uri(storage.local_path("")).build()
    found = pa.Table.from_batches(table.read()).to_pylist()
    assert [tuple(r[name] for name in schema.names) for r in sorted(found, key=lambda r: r["id"])] == [
        row,
        nulls,
    ]
