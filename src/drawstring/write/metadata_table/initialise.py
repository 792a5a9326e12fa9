"""A new metadata table, or new partitions of one: filled from what the data table's files are.

Each partition has an instant of its own that no data table has (`00000000000000000`, then one more for each). It
must happen under the table's lock, and the settings name the partitions only after everything is there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from drawstring.config.properties import format_properties, table_checksum
from drawstring.config.table_config import INDEX_DEFINITIONS, METADATA_PARTITIONS, TableConfig
from drawstring.formats.avro_schemas import stored_metadata_schema
from drawstring.formats.hfile_writer import record_key_info, write_sorted
from drawstring.formats.log_blocks import Header
from drawstring.formats.log_writer import delete_block
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_names import base_file_name, log_file_name, parse_base_file, parse_log_file
from drawstring.storage.base import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.view.listing import METAFILE, StorageListing
from drawstring.view.metadata_table import FOLDER
from drawstring.write.clock import after
from drawstring.write.commit_encoding import encode_commit
from drawstring.write.metadata_table import layout
from drawstring.write.metadata_table.changes import DataTableChange, NewDataFile, read_bloom_filter
from drawstring.write.metadata_table.column_ranges import ranges_of_base_file, ranges_of_log_file
from drawstring.write.metadata_table.definitions import definitions_with, has_typed_statistics
from drawstring.write.metadata_table.records import KeyLocation, epoch_millis, partition_list_record
from drawstring.write.metadata_table.writer import (
    IndexChange,
    commit_metadata,
    index_changes,
    rows_by_group,
    sorted_entries,
)
from drawstring.write.publication import NewFile, Publication

OPERATION = "BULK_INSERT_PREPPED"
PENDING_KEY = "hoodie.table.metadata.partitions.inflight"
_ORDER = (
    layout.FILES,
    layout.COLUMN_STATS,
    layout.BLOOM_FILTERS,
    layout.RECORD_INDEX,
    layout.PARTITION_STATS,
)
_TIMELINE = f"{FOLDER}/.hoodie/timeline"


def default_partitions(config: TableConfig) -> tuple[str, ...]:
    """Return the partitions of a new table's metadata table, as Hudi 1.2 makes them by default."""
    always = (layout.COLUMN_STATS, layout.FILES)
    return (*always, layout.PARTITION_STATS) if config.partition_fields else always


def existing_files(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    *,
    columns: Mapping[str, pa.DataType],
    with_bloom_filters: bool = False,
    located: Sequence[KeyLocation] = (),
) -> DataTableChange:
    """Return everything that a data table holds, as one change; files of pending instants are left to their writers.

    Statistics come from footers; log files are read. `located` tells the keys for a record index.
    """
    listing = StorageListing(storage, config)
    files = [
        _existing_file(storage, path, name, size, columns, with_bloom_filters)
        for path in listing.partitions()
        for name, size in listing.files(path)
        if _is_committed(path, name, timeline)
    ]
    return DataTableChange(
        files, touched=listing.partitions(), indexed_columns=tuple(columns), located=located
    )


def _is_committed(path: str, name: str, timeline: Timeline) -> bool:
    found = parse_base_file(path, name, 0) or parse_log_file(path, name.removesuffix(".cdc"), 0)
    return found is not None and timeline.is_committed(found.instant)


def _existing_file(
    storage: Storage,
    partition_path: str,
    name: str,
    size: int,
    columns: Mapping[str, pa.DataType],
    with_bloom_filters: bool,
) -> NewDataFile:
    base = parse_base_file(partition_path, name, size)
    if base is None:
        log = parse_log_file(partition_path, name, size)
        ranges = ranges_of_log_file(storage, log.path, columns) if log and columns else []
        return NewDataFile(partition_path, name, size, ranges)
    stat = WriteStat(base.file_id, base.path, partition_path, file_size=size)
    bloom_filter = read_bloom_filter(storage, stat, base.path) if with_bloom_filters else None
    ranges = ranges_of_base_file(storage, base.path, columns) if columns else []
    return NewDataFile(partition_path, name, size, ranges, bloom_filter)


def initialise(
    storage: Storage,
    config: TableConfig,
    change: DataTableChange,
    *,
    partitions: Collection[str],
    newest_time: str,
) -> Publication:
    """Return the steps that make partitions of the metadata table; the settings are the caller's last step.

    Args:
        storage: the data table's.
        config: the data table's settings; partitions that they name already are left alone.
        change: all that the table holds, see `existing_files`; nothing for a new table.
        partitions: the partitions to make; `files` must be among them, or be there.
        newest_time: a time that nothing on either timeline exceeds; the instants complete right after it.
    """
    layout.check_supported(partitions, source=storage.root)
    new = [name for name in _ORDER if name in partitions and name not in config.metadata_partitions]
    first = 0 if layout.FILES in new else _next_number(storage)
    names = frozenset(new)
    millis = epoch_millis(newest_time, config.timezone)
    typed = has_typed_statistics(storage, config)
    kept = names | {layout.FILES}
    changes = {
        found.name: found for found in index_changes(change, kept, newest_time, millis, None, typed=typed)
    }
    if layout.FILES in changes and not len(changes[layout.FILES].keys):
        changes[layout.FILES] = IndexChange.of(layout.FILES, [partition_list_record(())])
    creates = (
        [NewFile(f"{FOLDER}/.hoodie/hoodie.properties", _settings(config))] if layout.FILES in new else []
    )
    completion = newest_time
    for number, name in enumerate(new, start=first):
        completion = after(completion)
        creates += _partition_files(changes[name], f"{number:017d}", completion)
    defined = definitions_with(storage, config, names, change.indexed_columns)
    return Publication(tuple(creates), replaces=(NewFile(*defined),) if defined else ())


def settings_with(config: TableConfig, partitions: Collection[str]) -> dict[str, str]:
    """Return the data table's settings once its metadata table has these partitions."""
    named = sorted({*config.metadata_partitions, *partitions})
    return {
        **config.properties,
        METADATA_PARTITIONS.key: ",".join(named),
        PENDING_KEY: "",
        INDEX_DEFINITIONS.key: INDEX_DEFINITIONS.find(config.properties),
    }


def _next_number(storage: Storage) -> int:
    """The first number that no initial instant has."""
    names = [
        entry.name.split("_")[0].split(".")[0] for entry in storage.list(_TIMELINE) if not entry.is_directory
    ]
    return max((int(name) for name in names if name.isdigit() and name.startswith("0000")), default=-1) + 1


def _partition_files(change: IndexChange, instant: str, completion_time: str) -> Iterator[NewFile]:
    """Yield the files of a new partition: an empty log for each file group, a base file where there are entries."""
    partition = layout.INDEX_PARTITIONS[change.name]
    folder = f"{FOLDER}/{change.name}"
    yield NewFile(f"{_TIMELINE}/{instant}.deltacommit.requested", b"")
    yield NewFile(f"{_TIMELINE}/{instant}.deltacommit.inflight", b"")
    yield NewFile(f"{folder}/{METAFILE}", _metafile(instant))
    empty = delete_block({Header.INSTANT_TIME: instant}, pa.array([], pa.string()), change.name)
    for group in range(partition.groups):
        name = log_file_name(partition.file_id(group), instant, 1, layout.WRITE_TOKEN)
        yield NewFile(f"{folder}/{name}", empty)
    stats = []
    for group, rows in rows_by_group(change.keys, partition.groups).items():
        keys, values = sorted_entries(change.keys.take(rows), change.values.take(rows))
        content = write_sorted(keys, values, schema=stored_metadata_schema(), info=record_key_info(keys))
        name = base_file_name(partition.file_id(group), layout.WRITE_TOKEN, instant, "hfile")
        yield NewFile(f"{folder}/{name}", content)
        path = f"{change.name}/{name}"
        stats.append(
            WriteStat(
                partition.file_id(group),
                path,
                change.name,
                num_writes=len(keys),
                num_inserts=len(keys),
                file_size=len(content),
            )
        )
    metadata = encode_commit(commit_metadata(OPERATION, stats), is_replace=False)
    yield NewFile(f"{_TIMELINE}/{instant}_{completion_time}.deltacommit", metadata)


def _metafile(instant: str) -> bytes:
    return format_properties({"commitTime": instant, "partitionDepth": "1"}, comment="partition metadata")


def _settings(config: TableConfig) -> bytes:
    properties = {
        "hoodie.table.name": f"{config.name}_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(config.version),
        "hoodie.table.initial.version": str(config.version),
        "hoodie.timeline.layout.version": str(config.layout),
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.datasource.write.drop.partition.columns": "false",
    }
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    now = dt.datetime.now(dt.timezone.utc).isoformat()
    return format_properties(properties, comment=f"Properties saved on {now}")
