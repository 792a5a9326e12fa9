"""What an instant of the data table changes, as the metadata table records it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_names import parse_base_file
from drawstring.model.read_task import ReadTask
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage
from drawstring.write.metadata_table.column_ranges import (
    ColumnRange,
    ranges_of_base_file,
    ranges_of_log_file,
)
from drawstring.write.metadata_table.records import FileBloomFilter, KeyLocation

_THREADS = 8
_BLOOM_FILTER, _BLOOM_TYPE = b"org.apache.hudi.bloomfilter", b"hoodie_bloom_filter_type_code"


@dataclass(frozen=True)
class NewDataFile:
    """A file that an instant adds: its statistics by column, and its bloom filter if it has one.

    `ranges` must name every column of the index: a file without any is one without rows to Hudi's readers.
    """

    partition_path: str
    name: str
    size: int
    ranges: Sequence[ColumnRange] = ()
    bloom_filter: FileBloomFilter | None = None


@dataclass(frozen=True)
class DataTableChange:
    """All that an instant adds to and takes from the data table.

    - `touched`: partitions that the instant wrote to; the listing names them although they are known.
    - `deleted`: names of files by partition path, as cleans and rollbacks delete them.
    - `deleted_partitions`: partitions of which nothing is left.
    - `indexed_columns`: the columns of the statistics, so that those of deleted files can go.
    - `located`, `deleted_keys`: what becomes of the record index.
    """

    files: Sequence[NewDataFile] = ()
    touched: Collection[str] = ()
    deleted: Mapping[str, Collection[str]] = field(default_factory=dict)
    deleted_partitions: Collection[str] = ()
    indexed_columns: Collection[str] = ()
    located: Sequence[KeyLocation] = ()
    deleted_keys: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))


RangesOf = Callable[[WriteStat], Sequence[ColumnRange] | None]
PathOf = Callable[[str], str]
"""Where a file of the commit is now: staged files get their names when the commit is decided."""


def at_its_name(path: str) -> str:
    """Where files are that have their names already."""
    return path


def change_of_commit(
    storage: Storage,
    metadata: CommitMetadata,
    *,
    columns: Mapping[str, pa.DataType],
    with_bloom_filters: bool = False,
    ranges_of: RangesOf = lambda stat: None,
    floats_are_exact: bool = False,
    located: Sequence[KeyLocation] = (),
    deleted_keys: pa.Array | None = None,
    path_of: PathOf = at_its_name,
) -> DataTableChange:
    """Return what a commit, deltacommit or replacecommit changes.

    Args:
        storage: where the table is; footers of base files are read.
        metadata: what the commit says; file groups that it replaces stay listed until they are cleaned.
        columns: columns of the statistics with their types; empty when the table keeps none.
        with_bloom_filters: whether the table keeps bloom filters.
        ranges_of: ranges that the writer computed itself; log files of which it tells none are read.
        floats_are_exact: the base files have no bounds where there is NaN, as `formats.parquet_writer` makes them.
        located: record keys that are new, or live in another file group than before.
        deleted_keys: record keys that are gone.
        path_of: where the commit's files are now.
    """

    def new_files(stat: WriteStat) -> list[NewDataFile]:
        path, ranges = path_of(stat.path), ranges_of(stat)
        if ranges is None:
            ranges = _ranges(storage, stat, path, columns, floats_are_exact)
        main = _new_file(storage, stat, path, ranges, with_bloom_filters)
        return [main, *(_side_file(storage, stat, name, path_of) for name in stat.cdc_files)]

    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(new_files, (stat for stat in metadata.stats if stat.path)))
    files = [file for several in found for file in several]
    return DataTableChange(
        files,
        touched=sorted({stat.partition_path for stat in metadata.stats}),
        indexed_columns=tuple(columns),
        located=located,
        deleted_keys=pa.array([], pa.string()) if deleted_keys is None else deleted_keys,
    )


def _ranges(
    storage: Storage,
    stat: WriteStat,
    path: str,
    columns: Mapping[str, pa.DataType],
    floats_are_exact: bool,
) -> Sequence[ColumnRange]:
    if not columns:
        return ()
    if not _is_base(stat):
        return ranges_of_log_file(storage, path, columns)
    return ranges_of_base_file(storage, path, columns, floats_are_exact=floats_are_exact)


def _new_file(
    storage: Storage, stat: WriteStat, path: str, ranges: Sequence[ColumnRange], with_bloom_filters: bool
) -> NewDataFile:
    wanted = with_bloom_filters and _is_base(stat)
    bloom_filter = read_bloom_filter(storage, stat, path) if wanted else None
    return NewDataFile(stat.partition_path, stat.name, stat.file_size, tuple(ranges), bloom_filter)


def _is_base(stat: WriteStat) -> bool:
    return parse_base_file(stat.partition_path, stat.name, stat.file_size) is not None


def change_of_deletion(
    deleted: Mapping[str, Collection[str]],
    *,
    columns: Collection[str] = (),
    deleted_partitions: Collection[str] = (),
) -> DataTableChange:
    """Return what a clean or a rollback changes: files that are gone, by partition path."""
    return DataTableChange(deleted=deleted, deleted_partitions=deleted_partitions, indexed_columns=columns)


def _side_file(storage: Storage, stat: WriteStat, path: str, path_of: PathOf) -> NewDataFile:
    """A file of change records: listed like any other, without statistics."""
    return NewDataFile(stat.partition_path, path.rsplit("/", 1)[-1], storage.stat(path_of(path)).size)


def read_bloom_filter(storage: Storage, stat: WriteStat, path: str) -> FileBloomFilter | None:
    """Return the bloom filter in the footer of a base file that is at `path` now, None when it has none."""
    with storage.open(path) as file:
        footer = pq.read_metadata(file).metadata or {}
    if _BLOOM_FILTER not in footer:
        return None
    type_code = footer.get(_BLOOM_TYPE, b"SIMPLE").decode()
    return FileBloomFilter(stat.partition_path, stat.name, type_code, footer[_BLOOM_FILTER])


def located_in_slices(
    storage: Storage, tasks: Iterable[ReadTask], table_schema: pa.Schema
) -> Iterator[KeyLocation]:
    """Yield the keys of slices as readers see them: what a new record index of an existing table holds.

    `table_schema` has the meta columns. One file group is held at a time.
    """
    for task in tasks:
        batches = read_task(task, storage=storage, table_schema=table_schema, columns=[RECORD_KEY])
        keys = [batch.column(0) for batch in batches]
        if keys:
            group = task.slice.group
            yield KeyLocation(group.partition_path, group.file_id, pa.concat_arrays(keys))
