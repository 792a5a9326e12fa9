"""A metadata table written and read back: it lists what storage lists, after every commit."""

from __future__ import annotations

import json
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.errors import UnsupportedTable
from drawstring.formats.avro_schemas import stored_metadata_schema
from drawstring.formats.hfile import HFileReader
from drawstring.storage.local import LocalStorage
from drawstring.storage.memory import MemoryStorage
from drawstring.view.column_stats import ColumnStats
from drawstring.view.metadata_keys import partition_stats_key
from drawstring.view.metadata_records import decode_column_stats, decode_record
from drawstring.view.metadata_table import FOLDER, MetadataTable, open_metadata_table
from drawstring.write.metadata_table.changes import DataTableChange, NewDataFile, change_of_deletion
from drawstring.write.metadata_table.column_ranges import ColumnRange
from drawstring.write.metadata_table.definitions import definitions_with
from drawstring.write.metadata_table.initialise import settings_with
from drawstring.write.metadata_table.layout import group_count
from drawstring.write.metadata_table.records import (
    KeyLocation,
    column_stats_record,
    epoch_millis,
    record_index_values,
)
from drawstring.write.metadata_table.writer import MetadataTableWriter
from drawstring.write.publication import NewFile, Publication
from drawstring.write.slots import Step
from tests.support.hand_table import HandTable

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("p", pa.string()),
        ("d", pa.float64()),
        ("n", pa.list_(pa.int32())),
        ("ts", pa.int64()),
    ]
)
MOR = "MERGE_ON_READ"


def rows(ids, ts, **other):
    return [{"id": i, "p": "x", "d": i / 2, "n": [i], "ts": ts, **other} for i in ids]


@pytest.fixture
def table():
    return HandTable(MemoryStorage(f"memory://{uuid.uuid4()}"), SCHEMA)


def metadata_of(table) -> MetadataTable:
    found = open_metadata_table(table.storage, table.config, table.timeline)
    assert found is not None
    return found


def listed(table):
    """What storage holds, by partition path: the files that carry rows."""
    found: dict[str, list[tuple[str, int]]] = {}
    for entry in table.storage.list(recursive=True):
        if (
            entry.is_directory
            or entry.path.startswith(".hoodie")
            or entry.name.startswith(".hoodie_partition")
        ):
            continue
        found.setdefault(entry.path.rpartition("/")[0], []).append((entry.name, entry.size))
    return {path: sorted(names) for path, names in found.items()}


def check_listing(table):
    assert {path: sorted(names) for path, names in metadata_of(table).all_files().items()} == listed(table)


@pytest.mark.parametrize("partitioned", [True, False])
def test_the_listing_follows_every_commit(table, partitioned):
    table.create(partitioned=partitioned).initialise()
    assert metadata_of(table).all_files() == {}
    a, b = ("a", "b/c") if partitioned else ("", "")
    first = table.next_time()
    base = table.base_file(first, a, rows([1, 2], 1))
    table.commit(first, [base, table.base_file(first, b, rows([3], 1))])
    check_listing(table)
    second = table.next_time()
    table.commit(second, [table.base_file(second, a, rows([1, 2], 2), previous=base)])
    check_listing(table)
    assert table.config.metadata_partitions == (
        ("column_stats", "files", "partition_stats") if partitioned else ("column_stats", "files")
    )


def test_a_commit_that_is_not_completed_in_the_data_table_does_not_count(table):
    table.create().initialise()
    first = table.next_time()
    table.commit(first, [table.base_file(first, "a", rows([1], 1))])
    table.storage.write(f".hoodie/timeline/{table.next_time()}.commit.requested", b"")
    pending = table.instants[-1]
    stat = table.base_file(pending, "a", rows([2], 1))
    from drawstring.model.commit_metadata import CommitMetadata

    table.commit_metadata(pending, CommitMetadata("UPSERT", (stat,)))
    names = [name for name, _ in metadata_of(table).files("a")]
    assert all(first in name for name in names)
    assert len(names) == 1


def test_publishing_twice_or_after_a_crash_is_the_same(table):
    table.create().initialise()
    instant = table.next_time()
    stat = table.base_file(instant, "a", rows([1], 1))
    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    change = DataTableChange([NewDataFile("a", stat.name, stat.file_size)], touched=["a"])
    delta = writer.prepare(change, instant)
    publication = delta.publication(table.next_time())
    for cut in range(len(publication.creates)):
        for file in publication.creates[:cut]:
            table.storage.create_if_absent(file.path, file.content)
    publication.carry_out(table.storage)
    before = {
        e.path: table.storage.read(e.path) for e in table.storage.list(recursive=True) if not e.is_directory
    }
    publication.carry_out(table.storage)
    after = {
        e.path: table.storage.read(e.path) for e in table.storage.list(recursive=True) if not e.is_directory
    }
    assert before == after
    assert not table.storage.exists(f"{FOLDER}/.hoodie/.temp/{instant}")
    assert writer.prepare(change, instant) == delta


def test_markers_name_every_log_file_before_it_exists(table):
    table.create().initialise()
    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    change = DataTableChange([NewDataFile("a", "f-0_0-0-0_1.parquet", 7)], touched=["a"])
    paths = [
        file.path
        for file in writer.prepare(change, "20260101000000000").publication("20260101000000001").creates
    ]
    logs = [path for path in paths if ".log." in path and "/.temp/" not in path]
    assert logs
    for log in logs:
        name = log.removeprefix(FOLDER + "/")
        marker = f"{FOLDER}/.hoodie/.temp/20260101000000000/{name}.marker.CREATE"
        assert paths.index(marker) < paths.index(log)
    assert paths[-1].endswith("_20260101000000001.deltacommit")


def test_deleted_files_and_partitions_go(table):
    table.create().initialise("bloom_filters")
    first = table.next_time()
    old, other = table.base_file(first, "a", rows([1], 1)), table.base_file(first, "b", rows([2], 1))
    table.commit(first, [old, other])
    clean = table.next_time()
    deleted = {"a": [old.name], "b": [other.name]}
    change = change_of_deletion(deleted, columns=("id", "d"), deleted_partitions=["b"])
    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    delta = writer.prepare(change, clean)
    writer.publish(delta, table.next_time())
    assert metadata_of(table).all_files() == {"a": []}
    gone = [stat for stat in delta.metadata.stats if stat.partition_path == "column_stats"]
    assert sum(stat.num_deletes for stat in gone) == 4
    assert {stat.partition_path for stat in delta.metadata.stats} == {
        "column_stats",
        "bloom_filters",
        "files",
    }


def test_statistics_cover_files_of_both_kinds_and_the_whole_partition(table):
    table.create(table_type=MOR).initialise()
    first = table.next_time()
    base = table.base_file(first, "a", rows([1, 5], 1))
    table.commit(first, [base])
    second = table.next_time()
    table.commit(second, [table.log_file(second, base, rows([5], 9, d=float("nan")), [("1", 3)])])
    check_listing(table)
    metadata = metadata_of(table)
    stats = ColumnStats(metadata).statistics({"id": pa.int32(), "ts": pa.int64()}, ["a"])
    found = {
        name: (facts.columns["id"].lower, facts.columns["id"].upper) for (_, name), facts in stats.items()
    }
    assert sorted(found.values()) == [(1, 5), (5, 5)]
    key = partition_stats_key("ts", "a").encode()
    records = [
        record
        for entries, schema in metadata.entries("partition_stats", lambda file: file.lookup([key]))
        for record in decode_column_stats([value for _, value in entries], schema)
    ]
    assert [(r.file_name, r.lower, r.upper, r.value_count) for r in records] == [
        ("a", 1, 1, 2),
        ("a", 1, 9, 1),
    ]
    key = partition_stats_key("d", "a").encode()
    bounds = [
        decode_column_stats([value for _, value in entries], schema)[-1]
        for entries, schema in metadata.entries("partition_stats", lambda file: file.lookup([key]))
        if entries
    ]
    assert (bounds[-1].lower, bounds[-1].upper) == (0.5, math.inf)


@pytest.mark.parametrize(
    ("version", "upgraded", "typed"), [("8", "8", False), ("8", "9", False), ("9", "9", True)]
)
def test_statistics_tell_types_only_where_the_definition_is_of_version_2(table, version, upgraded, typed):
    table.create(**{"hoodie.table.version": version}).initialise()
    table.create(**{"hoodie.table.version": upgraded, **settings_with(table.config, ["column_stats"])})
    first = table.next_time()
    table.commit(first, [table.base_file(first, "a", rows([1], 1))])
    key = partition_stats_key("ts", "a").encode()
    (record,) = [
        record
        for entries, schema in metadata_of(table).entries("partition_stats", lambda file: file.lookup([key]))
        for record in decode_column_stats([value for _, value in entries], schema)
    ]
    assert (record.lower, record.type_ordinal) == (1, 4 if typed else 0)
    _, content = definitions_with(table.storage, table.config, ["column_stats"], ["id"])
    assert json.loads(content)["indexDefinitions"]["column_stats"]["version"] == ("V2" if typed else "V1")


def test_wrappers_tell_dates_and_decimals_where_statistics_tell_no_types():
    for arrow, stored, told in (
        (pa.date32(), 3, 3),
        (pa.decimal128(10, 2), -125, Decimal("-1.25")),
    ):
        _, value = column_stats_record("a", "f", ColumnRange("c", arrow, stored, stored, 1, 0), typed=False)
        record = decode_record(memoryview(value), stored_metadata_schema())["ColumnStatsMetadata"]
        assert record["valueType"] is None
        assert record["minValue"] == {"value": told}
    wide = ColumnRange("c", pa.decimal128(38, 2), 0, 10**17, 1, 0)
    _, value = column_stats_record("a", "f", wide, typed=False)
    record = decode_record(memoryview(value), stored_metadata_schema())["ColumnStatsMetadata"]
    assert record["valueType"] == {"typeOrdinal": 10, "additionalInfo": "38,2"}, "the wrapper has 15 digits"


def test_a_column_that_a_partition_did_not_have_may_be_null_there(table):
    narrow = pa.schema([field for field in SCHEMA if field.name != "d"])
    wide, table.schema = table.schema, narrow
    table.create().initialise()
    first = table.next_time()
    table.commit(first, [table.base_file(first, "a", rows([1], 1))])
    table.schema = wide
    table.storage.delete(".hoodie/.index_defs", recursive=True)
    second = table.next_time()
    table.commit(second, [table.base_file(second, "a", rows([2], 1))])
    key = partition_stats_key("d", "a").encode()
    (record,) = [
        record
        for entries, schema in metadata_of(table).entries("partition_stats", lambda file: file.lookup([key]))
        for record in decode_column_stats([value for _, value in entries], schema)
    ]
    assert record.null_count == 1
    assert record.value_count == 2


def test_an_existing_table_is_listed_with_its_statistics(table):
    table.create(table_type=MOR)
    first = table.next_time()
    base = table.base_file(first, "a", rows([1, 5], 1))
    table.commit(first, [base, table.base_file(first, "b", rows([2], 1))])
    second = table.next_time()
    table.commit(second, [table.log_file(second, base, rows([5], 9))])
    pending = table.next_time()
    table.storage.write(f".hoodie/timeline/{pending}.deltacommit.requested", b"")
    left = table.base_file(pending, "b", rows([7], 1))
    table.initialise("bloom_filters")
    files = metadata_of(table).all_files()
    assert left.name not in [name for name, _ in files["b"]]
    table.storage.delete(left.path)
    assert {path: sorted(names) for path, names in files.items()} == listed(table)
    assert table.config.metadata_partitions == ("bloom_filters", "column_stats", "files", "partition_stats")
    stats = ColumnStats(metadata_of(table)).statistics({"ts": pa.int64()}, ["a", "b"])
    assert {(f.columns["ts"].lower, f.columns["ts"].upper) for f in stats.values()} == {(1, 1), (9, 9)}


def test_keys_of_the_record_index_lie_in_the_group_of_their_hash(table):
    table.create().initialise("record_index")
    assert group_count(table.storage, "record_index") == 10
    first = table.next_time()
    base = table.base_file(first, "a", rows(range(50), 1))
    table.commit(first, [base])
    metadata = metadata_of(table)
    found = {}
    for key, value, schema in metadata.records("record_index", HFileReader.entries):
        found[key] = decode_record(value, schema)["recordIndexMetadata"]
    assert sorted(found, key=int) == [str(i) for i in range(50)]
    one = found["7"]
    halves = (one["fileIdHighBits"], one["fileIdLowBits"])
    whole = b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
    assert f"{uuid.UUID(bytes=whole)}-{one['fileIndex']}" == base.file_id
    assert one["instantTime"] == epoch_millis(first, "UTC")
    assert one["partitionName"] == "a"


def test_file_ids_that_are_no_uuids_are_stored_as_text():
    (value,) = record_index_values(KeyLocation("p", "myfile1", pa.array(["k"])), 5).to_pylist()
    from drawstring.formats.avro_schemas import stored_metadata_schema

    record = decode_record(memoryview(value), stored_metadata_schema())["recordIndexMetadata"]
    assert (record["fileId"], record["fileIdEncoding"]) == ("myfile1", 1)


def test_indexes_that_cannot_be_kept_are_refused(table):
    table.create(**{"hoodie.table.metadata.partitions": "files,secondary_index_x"})
    with pytest.raises(UnsupportedTable, match="secondary_index_x"):
        MetadataTableWriter(table.storage, table.config, table.timeline)
    table.create(**{"hoodie.table.metadata.partitions.inflight": "expr_index_y"})
    with pytest.raises(UnsupportedTable, match="expr_index_y"):
        MetadataTableWriter(table.storage, table.config, table.timeline)


def test_epoch_millis_follow_the_zone_of_the_table():
    assert epoch_millis("20261118040636529", "UTC") == 1794974796529
    assert epoch_millis("20261118040636", "UTC") == 1794974796999


def test_the_record_index_of_an_existing_table_has_the_keys_that_readers_see(tmp_path):
    table = HandTable(LocalStorage(str(tmp_path)), SCHEMA).create(table_type=MOR)
    first = table.next_time()
    base = table.base_file(first, "a", rows([1, 2, 3], 1))
    table.commit(first, [base])
    second = table.next_time()
    table.commit(second, [table.log_file(second, base, rows([2], 2), [("3", None)])])
    table.initialise("record_index")
    keys = [key for key, _, _ in metadata_of(table).records("record_index", HFileReader.entries)]
    assert sorted(keys) == ["1", "2"]


def test_a_publication_is_steps_of_a_slot(table):
    publication = Publication((NewFile("a/b", b"1"),), removes=("a/c",))
    assert publication.steps() == (Step.create("a/b", b"1"), Step.delete_tree("a/c"))
    with pytest.raises(ValueError, match="replaced"):
        Publication((), replaces=(NewFile("a", b""),)).steps()
