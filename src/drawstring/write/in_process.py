"""The executor for Arrow rows: everything happens in this process, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.write_options import DELETE
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.schema.key_text import field_values
from drawstring.schema.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from drawstring.write.assignment import HASH_RANGE, Assignment, Bucket, InsertRange, Way
from drawstring.write.base_files import (
    PartitionedWriter,
    TaskContext,
    WriteContext,
    split_by_path,
)
from drawstring.write.bucket_index import BucketRule, bucket_numbers
from drawstring.write.compaction import compact_slices
from drawstring.write.executor import Counts
from drawstring.write.group_writers import write_bucket
from drawstring.write.index import Located, LookUp
from drawstring.write.key_generator import (
    KeyGenerator,
    check_keys,
    check_partition_path,
    generated_keys,
    partition_paths,
    record_keys,
)
from drawstring.write.live_keys import without_dead_places
from drawstring.write.log_files import ROW_POSITION
from drawstring.write.merge_group import DELETED, MergeRules, winning_rows
from drawstring.write.moved_rows import MOVES, STAYS, StoredVersions
from drawstring.write.plan import WritePlan, field_type
from drawstring.write.steps import advancing

_NO_ROWS = np.zeros(0, dtype=np.int64)
_PIECE_ROWS, _PIECES_PER_THREAD = 1 << 17, 2
"""Rows that are split by partition together, and how often a thread does so before what it split is written."""

_Piece = tuple[int, pa.RecordBatch]
_Split = Callable[[_Piece], list[tuple[str, pa.RecordBatch]]]


class ArrowRows:
    """Rows of an Arrow table, or of a reader, which is read as the write goes on where the operation allows it."""

    def __init__(self, rows: pa.Table | pa.RecordBatchReader) -> None:
        self._reader = rows if isinstance(rows, pa.RecordBatchReader) else None
        self._table = rows if isinstance(rows, pa.Table) else None
        self._schema = rows.schema
        self._plan: WritePlan | None = None
        self._keyed: _Keyed | None = None
        self._groups: dict[FileGroupId, np.ndarray] = {}
        self._places: dict[FileGroupId, np.ndarray] = {}
        self._leaving: dict[FileGroupId, np.ndarray] = {}
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

    def compact(
        self, context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]
    ) -> list[WriteStat]:
        """Merge slices into new base files, in threads."""
        return compact_slices(context, tasks)

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

    def locate(self, lookup: LookUp) -> Counts:
        """Find the file groups that hold keys of the rows."""
        if lookup.is_global and lookup.combines:
            self._combine_across(lookup.ordering)
        self._forget_places()
        if lookup.is_global:
            self._locate_in(lookup, np.arange(self._prepared.count), lookup.searched)
        else:
            by_path = _slices_by_path(lookup.searched)
            for code, path in enumerate(self._prepared.paths):
                rows = np.flatnonzero(self._prepared.path_codes == code)
                self._locate_in(lookup, rows, by_path.get(path, []))
        return self._counts()

    def count_buckets(self, rule: BucketRule) -> Mapping[tuple[str, int], int]:
        """Count rows by path and bucket number; all of them count as new keys."""
        self._forget_places()
        keyed = self._prepared
        places = keyed.path_codes * rule.buckets + bucket_numbers(keyed.keys, rule)
        found, counts = np.unique(places, return_counts=True)
        return {
            (keyed.paths[place // rule.buckets], place % rule.buckets): count
            for place, count in zip(found.tolist(), counts.tolist(), strict=True)
        }

    def _forget_places(self) -> None:
        self._groups, self._places, self._leaving = {}, {}, {}
        self._is_new = np.ones(self._prepared.count, dtype=bool)

    def _combine_across(self, ordering: tuple[str, ...]) -> None:
        """Keep one row of each key, whatever partitions they name: a global index has a key once."""
        keyed = self._prepared
        encoded = keyed.keys.dictionary_encode()
        if len(encoded.dictionary) == keyed.count:
            return
        ids = np.asarray(encoded.indices).astype(np.int64)
        rules = MergeRules(ordering_fields=ordering)
        kept = winning_rows(keyed.table, ids, len(encoded.dictionary), rules)
        self._keyed = _Keyed(keyed.table.take(pa.array(kept)), keyed.path_codes[kept], keyed.paths)

    def _counts(self) -> Counts:
        keyed = self._prepared
        new = np.bincount(keyed.path_codes[self._is_new], minlength=len(keyed.paths))
        inserts = {path: int(count) for path, count in zip(keyed.paths, new, strict=True) if count}
        touched = [*self._groups.items(), *self._leaving.items()]
        updates: dict[FileGroupId, int] = {}
        for group, rows in touched:
            updates[group] = updates.get(group, 0) + len(rows)
        return Counts(updates, inserts)

    def _locate_in(self, lookup: LookUp, rows: np.ndarray, slices: Sequence[FileSlice]) -> None:
        if not len(rows) or not slices:
            return
        encoded = self._prepared.keys.take(pa.array(rows)).dictionary_encode()
        codes = np.asarray(encoded.indices)
        found_in = lookup.index.locate(lookup.storage, encoded.dictionary, slices)
        located = without_dead_places(lookup, found_in, encoded.dictionary)
        stored = lookup.moves([part.slice.group for part in located]) if lookup.moves else None
        for part in located:
            held = np.zeros(len(encoded.dictionary), dtype=bool)
            held[part.keys] = True
            found = held[codes]
            places = _places(part, len(encoded.dictionary))[codes[found]]
            self._place(part.slice.group, rows[found], places, stored)

    def _place(
        self, group: FileGroupId, rows: np.ndarray, places: np.ndarray, stored: StoredVersions | None
    ) -> None:
        """Bring rows to the group that holds their keys; those that move away are deleted there."""
        keyed = self._prepared
        stays = np.ones(len(rows), dtype=bool)
        if stored is not None:
            elsewhere = np.flatnonzero(keyed.path_codes[rows] != keyed.code_of(group.partition_path))
            outcomes = stored.outcomes(group, *keyed.versions(rows[elsewhere], stored.ordering))
            stays[elsewhere[outcomes != STAYS]] = False
            if len(leaving := rows[elsewhere[outcomes == MOVES]]):
                self._leaving[group] = leaving
        if stays.any():
            self._groups[group], self._places[group] = rows[stays], places[stays]
            self._is_new[rows[stays]] = False

    def write_groups(
        self, context: WriteContext, assignment: Assignment, rules: MergeRules
    ) -> list[WriteStat]:
        """Write each bucket's file, in threads."""
        rows_of = self.rows_by_bucket(assignment)

        def run(bucket: Bucket) -> list[WriteStat]:
            rows = self.rows_of_bucket(bucket, rows_of[bucket.number])
            return write_bucket(context, TaskContext(bucket.number), bucket, rows, rules)

        with ThreadPoolExecutor(_threads()) as pool:
            return [stat for stats in advancing(pool.map(run, assignment.buckets)) for stat in stats]

    def rows(self, share: BucketRows) -> pa.Table:
        """Return the rows of a bucket, with key and path in front; those that leave it only delete."""
        table = self._prepared.table
        if len(share.rows) != table.num_rows:
            table = table.take(pa.array(share.rows))
        if not len(share.leaving):
            return table
        left = self._prepared.table.take(pa.array(share.leaving)).select([RECORD_KEY, PARTITION_PATH])
        # Without values of the ordering columns, which would stand in the way of the key's return.
        left = left.append_column(DELETED, pa.array(np.ones(left.num_rows, dtype=bool)))
        return pa.concat_tables([table, left], promote_options="default").unify_dictionaries()

    def rows_of_bucket(self, bucket: Bucket, share: BucketRows) -> pa.Table:
        """Return the rows of a bucket; for a log also where the base file has their keys."""
        rows, numbers = self.rows(share), share.rows
        if bucket.way is not Way.APPEND or bucket.group not in self._places:
            return rows
        known, places = self._groups[bucket.group], self._places[bucket.group]
        found = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        at = np.where(known[found] == numbers, places[found], -1)
        at = np.concatenate([at, np.full(len(share.leaving), -1)])
        return rows.append_column(ROW_POSITION, pa.array(at, mask=at < 0))

    def rows_by_bucket(self, assignment: Assignment) -> dict[int, BucketRows]:
        """Return the numbers of the rows that go to each bucket; a key of several groups goes to all of them."""
        by_group = assignment.by_group
        found: dict[int, list[np.ndarray]] = {bucket.number: [] for bucket in assignment.buckets}
        leaving = {by_group[group]: rows for group, rows in self._leaving.items()}
        for group, rows in self._groups.items():
            found[by_group[group]].append(rows)
        for number, rows in self._new_rows(assignment):
            found[number].append(rows)
        # In the order in which they came: it decides among rows that are equal otherwise.
        return {
            number: BucketRows(np.sort(np.concatenate([_NO_ROWS, *parts])), leaving.get(number, _NO_ROWS))
            for number, parts in found.items()
        }

    def _new_rows(self, assignment: Assignment) -> Iterator[tuple[int, np.ndarray]]:
        keyed = self._prepared
        by_path: dict[str, list[InsertRange]] = {}
        for wanted in assignment.ranges:
            by_path.setdefault(wanted.partition_path, []).append(wanted)
        for path, ranges in by_path.items():
            rows = np.flatnonzero(self._is_new & (keyed.path_codes == keyed.code_of(path)))
            places = keyed.places(rows, assignment)
            for wanted in ranges:
                yield wanted.bucket, rows[(places >= wanted.low) & (places < wanted.high)]

    def append(self, context: WriteContext) -> list[WriteStat]:
        """Write the rows into new file groups; partitions are spread over threads."""
        assert self._plan is not None
        batches = self._reader if self._reader is not None else self._arranged().to_batches()
        self._reader = None
        split = partial(_split, plan=self._plan, requested_time=context.requested_time)
        return _append_in_threads(_pieces(batches), split, context)

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


@dataclass(frozen=True)
class BucketRows:
    """The rows of one bucket by number: those that it takes, and those that leave it for another partition."""

    rows: np.ndarray
    leaving: np.ndarray


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
        own = {} if plan.operation == DELETE else _own_columns(whole, plan)
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

    def code_of(self, path: str) -> int:
        """Return the number of a partition path; -1 when no row has it."""
        return self._codes.get(path, -1)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {path: code for code, path in enumerate(self.paths)}

    def versions(self, rows: np.ndarray, ordering: tuple[str, ...]) -> tuple[pa.Table, np.ndarray]:
        """Return key and ordering columns of some rows, and which of them delete."""
        some = self.table.select([RECORD_KEY, DELETED, *ordering]).take(pa.array(rows))
        return some.drop_columns([DELETED]), some.column(DELETED).to_numpy()

    def places(self, rows: np.ndarray, assignment: Assignment) -> np.ndarray:
        """Return the place of each row in the ranges of new keys, the same for all rows of one key."""
        if assignment.rule is not None:
            return bucket_numbers(self.keys.take(pa.array(rows)), assignment.rule)
        codes = np.asarray(self.keys.take(pa.array(rows)).dictionary_encode().indices).astype(np.int64)
        return codes * HASH_RANGE // max(1, int(codes.max(initial=0)) + 1)

    def latest(self, ordering: tuple[str, ...]) -> np.ndarray:
        """Return the rows that stay when one of each key and path does."""
        encoded = self.keys.dictionary_encode()
        both = self.path_codes * len(encoded.dictionary) + np.asarray(encoded.indices)
        distinct, ids = np.unique(both, return_inverse=True)
        return winning_rows(self.table, ids, len(distinct), MergeRules(ordering_fields=ordering))


def _places(located: Located, count: int) -> np.ndarray:
    """Return the row of the base file that has each key; -1 where none or several have it."""
    places = np.full(count, -1, dtype=np.int64)
    if located.positions is None:
        return places
    places[located.keys] = located.positions
    places[np.bincount(located.keys, minlength=count) > 1] = -1
    return places


def _keys(batch: pa.RecordBatch, plan: WritePlan, requested_time: str, start: int) -> pa.Array:
    if plan.rule.key_fields:
        return record_keys(batch, plan.rule)
    return generated_keys(requested_time, task=0, start=start, count=batch.num_rows)


def _deleted(batch: pa.RecordBatch, plan: WritePlan) -> pa.Array:
    if plan.operation == DELETE:
        return pa.array(np.ones(batch.num_rows, dtype=bool))
    found = pa.array(np.zeros(batch.num_rows, dtype=bool))
    kind = field_type(batch.schema, IS_DELETED)
    if kind is not None and pa.types.is_boolean(kind):
        names = {name.lower(): name for name in batch.schema.names}
        found = pc.fill_null(batch.column(names[IS_DELETED]), False)
    if plan.deletes_by is None or field_type(batch.schema, plan.deletes_by.field) is None:
        return found
    marked = pc.equal(field_values(batch, plan.deletes_by.field).cast(pa.string()), plan.deletes_by.marker)
    return pc.or_(found, pc.fill_null(marked, False))


def _append_in_threads(pieces: Iterator[_Piece], split: _Split, context: WriteContext) -> list[WriteStat]:
    """Split pieces side by side; then each partition belongs to one thread's writer."""
    count = _threads()
    writers = [PartitionedWriter(context, TaskContext(number)) for number in range(count)]
    home: dict[str, int] = {}

    def write(writer: PartitionedWriter, parts: list[tuple[str, pa.RecordBatch]]) -> None:
        for path, rows in parts:
            writer.write_partition(path, rows)

    with ThreadPoolExecutor(count) as pool:
        while together := list(islice(pieces, _PIECES_PER_THREAD * count)):
            shares: list[list[tuple[str, pa.RecordBatch]]] = [[] for _ in range(count)]
            for path, rows in chain.from_iterable(pool.map(split, together)):
                shares[home.setdefault(path, len(home) % count)].append((path, rows))
            list(pool.map(write, writers, shares))
        return [stat for stats in pool.map(PartitionedWriter.close, writers) for stat in stats]


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[_Piece]:
    """Yield the rows in pieces that threads can share, each with the number of its first row."""
    start = 0
    for batch in batches:
        for at in range(0, batch.num_rows, _PIECE_ROWS):
            yield start + at, batch.slice(at, _PIECE_ROWS)
        start += batch.num_rows


def _split(piece: _Piece, plan: WritePlan, requested_time: str) -> list[tuple[str, pa.RecordBatch]]:
    """Return the rows of each partition, record key first, then the table's own columns."""
    start, batch = piece
    own = _own_columns(batch, plan)
    if not plan.rule.key_fields:
        own = {RECORD_KEY: _keys(batch, plan, requested_time, start), **own}
    parts = split_by_path(pa.record_batch(own), partition_paths(batch, plan.rule))
    return [(path, _with_key(rows, plan.rule)) for path, rows in parts]


def _with_key(rows: pa.RecordBatch, rule: KeyGenerator) -> pa.RecordBatch:
    """Put the record key in front, unless it was generated. To make texts of some rows is cheaper than to move them."""
    if not rule.key_fields:
        return rows
    keys = record_keys(rows, rule)
    check_keys(keys, rows, rule.key_fields)
    return pa.RecordBatch.from_arrays([keys, *rows.columns], names=[RECORD_KEY, *rows.schema.names])


def _own_columns(batch: pa.RecordBatch, plan: WritePlan) -> dict[str, pa.Array]:
    names = {name.lower(): name for name in plan.table_schema.names}
    return {names[n.lower()]: batch.column(n) for n in batch.schema.names if n.lower() in names}


def _slices_by_path(slices: Sequence[FileSlice]) -> dict[str, list[FileSlice]]:
    found: dict[str, list[FileSlice]] = {}
    for one in slices:
        found.setdefault(one.group.partition_path, []).append(one)
    return found


def _threads() -> int:
    return max(1, os.cpu_count() or 1)
