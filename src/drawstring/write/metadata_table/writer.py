"""One instant of the data table as a deltacommit of the metadata table, with the same time.

`prepare` computes every byte; `publish`, or whoever carries out `Publication`, only creates files that are absent.
So a commit that was decided can be finished by any process, any number of times. It must happen under the table's
lock, before the data instant completes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table_config import TableConfig
from drawstring.formats.avro_schemas import METADATA_RECORD, schema_json, stored_metadata_schema
from drawstring.formats.hfile_writer import write_sorted
from drawstring.formats.log_blocks import Header
from drawstring.formats.log_writer import data_headers, delete_block, hfile_block
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_names import log_file_name
from drawstring.storage.base import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.view.metadata_keys import bloom_filter_key, column_stats_key, file_groups_of
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write.commit_encoding import encode_commit, encode_inflight
from drawstring.write.metadata_table import layout, records
from drawstring.write.metadata_table.changes import DataTableChange
from drawstring.write.metadata_table.definitions import has_typed_statistics
from drawstring.write.metadata_table.partition_ranges import partition_ranges
from drawstring.write.publication import NewFile, Publication

OPERATION = "UPSERT_PREPPED"
_TIMELINE = f"{FOLDER}/.hoodie/timeline"
_TEMPORARY = f"{FOLDER}/.hoodie/.temp"


@dataclass(frozen=True)
class MetadataDelta:
    """A deltacommit of the metadata table that is ready to be published."""

    instant: str
    logs: tuple[NewFile, ...]
    metadata: CommitMetadata

    def publication(self, completion_time: str) -> Publication:
        """Return the steps; `completion_time` is later than everything on either timeline."""
        announced = f"{_TIMELINE}/{self.instant}.deltacommit"
        marked = f"{_TEMPORARY}/{self.instant}"
        markers = [f"{marked}/{log.path.removeprefix(FOLDER + '/')}.marker.CREATE" for log in self.logs]
        completed = f"{_TIMELINE}/{self.instant}_{completion_time}.deltacommit"
        return Publication(
            (
                NewFile(f"{announced}.requested", b""),
                NewFile(f"{announced}.inflight", encode_inflight(OPERATION)),
                # Hudi's rollback of a commit that was left half way deletes what markers name, and nothing else.
                *(NewFile(path, b"") for path in markers),
                *self.logs,
                NewFile(completed, encode_commit(self.metadata, is_replace=False)),
            ),
            (marked,),
        )


@dataclass(frozen=True)
class IndexChange:
    """Entries of one partition of the metadata table that are new or other, and keys that are gone."""

    name: str
    keys: pa.Array
    values: pa.Array
    deleted: pa.Array

    @classmethod
    def of(cls, name: str, entries: Iterable[records.Entry], deleted: Sequence[str] = ()) -> IndexChange:
        """Gather entries; of equal keys the last one counts."""
        by_key = dict(entries)
        keys, values = pa.array(by_key, pa.string()), pa.array(by_key.values(), pa.binary())
        return cls(name, keys, values, pa.array(deleted, pa.string()))


class MetadataTableWriter:
    """Turns changes of a data table into deltacommits of its metadata table."""

    def __init__(self, storage: Storage, config: TableConfig, timeline: Timeline) -> None:
        """Check that every partition of the metadata table can be kept.

        Args:
            storage: the data table's.
            config: the data table's; it names the partitions of the metadata table, also those being built.
            timeline: the data table's: what is not completed there is not counted here.
        """
        self._storage, self._config = storage, config
        self.partitions = kept_partitions(config)
        layout.check_supported(self.partitions, source=storage.root)
        self.metadata = MetadataTable(storage, config, timeline)
        self._groups: dict[str, int] = {}

    def prepare(self, change: DataTableChange, instant: str) -> MetadataDelta:
        """Compute the deltacommit of a change; nothing is written."""
        logs: list[NewFile] = []
        stats: list[WriteStat] = []
        for index_change in self._index_changes(change, instant):
            for log, stat in log_files(index_change, self._group_count(index_change.name), instant):
                logs.append(log)
                stats.append(stat)
        return MetadataDelta(instant, tuple(logs), commit_metadata(OPERATION, stats))

    def publish(self, delta: MetadataDelta, completion_time: str) -> None:
        """Make a deltacommit visible to readers that also see the data instant completed."""
        delta.publication(completion_time).carry_out(self._storage)

    def _group_count(self, name: str) -> int:
        if name not in self._groups:
            self._groups[name] = layout.group_count(self._storage, name)
        return self._groups[name]

    def _index_changes(self, change: DataTableChange, instant: str) -> Iterator[IndexChange]:
        known = self.metadata if layout.PARTITION_STATS in self.partitions else None
        instant_ms = records.epoch_millis(instant, self._config.timezone)
        typed = has_typed_statistics(self._storage, self._config)
        yield from index_changes(change, self.partitions, instant, instant_ms, known, typed=typed)


def kept_partitions(config: TableConfig) -> frozenset[str]:
    """Return the partitions that every write must keep right: those that are read, and those being built."""
    pending = config.properties.get("hoodie.table.metadata.partitions.inflight", "")
    return frozenset(config.metadata_partitions) | {
        name.strip() for name in pending.split(",") if name.strip()
    }


def commit_metadata(operation: str, stats: Iterable[WriteStat]) -> CommitMetadata:
    """Return what a deltacommit of the metadata table says."""
    return CommitMetadata(operation, tuple(stats), extra={"schema": schema_json(METADATA_RECORD)})


def index_changes(
    change: DataTableChange,
    partitions: frozenset[str],
    instant: str,
    instant_ms: int,
    metadata: MetadataTable | None,
    *,
    typed: bool = True,
) -> Iterator[IndexChange]:
    """Yield what a change does to each of `partitions`; nothing for those that it does not concern.

    `metadata` is the table before the change, from which ranges of partitions are carried on; `typed` says whether
    its statistics tell the types of values.
    """
    if layout.COLUMN_STATS in partitions:
        yield _column_stats(change, typed)
    if layout.PARTITION_STATS in partitions:
        ranges = partition_ranges(metadata, change.files)
        entries = [
            records.partition_stats_record(path, found, typed=typed) for (path, _), found in ranges.items()
        ]
        yield IndexChange.of(layout.PARTITION_STATS, entries)
    if layout.BLOOM_FILTERS in partitions:
        yield _bloom_filters(change, instant)
    if layout.RECORD_INDEX in partitions:
        yield _record_index(change, instant_ms)
    yield IndexChange.of(layout.FILES, _listing(change))


def _listing(change: DataTableChange) -> Iterator[records.Entry]:
    touched = {*change.touched, *(file.partition_path for file in change.files)} - set(
        change.deleted_partitions
    )
    if touched or change.deleted_partitions:
        yield records.partition_list_record(sorted(touched), sorted(change.deleted_partitions))
    added: dict[str, dict[str, int]] = {}
    for file in change.files:
        added.setdefault(file.partition_path, {})[file.name] = file.size
    for path in sorted({*added, *change.deleted}):
        yield records.file_list_record(path, added.get(path, {}), sorted(change.deleted.get(path, ())))


def _column_stats(change: DataTableChange, typed: bool) -> IndexChange:
    entries = (
        records.column_stats_record(file.partition_path, file.name, found, typed=typed)
        for file in change.files
        for found in file.ranges
    )
    deleted = [
        column_stats_key(column, path, name)
        for path, names in change.deleted.items()
        for name in names
        for column in change.indexed_columns
    ]
    return IndexChange.of(layout.COLUMN_STATS, entries, deleted)


def _bloom_filters(change: DataTableChange, instant: str) -> IndexChange:
    found = (file.bloom_filter for file in change.files)
    entries = [records.bloom_filter_record(instant, one) for one in found if one is not None]
    deleted = [bloom_filter_key(path, name) for path, names in change.deleted.items() for name in names]
    return IndexChange.of(layout.BLOOM_FILTERS, entries, deleted)


def _record_index(change: DataTableChange, instant_ms: int) -> IndexChange:
    keys = [located.keys.cast(pa.string()) for located in change.located]
    values = [records.record_index_values(located, instant_ms) for located in change.located]
    return IndexChange(
        layout.RECORD_INDEX,
        pa.concat_arrays(keys) if keys else pa.array([], pa.string()),
        pa.concat_arrays(values) if values else pa.array([], pa.binary()),
        change.deleted_keys.cast(pa.string()),
    )


def log_files(change: IndexChange, groups: int, instant: str) -> Iterator[tuple[NewFile, WriteStat]]:
    """Yield a log file for each file group that a change concerns, and what the deltacommit says of it."""
    partition = layout.INDEX_PARTITIONS[change.name]
    placed = rows_by_group(change.keys, groups)
    gone = rows_by_group(change.deleted, groups)
    for group in sorted({*placed, *gone}):
        rows, deleted = placed.get(group), gone.get(group)
        blocks, count, deletes = [], 0, 0
        if rows is not None:
            keys, values = sorted_entries(change.keys.take(rows), change.values.take(rows))
            content = write_sorted(keys, values, schema=stored_metadata_schema())
            blocks.append(hfile_block(content, data_headers(instant, stored_metadata_schema())))
            count = len(keys)
        if deleted is not None:
            headers = {Header.INSTANT_TIME: instant, Header.SCHEMA: stored_metadata_schema()}
            blocks.append(delete_block(headers, change.deleted.take(deleted), change.name))
            deletes = len(deleted)
        name = log_file_name(partition.file_id(group), instant, 1, layout.WRITE_TOKEN)
        content = b"".join(blocks)
        yield (
            NewFile(f"{FOLDER}/{change.name}/{name}", content),
            _log_stat(change.name, partition.file_id(group), name, len(content), instant, count, deletes),
        )


def _log_stat(
    partition: str, file_id: str, name: str, size: int, instant: str, count: int, deletes: int
) -> WriteStat:
    return WriteStat(
        file_id,
        f"{partition}/{name}",
        partition,
        num_writes=count,
        num_deletes=deletes,
        file_size=size,
        log_files=(name,),
        num_updates=count,
        prev_commit=instant,
    )


def rows_by_group(keys: pa.Array, groups: int) -> Mapping[int, pa.Array]:
    """Return the rows of each file group that has any."""
    numbers = file_groups_of(keys, groups)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(groups + 1))
    return {
        group: pa.array(order[bounds[group] : bounds[group + 1]])
        for group in range(groups)
        if bounds[group] < bounds[group + 1]
    }


def sorted_entries(keys: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return entries as HFiles want them: by key, bytewise; of equal keys the last one counts."""
    octets = keys.cast(pa.binary())
    order = pc.sort_indices(octets)
    octets, values = octets.take(order), values.take(order)
    if len(octets) > 1:
        last = pc.not_equal(octets.slice(0, len(octets) - 1), octets.slice(1))
        keep = pa.concat_arrays([last, pa.array([True])])
        octets, values = octets.filter(keep), values.filter(keep)
    return octets, values
