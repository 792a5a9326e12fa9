"""The executor for Arrow rows: everything happens in this process, in threads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.write_options import DELETE
from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.storage.base import Storage
from drawstring.write.assignment import HASH_RANGE, Assignment, Bucket
from drawstring.write.base_files import PartitionedWriter, TaskContext, WriteContext, split_by_path
from drawstring.write.executor import Counts
from drawstring.write.index import Index, SimpleIndex
from drawstring.write.key_generator import (
    check_keys,
    check_partition_path,
    generated_keys,
    partition_paths,
    record_keys,
)
from drawstring.write.merge_group import DELETED, MergeRules, winning_rows, write_bucket
from drawstring.write.plan import WritePlan, field_type

IS_DELETED = "_hoodie_is_deleted"


def as_rows(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Take rows in any form that Arrow understands; raises `InvalidInput` for anything else."""
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise InvalidInput(
        f"The rows are a {type(data).__name__}; expected a pyarrow Table, RecordBatch or RecordBatchReader, or an "
        "object that hands out an Arrow stream, such as a data frame of pandas or polars.",
        condition="ROWS_NOT_ARROW",
    )


class ArrowRows:
    """Rows of an Arrow table, or of a reader, which is read as the write goes on where the operation allows it."""

    def __init__(self, rows: pa.Table | pa.RecordBatchReader, *, index: Index | None = None) -> None:
        self._reader = rows if isinstance(rows, pa.RecordBatchReader) else None
        self._table = rows if isinstance(rows, pa.Table) else None
        self._schema = rows.schema
        self._index: Index = index or SimpleIndex()
        self._plan: WritePlan | None = None
        self._keyed: _Keyed | None = None
        self._groups: dict[FileGroupId, np.ndarray] = {}
        self._is_new: np.ndarray = np.zeros(0, dtype=bool)

    @classmethod
    def of_keyed(cls, table: pa.Table) -> ArrowRows:
        """Take rows that have record key and partition path already, and say whether they delete."""
        rows = cls(table)
        paths = table.column(PARTITION_PATH).combine_chunks().dictionary_encode()
        names = [check_partition_path(path) for path in paths.dictionary.to_pylist()]
        rows._keyed = _Keyed(table, np.asarray(paths.indices).astype(np.int64), names)
        return rows

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows as they come."""
        return self._schema

    def can_repeat(self) -> bool:
        """Whether the rows are still there for another try."""
        return self._table is not None

    def prepare(self, plan: WritePlan, requested_time: str) -> None:
        """Give the rows their record keys and partition paths; generated keys carry the first try's instant."""
        if self._plan is not None and plan.rule != self._plan.rule:
            # Another table came in place of the one that the keys were made for.
            self._keyed = None
        self._plan = plan
        if not plan.goes_by_group or self._keyed is not None:
            return
        if self._table is None:
            assert self._reader is not None
            self._table = self._reader.read_all()
        self._keyed = _Keyed.of(self._table, plan, requested_time)

    def count_rows(self) -> Mapping[str, int]:
        """Count rows by partition path."""
        keyed = self._prepared
        counts = np.bincount(keyed.path_codes, minlength=len(keyed.paths))
        return {path: int(count) for path, count in zip(keyed.paths, counts, strict=True) if count}

    def locate(self, storage: Storage, slices: Sequence[FileSlice]) -> Counts:
        """Find the file groups that hold keys of the rows."""
        keyed = self._prepared
        self._groups, self._is_new = {}, np.ones(keyed.count, dtype=bool)
        for code, path in enumerate(keyed.paths):
            rows = np.flatnonzero(keyed.path_codes == code)
            inside = [found for found in slices if found.group.partition_path == path]
            self._locate_in(storage, rows, inside)
        new = np.bincount(keyed.path_codes[self._is_new], minlength=len(keyed.paths))
        inserts = {path: int(count) for path, count in zip(keyed.paths, new, strict=True) if count}
        return Counts({group: len(rows) for group, rows in self._groups.items()}, inserts)

    def _locate_in(self, storage: Storage, rows: np.ndarray, slices: Sequence[FileSlice]) -> None:
        if not len(rows) or not slices:
            return
        encoded = self._prepared.keys.take(pa.array(rows)).dictionary_encode()
        codes = np.asarray(encoded.indices)
        for located in self._index.locate(storage, encoded.dictionary, slices):
            held = np.zeros(len(encoded.dictionary), dtype=bool)
            held[located.keys] = True
            found = rows[held[codes]]
            self._groups[located.slice.group] = found
            self._is_new[found] = False

    def write_groups(
        self, context: WriteContext, assignment: Assignment, rules: MergeRules
    ) -> list[WriteStat]:
        """Write each bucket's file, in threads."""
        rows_of = self.rows_by_bucket(assignment)

        def run(bucket: Bucket) -> WriteStat | None:
            return write_bucket(
                context, TaskContext(bucket.number), bucket, self.rows(rows_of[bucket.number]), rules
            )

        with ThreadPoolExecutor(_threads()) as pool:
            return [stat for stat in pool.map(run, assignment.buckets) if stat is not None]

    def rows(self, numbers: np.ndarray) -> pa.Table:
        """Return some of the rows, with key and path in front."""
        return self._prepared.table.take(pa.array(numbers))

    def rows_by_bucket(self, assignment: Assignment) -> dict[int, np.ndarray]:
        """Return the numbers of the rows that go to each bucket; a key of several groups goes to all of them."""
        keyed, by_group = self._prepared, assignment.by_group
        found: dict[int, list[np.ndarray]] = {bucket.number: [] for bucket in assignment.buckets}
        for group, rows in self._groups.items():
            found[by_group[group]].append(rows)
        for code, path in enumerate(keyed.paths):
            ranges = [r for r in assignment.ranges if r.partition_path == path]
            rows = np.flatnonzero(self._is_new & (keyed.path_codes == code)) if ranges else np.zeros(0, int)
            places = keyed.places(rows) if len(ranges) > 1 else np.zeros(len(rows), int)
            for wanted in ranges:
                chosen = (places >= wanted.low) & (places < wanted.high)
                found[wanted.bucket].append(rows[chosen])
        # In the order in which they came: it decides among rows that are equal otherwise.
        return {number: np.sort(np.concatenate(parts)) for number, parts in found.items()}

    def append(self, context: WriteContext) -> list[WriteStat]:
        """Write the rows into new file groups; partitions are spread over threads."""
        assert self._plan is not None
        batches = self._reader if self._reader is not None else self._arranged().to_batches()
        self._reader = None
        return _append_in_threads(self._keyed_batches(batches, context.requested_time), context)

    def _keyed_batches(self, batches: Iterable[pa.RecordBatch], requested_time: str) -> Iterator[_Keyed]:
        assert self._plan is not None
        start = 0
        for batch in batches:
            yield _Keyed.of(pa.Table.from_batches([batch]), self._plan, requested_time, start=start)
            start += batch.num_rows

    def _arranged(self) -> pa.Table:
        assert self._plan is not None
        assert self._table is not None
        options = self._plan.options
        if not options.combine_before_insert and options.sort_mode == "NONE":
            return self._table
        keyed = _Keyed.of(self._table, self._plan, "")
        rows = self._table
        if options.combine_before_insert:
            rows = rows.take(pa.array(keyed.latest(self._plan.ordering)))
            keyed = _Keyed.of(rows, self._plan, "")
        if options.sort_mode == "NONE":
            return rows
        order = pc.sort_indices(
            pa.table({"path": pa.array(keyed.path_codes), "key": keyed.keys}),
            sort_keys=[("path", "ascending"), ("key", "ascending")],
        )
        return rows.take(order)

    def close(self) -> None:
        """Let go of the rows."""
        self._table, self._keyed = None, None

    @property
    def _prepared(self) -> _Keyed:
        assert self._keyed is not None, "prepare comes first"
        return self._keyed


class _Keyed:
    """Rows with their keys and paths. `table` has key, path, whether the row deletes, then the rows' own columns."""

    def __init__(self, table: pa.Table, path_codes: np.ndarray, paths: list[str]) -> None:
        self.table, self.path_codes, self.paths = table, path_codes, paths

    @classmethod
    def of(cls, rows: pa.Table, plan: WritePlan, requested_time: str, *, start: int = 0) -> _Keyed:
        batch = rows.combine_chunks().to_batches()
        whole = batch[0] if batch else pa.RecordBatch.from_pylist([], schema=rows.schema)
        keys, paths = _keys(whole, plan, requested_time, start), partition_paths(whole, plan.rule)
        check_keys(keys, whole, plan.rule.key_fields)
        names = {name.lower(): name for name in plan.table_schema.names}
        own = {names[n.lower()]: whole.column(n) for n in whole.schema.names if n.lower() in names}
        if plan.operation == DELETE:
            own = {}
        columns = {RECORD_KEY: keys, PARTITION_PATH: paths, DELETED: _deleted(whole, plan), **own}
        codes = np.asarray(paths.indices).astype(np.int64)
        return cls(pa.table(columns), codes, [check_partition_path(p) for p in paths.dictionary.to_pylist()])

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def keys(self) -> pa.Array:
        column = self.table.column(RECORD_KEY)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Spread rows over the range of hashes, all rows of one key at the same place."""
        codes = np.asarray(self.keys.take(pa.array(rows)).dictionary_encode().indices).astype(np.int64)
        return codes * HASH_RANGE // max(1, int(codes.max(initial=0)) + 1)

    def latest(self, ordering: tuple[str, ...]) -> np.ndarray:
        """Return the rows that stay when one of each key and path does."""
        encoded = self.keys.dictionary_encode()
        both = self.path_codes * len(encoded.dictionary) + np.asarray(encoded.indices)
        distinct, ids = np.unique(both, return_inverse=True)
        return winning_rows(self.table, ids, len(distinct), MergeRules(ordering_fields=ordering))


def _keys(batch: pa.RecordBatch, plan: WritePlan, requested_time: str, start: int) -> pa.Array:
    if plan.rule.key_fields:
        return record_keys(batch, plan.rule)
    return generated_keys(requested_time, task=0, start=start, count=batch.num_rows)


def _deleted(batch: pa.RecordBatch, plan: WritePlan) -> pa.Array:
    if plan.operation == DELETE:
        return pa.array(np.ones(batch.num_rows, dtype=bool))
    kind = field_type(batch.schema, IS_DELETED)
    if kind is not None and pa.types.is_boolean(kind):
        names = {name.lower(): name for name in batch.schema.names}
        return pc.fill_null(batch.column(names[IS_DELETED]), False)
    return pa.array(np.zeros(batch.num_rows, dtype=bool))


def _append_in_threads(parts: Iterable[_Keyed], context: WriteContext) -> list[WriteStat]:
    """Each partition belongs to one thread's writer; what comes in one batch is written side by side."""
    count = _threads()
    writers = [PartitionedWriter(context, TaskContext(number)) for number in range(count)]
    home: dict[str, int] = {}

    def run(number: int, found: list[tuple[str, pa.RecordBatch]]) -> None:
        for path, rows in found:
            writers[number].write_partition(path, rows)

    with ThreadPoolExecutor(count) as pool:
        for keyed in parts:
            shares: list[list[tuple[str, pa.RecordBatch]]] = [[] for _ in range(count)]
            for path, rows in _by_path(keyed):
                shares[home.setdefault(path, len(home) % count)].append((path, rows))
            list(pool.map(run, range(count), shares))
        return [stat for stats in pool.map(lambda writer: writer.close(), writers) for stat in stats]


def _by_path(keyed: _Keyed) -> Iterator[tuple[str, pa.RecordBatch]]:
    table = keyed.table.drop_columns([PARTITION_PATH, DELETED]).combine_chunks()
    paths = keyed.table.column(PARTITION_PATH).combine_chunks()
    encoded = paths if isinstance(paths, pa.DictionaryArray) else paths.dictionary_encode()
    for batch in table.to_batches():
        yield from split_by_path(batch, encoded)


def _threads() -> int:
    return max(1, os.cpu_count() or 1)
