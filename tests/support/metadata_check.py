"""The metadata table equals the table: every partition of it compared with what the data files themselves say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Context
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import drawstring
from drawstring.model.file_names import join_path, parse_base_file, parse_log_file
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.view.listing import StorageListing
from drawstring.view.metadata_keys import bloom_filter_key, column_stats_key, partition_stats_key
from drawstring.view.metadata_records import decode_column_stats, decode_record
from drawstring.view.metadata_table import MetadataTable, open_metadata_table
from drawstring.write.metadata_table.column_ranges import ColumnRange, ranges_of_log_file
from drawstring.write.metadata_table.definitions import indexed_columns
from drawstring.write.metadata_table.partition_ranges import range_of_record
from drawstring.write.table_facts import load_state, table_schema

Live = dict[str, tuple[bytes, str]]


def assert_metadata_table_equals_table(storage: Storage, *, expect: tuple[str, ...] | None = None) -> None:
    """Compare listing, statistics, bloom filters and key locations with the data files; nothing may be pending.

    `expect` names the partitions that the metadata table must have.
    """
    state = load_state(storage)
    assert not state.timeline.pending
    if expect is not None:
        assert state.config.metadata_partitions == tuple(sorted(expect))
    metadata = open_metadata_table(storage, state.config, state.timeline)
    assert metadata is not None, "the metadata table is missing or lags behind"
    assert not metadata.timeline.pending
    files = _check_listing(state, metadata)
    checks = {
        "column_stats": _check_column_stats,
        "partition_stats": _check_partition_stats,
        "bloom_filters": _check_bloom_filters,
        "record_index": _check_record_index,
    }
    for name in metadata.indexes:
        if name in checks:
            checks[name](state, metadata, files)


Files = Mapping[str, list[str]]


def _check_listing(state: TableState, metadata: MetadataTable) -> Files:
    listing = StorageListing(state.storage, state.config)
    listed = {
        path: sorted((name, size) for name, size in listing.files(path) if _is_data(path, name))
        for path in listing.partitions()
    }
    told = {path: sorted(found) for path, found in metadata.all_files().items()}
    # A rolled back write may leave the metafile of a partition that holds nothing.
    told, listed = ({path: found for path, found in one.items() if found} for one in (told, listed))
    assert told == listed, (told, listed)
    return {path: [name for name, _ in found] for path, found in listed.items()}


def _is_data(path: str, name: str) -> bool:
    return (parse_base_file(path, name, 0) or parse_log_file(path, name.removesuffix(".cdc"), 0)) is not None


def live_records(metadata: MetadataTable, index: str) -> Live:
    """Return the records of an index that count."""
    found: Live = {}
    for one in metadata.slices(index):
        for entries, schema, deleted in metadata.history(one):
            for key in deleted:
                found.pop(key.decode(), None)
            found.update({key.decode(): (bytes(value), schema) for key, value in entries})
    return found


def _ranges(
    metadata: MetadataTable, index: str, columns: Mapping[str, pa.DataType]
) -> dict[str, ColumnRange]:
    if index == "partition_stats":
        return merged_ranges(metadata, columns)
    live = live_records(metadata, index)
    decoded = {
        key: decode_column_stats([memoryview(value)], schema)[0] for key, (value, schema) in live.items()
    }
    ranges = {
        key: range_of_record(record, columns.get(record.column_name))
        for key, record in decoded.items()
        if not record.is_deleted
    }
    assert None not in ranges.values()
    return ranges  # type: ignore[return-value]


def merged_ranges(metadata: MetadataTable, columns: Mapping[str, pa.DataType]) -> dict[str, ColumnRange]:
    """Ranges of partitions are merged by whoever reads them, in whatever order they were written."""
    found: dict[str, ColumnRange] = {}
    for one in metadata.slices("partition_stats"):
        for entries, schema, deleted in metadata.history(one):
            for key in deleted:
                found.pop(key.decode(), None)
            for key, value in entries:
                record = decode_column_stats([memoryview(bytes(value))], schema)[0]
                known, new = found.pop(key.decode(), None), None
                if not record.is_deleted:
                    new = range_of_record(record, columns.get(record.column_name))
                    assert new is not None
                    found[key.decode()] = known.merged(new) if known is not None else new
    return found


def _truth(storage: Storage, path: str, columns: Mapping[str, pa.DataType]) -> list[ColumnRange]:
    """The ranges of a file by reading every row of it."""
    if not path.endswith(".parquet"):
        return ranges_of_log_file(storage, path, columns)
    table = pq.read_table(storage.open(path))
    found = []
    for name, arrow in columns.items():
        values: Any = pa.nulls(table.num_rows)
        if name.split(".")[0] in table.column_names:
            values = table.column(name.split(".")[0])
            for part in name.split(".")[1:]:
                values = pc.struct_field(values, part)
        found.append(_range(name, arrow, values))
    return found


def _range(name: str, arrow: pa.DataType, values: Any) -> ColumnRange:
    rows = [value for value in values.to_pylist() if value is not None]
    numbers = [value for value in rows if not (isinstance(value, float) and math.isnan(value))]
    upper: Any = max(numbers, default=None)
    if len(numbers) < len(rows):
        upper = math.inf
    return ColumnRange(name, arrow, min(numbers, default=None), upper, len(values), values.null_count)


def _comparable(value: Any, arrow: pa.DataType) -> Any:
    """A value as statistics store it."""
    if value is None or isinstance(value, (str, bytes, float, bool)):
        return value
    if pa.types.is_decimal(arrow) and not isinstance(value, int):
        return int(value.scaleb(arrow.scale, Context(prec=100)))
    if pa.types.is_timestamp(arrow) and not isinstance(value, int):
        return pa.scalar(value, pa.timestamp("us", arrow.tz)).value
    if pa.types.is_date(arrow) and not isinstance(value, int):
        return pa.scalar(value, pa.date32()).value
    return value


def _assert_covers(told: ColumnRange, true: ColumnRange, where: str) -> None:
    lower, upper = (_comparable(value, true.type) for value in (true.lower, true.upper))
    if lower is None and upper is None:
        return
    assert told.lower is not None, where
    assert told.upper is not None, where
    promoted = told.promoted(true.type)
    if isinstance(promoted.lower, str) and not isinstance(lower, str):
        # The file is older than the column's promotion to text.
        lower, upper = str(lower), str(upper)
    assert lower is None or promoted.lower <= lower, where
    assert upper is None or promoted.upper >= upper, where


def _columns(state: TableState) -> dict[str, pa.DataType]:
    schema = table_schema(state)
    return indexed_columns(state.storage, state.config, schema if schema is not None else pa.schema([]))


def _check_column_stats(state: TableState, metadata: MetadataTable, files: Files) -> None:
    columns = _columns(state)
    told = _ranges(metadata, "column_stats", columns)
    expected = {
        column_stats_key(column, path, name): (path, name, column)
        for path, names in files.items()
        for name in names
        if not name.endswith(".cdc")
        for column in columns
    }
    for path, names in files.items():
        for name in names:
            for true in _truth(state.storage, join_path(path, name), columns):
                key = column_stats_key(true.column, path, name)
                # A file that is older than a column has no record of it.
                if key in told:
                    _assert_covers(told[key], true, f"{path}/{name} {true.column}")
                    assert told[key].null_count == true.null_count, (name, true)
                    assert told[key].value_count == true.value_count, (name, true)
                else:
                    assert true.lower is None, (name, true)
    known = {bloom_filter_key(path, name) for path, names in files.items() for name in names}
    # What is left of deleted files would be harmless, but grow without end.
    assert {key[12:] for key in told} <= known, set(told) - set(expected)


def _check_partition_stats(state: TableState, metadata: MetadataTable, files: Files) -> None:
    """They cover what is seen now: those of Hudi do not cover older slices."""
    columns = _columns(state)
    told = _ranges(metadata, "partition_stats", columns)
    for path in files:
        for name in (file.name for found in state.view(None).slices(path) for file in found.files):
            for true in _truth(state.storage, join_path(path, name), columns):
                key = partition_stats_key(true.column, path)
                if key in told:
                    _assert_covers(told[key], true, f"{path} {true.column}")
                else:
                    assert true.lower is None, (path, true)


def _check_bloom_filters(state: TableState, metadata: MetadataTable, files: Files) -> None:
    live = live_records(metadata, "bloom_filters")
    told = {
        key
        for key, (value, schema) in live.items()
        if not decode_record(memoryview(value), schema)["BloomFilterMetadata"]["isDeleted"]
    }
    expected = set()
    for path, names in files.items():
        for name in names:
            if name.endswith(".parquet"):
                footer = pq.read_metadata(state.storage.open(join_path(path, name))).metadata or {}
                if b"org.apache.hudi.bloomfilter" in footer:
                    expected.add(bloom_filter_key(path, name))
    assert told == expected


def _check_record_index(state: TableState, metadata: MetadataTable, _files: Files) -> None:
    told = {}
    for key, (value, schema) in live_records(metadata, "record_index").items():
        found = decode_record(memoryview(value), schema)["recordIndexMetadata"]
        told[key] = (found["partitionName"], _file_id(found))
    snapshot = drawstring.open_table(state.storage.root).snapshot()
    # Inserts may make a key twice; then either place is right.
    true: dict[str, set[tuple[str, str]]] = {}
    for partition in snapshot.partitions():
        for task in snapshot.tasks(partition):
            batches = snapshot.read(
                task,
                storage=state.storage,
                table_schema=snapshot.schema,
                columns=["_hoodie_record_key"],
                predicate=None,
            )
            keys = [key for batch in batches for key in batch.column(0).to_pylist()]
            for key in keys:
                true.setdefault(key, set()).add((partition, task.slice.group.file_id))
    assert set(told) == set(true)
    assert all(place in true[key] for key, place in told.items())


def _file_id(found: Mapping[str, Any]) -> str:
    if found["fileIdEncoding"] == 1:
        return str(found["fileId"])
    halves = (found["fileIdHighBits"] % 2**64, found["fileIdLowBits"] % 2**64)
    digits = "".join(f"{half:016x}" for half in halves)
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f"{uuid}-{found['fileIndex']}"
