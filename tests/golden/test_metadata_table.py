"""The metadata table that Hudi wrote names the same slices as the directories do."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.planning.table_state import TableState
from drawstring.storage.local import LocalStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.view.file_system_view import visible_slices
from drawstring.view.listing import StorageListing
from drawstring.view.metadata_keys import column_stats_key, file_groups_of, partition_stats_key
from drawstring.view.metadata_records import decode_record
from drawstring.view.metadata_table import open_metadata_table
from drawstring.write.metadata_table.layout import INDEX_PARTITIONS, group_count
from tests.golden import harness


@pytest.mark.parametrize("name", harness.table_names())
def test_the_metadata_table_and_the_directories_agree(name, golden_path):
    storage = LocalStorage(golden_path(name))
    config = read_table_config(storage)
    timeline = TimelineReader(storage, config).load()
    listing = StorageListing(storage, config)
    metadata = open_metadata_table(storage, config, timeline)
    if "files" not in config.metadata_partitions:
        assert metadata is None
        return
    assert metadata is not None
    visibility = TableState(storage, config, timeline).visibility(None)

    def slices(source):
        found = {p: visible_slices(p, source.files(p), visibility) for p in source.partitions()}
        return {partition: slices for partition, slices in found.items() if slices}

    assert slices(metadata) == slices(listing)


KEPT = ("files", "column_stats", "partition_stats", "bloom_filters", "record_index")


@pytest.mark.parametrize(
    "name", [n for n in harness.table_names() if not n.startswith(("v2_", "v3_", "v5_"))]
)
def test_keys_and_file_groups_are_those_that_hudi_chose(name, golden_path):
    storage = LocalStorage(golden_path(name))
    config = read_table_config(storage)
    metadata = open_metadata_table(storage, config, TimelineReader(storage, config).load())
    for index in set(config.metadata_partitions) & set(KEPT) if metadata is not None else ():
        groups = group_count(storage, index)
        prefix = INDEX_PARTITIONS[index].prefix
        for part in metadata.slices(index):
            for file, schema in metadata._hfiles(part):
                entries = list(file.entries())
                keys = pa.array([key.decode() for key, _ in entries], pa.string())
                numbers = file_groups_of(keys, groups)
                assert all(part.group.file_id == f"{prefix}-{number:04d}-0" for number in numbers)
                known = [metadata_key(index, decode_record(value, schema), metadata) for _, value in entries]
                assert all(keys[i].as_py() in expected for i, expected in enumerate(known) if expected)


def metadata_key(index, record, metadata) -> set[str]:
    """The keys that a record may have, for any partition of the table."""
    paths = [*metadata.partitions(), ""]
    if index == "column_stats":
        found = record["ColumnStatsMetadata"]
        return {column_stats_key(found["columnName"], path, found["fileName"]) for path in paths}
    if index == "partition_stats":
        return {partition_stats_key(record["ColumnStatsMetadata"]["columnName"], path) for path in paths}
    return set()
