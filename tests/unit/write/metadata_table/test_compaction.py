"""The metadata table's own compaction changes nothing that a reader sees."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from drawstring.formats.avro_schemas import stored_metadata_schema
from drawstring.formats.hfile import HFileReader
from drawstring.storage.memory import MemoryStorage
from drawstring.timeline.commit_metadata import parse_compaction_plan
from drawstring.view.metadata_records import decode_column_stats, decode_record
from drawstring.view.metadata_table import FOLDER, MetadataTable, open_metadata_table
from drawstring.write.metadata_table import compaction, records
from drawstring.write.metadata_table.changes import change_of_deletion
from drawstring.write.metadata_table.column_ranges import ColumnRange
from drawstring.write.metadata_table.compaction import is_due, prepare_compaction
from drawstring.write.metadata_table.writer import MetadataTableWriter
from tests.support.hand_table import HandTable
from tests.support.metadata_check import merged_ranges

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.int64())])


def rows(ids, ts):
    return [{"id": i, "p": "x", "ts": ts} for i in ids]


@pytest.fixture
def table():
    found = HandTable(MemoryStorage(f"memory://{uuid.uuid4()}"), SCHEMA).create().initialise("record_index")
    return found


def metadata_of(table) -> MetadataTable:
    found = open_metadata_table(table.storage, table.config, table.timeline)
    assert found is not None
    return found


def facts(metadata):
    """Everything that the metadata table says, folded by key."""
    found: dict[str, Any] = {"listing": {p: sorted(f) for p, f in metadata.all_files().items()}}
    found["partition_stats"] = merged_ranges(metadata, {})
    for index in ("column_stats", "record_index"):
        latest = {}
        for part in metadata.slices(index):
            for entries, _, deleted in metadata.history(part):
                for key in deleted:
                    latest.pop(key, None)
                latest |= {key: bytes(value) for key, value in entries}
        found[index] = latest
    return found


def commits(table, count, partition="a"):
    base = None
    for number in range(count):
        instant = table.next_time()
        base = table.base_file(instant, partition, rows(range(number + 1), number), previous=base)
        table.commit(instant, [base])
    return base


def test_a_compaction_is_due_after_ten_deltacommits_and_changes_no_answer(table):
    # Four instants made the table.
    commits(table, 5)
    assert not is_due(metadata_of(table))
    commits(table, 1, "b")
    before = facts(metadata_of(table))
    assert table.compact_metadata()
    assert not is_due(metadata_of(table))
    metadata = metadata_of(table)
    assert all(part.base_file and not part.log_files for part in metadata.slices("files"))
    assert facts(metadata) == before
    commits(table, 12, "c")
    bases = [e.name for e in table.storage.list(f"{FOLDER}/files") if e.name.endswith(".hfile")]
    assert len(bases) == 3


def test_deleted_files_keys_and_statistics_are_not_in_the_new_base_files(table):
    base = commits(table, 2)
    first = base.prev_base_file
    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    change = change_of_deletion({"a": [first]}, columns=("id", "ts"))
    writer.publish(writer.prepare(change, table.next_time()), table.next_time())
    instant = table.next_time()
    table.commit(instant, [table.base_file(instant, "a", rows([1], 9), previous=base)])
    metadata = metadata_of(table)
    prepare_compaction(metadata, table.next_time()).publication(table.next_time()).carry_out(table.storage)
    metadata = metadata_of(table)
    names = [name for name, _ in metadata.files("a")]
    assert first not in names
    assert len(names) == 2
    keys = {key for key, _, _ in metadata.records("record_index", HFileReader.entries)}
    assert keys == {"1"}
    stats = {key for key, _, _ in metadata.records("column_stats", HFileReader.entries)}
    assert len(stats) == 3 * 6 - 2


def test_nothing_is_compacted_while_the_data_table_has_not_decided(table):
    commits(table, 7)
    instant = table.next_time()
    stat = table.base_file(instant, "a", rows([1], 1))
    table.storage.write(f".hoodie/timeline/{instant}.commit.requested", b"")
    from drawstring.model.commit_metadata import CommitMetadata

    writer = MetadataTableWriter(table.storage, table.config, table.timeline)
    from drawstring.write.metadata_table.changes import change_of_commit

    change = change_of_commit(table.storage, CommitMetadata("UPSERT", (stat,)), columns={})
    writer.publish(writer.prepare(change, instant), table.next_time())
    assert not is_due(MetadataTable(table.storage, table.config, table.timeline), after=1)


def test_the_plan_names_every_slice_with_logs(table):
    commits(table, 1)
    metadata = metadata_of(table)
    compaction = prepare_compaction(metadata, "20990101000000000")
    operations = parse_compaction_plan(compaction.plan, source="plan")
    assert {op.file_id for op in operations} == {stat.file_id for stat in compaction.stats}
    assert {op.partition_path for op in operations} == set(table.config.metadata_partitions)
    publication = compaction.publication("20990101000000001")
    assert publication.creates[0].path.endswith("20990101000000000.compaction.requested")
    assert publication.creates[-1].path.endswith("20990101000000000_20990101000000001.commit")


def untyped(lower, upper):
    """A range of a partition as Hudi 1.0 stores it: without the type, and merged with what was there before."""
    record = decode_record(
        memoryview(records.partition_stats_record("a", ColumnRange("n", pa.int32(), lower, upper, 2, 0))[1]),
        stored_metadata_schema(),
    )
    wrapper = "org.apache.hudi.avro.model.IntWrapper"
    stats = {**record["ColumnStatsMetadata"], "valueType": None, "isTightBound": False}
    stats |= {name: (wrapper, stats[name]) for name in ("minValue", "maxValue")}
    return records.encode_record({**record, "ColumnStatsMetadata": stats})


def test_ranges_that_do_not_tell_their_type_are_merged():
    merged = compaction._newest("partition_stats", untyped(1, 5), untyped(3, 9))
    found = decode_column_stats([memoryview(merged)], stored_metadata_schema())[0]
    assert (found.lower, found.upper, found.value_count, found.type_ordinal) == (1, 9, 4, 0)


def whole(lower, upper, values=2, nulls=0):
    """A range of a partition that is marked as all that there is, as Hudi may store it."""
    found = ColumnRange("n", pa.int32(), lower, upper, values, nulls, is_whole=True)
    return records.partition_stats_record("a", found)[1]


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ((1, 5, 4), (3, 9, 6), (1, 9, 6, 0)),
        ((1, 9, 4), (1, 9, 6), (1, 9, 6, 0)),
        ((None, None, 4, 4), (3, 9, 4), (3, 9, 5, 4)),
        ((3, 9, 4), (None, None, 2, 2), (3, 9, 4, 2)),
        ((None, None, 4, 4), (None, None, 5, 5), (None, None, 5, 5)),
    ],
)
def test_a_range_covers_what_a_write_added_that_completed_later_than_it_was_requested(older, newer, expected):
    merged = compaction._newest("partition_stats", whole(*older), whole(*newer))
    found = decode_column_stats([memoryview(merged)], stored_metadata_schema())[0]
    assert (found.lower, found.upper, found.value_count, found.null_count) == expected


def test_a_range_that_covers_the_older_one_stays_as_it_is():
    assert compaction._newest("partition_stats", whole(1, 5), whole(0, 9, 6)) == whole(0, 9, 6)
