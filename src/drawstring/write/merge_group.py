"""Base files of file groups: a new one, or one that is rewritten with incoming rows merged in by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.parquet import stream_batches
from drawstring.merge.ordering import (
    Kinds,
    Mask,
    event_kinds,
    last_per_key,
    normalised,
    older_stands,
    winner_per_key,
)
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import BaseFile
from drawstring.model.read_task import MergeSpec, ReadTask
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import FILE_NAME, RECORD_KEY
from drawstring.schema.projection import plan_projection
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import (
    ROW_GROUP_BYTES,
    BaseFileWriter,
    TaskContext,
    WriteContext,
    constant,
    file_schema,
    with_meta_columns,
)

DELETED = "_drawstring_deleted"
POSITION = "_drawstring_position"
"""Column that numbers rows in the input's own order; rows without it came in that order."""
_BATCH_ROWS = 1 << 16
_KEEP, _DROP = -1, -2
_ROWS_PER_CHANGE = 1024
"""Where at most one stored row of so many changes, the others are not copied."""


@dataclass(frozen=True)
class MergeRules:
    """How incoming rows meet stored ones.

    - `by_key`: match by record key; otherwise rows are only added (the insert operation).
    - `combine`: keep one of several incoming rows of one key.
    - `merge`: how versions of a record are merged where it takes more than to choose one of them.
    - `ordering_fields`: a row replaces another only if it is not older by these; none: the last one wins, and
      so it does among equal ones, where the last of the incoming rows is the last in the input's own order.
    """

    by_key: bool = True
    combine: bool = True
    ordering_fields: tuple[str, ...] = ()
    merge: MergeSpec | None = None


def create_base_file(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[WriteStat]:
    """Write the base file of a new group; rows that delete have nothing to delete."""
    live = rows.filter(pc.invert(rows.column(DELETED)))
    if not live.num_rows:
        return
    writer = BaseFileWriter(context, task, bucket.group.partition_path, bucket.group.file_id)
    for chunk in _parted(prepared_rows(context, task, bucket.group.partition_path, live)):
        writer.write(chunk)
    size = writer.close()
    yield writer.stat(size, num_inserts=writer.rows)


def rewrite_base_file(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[WriteStat]:
    """Write a group's base file once more, with the rows merged in; nothing where they change nothing."""
    base_file = bucket.base_file
    assert base_file is not None, "only a base file can be rewritten"
    decision = _decide(context, bucket, base_file, rows, rules)
    if decision.is_idle:
        return
    prepared = prepared_rows(context, task, bucket.group.partition_path, rows)
    writer = BaseFileWriter(context, task, bucket.group.partition_path, bucket.group.file_id)
    merged = _merged(context, bucket, base_file, prepared, decision)
    for chunk in row_groups(merged):
        writer.write(chunk)
    size = writer.close()
    yield writer.stat(
        size,
        num_inserts=len(decision.inserts),
        num_updates=int((decision.source >= 0).sum()),
        num_deletes=int((decision.source == _DROP).sum()),
        prev_commit=base_file.instant,
        prev_base_file=base_file.name,
    )


@dataclass(frozen=True)
class _Decision:
    """For each stored row: keep it, drop it, or the number of the incoming row that replaces it."""

    source: np.ndarray
    inserts: np.ndarray

    @property
    def is_idle(self) -> bool:
        return not len(self.inserts) and bool((self.source == _KEEP).all())


def _decide(
    context: WriteContext, bucket: Bucket, base_file: BaseFile, rows: pa.Table, rules: MergeRules
) -> _Decision:
    deleted = rows.column(DELETED).to_numpy()
    if not rules.by_key:
        count = _row_count(context, base_file)
        return _Decision(np.full(count, _KEEP, dtype=np.int64), np.flatnonzero(~deleted))
    stored = _read(context, bucket, base_file, [RECORD_KEY, *rules.ordering_fields])
    found = pc.index_in(stored.column(RECORD_KEY), rows.column(RECORD_KEY).combine_chunks())
    source = pc.fill_null(found, _KEEP).to_numpy().astype(np.int64)
    matched = np.flatnonzero(source >= 0)
    seen = np.zeros(rows.num_rows, dtype=bool)
    seen[source[matched]] = True
    if rules.ordering_fields and len(matched):
        compared = rows.select([DELETED, *rules.ordering_fields])
        wins = _wins(compared.take(pa.array(source[matched])), stored.take(pa.array(matched)), rules)
        source[matched[~wins]] = _KEEP
        matched = matched[wins]
    source[matched[deleted[source[matched]]]] = _DROP
    return _Decision(source, np.flatnonzero(~seen & ~deleted))


def _wins(incoming: pa.Table, stored: pa.Table, rules: MergeRules) -> Mask:
    """Whether each incoming row replaces the stored one."""
    kinds = _kinds(incoming, rules)
    newer = [_ordering(incoming, name, stored.schema.field(name).type) for name in rules.ordering_fields]
    older = [_ordering(stored, name) for name in rules.ordering_fields]
    wins: Mask = ~older_stands(older, newer, newer_kinds=kinds)
    return wins


def _kinds(rows: pa.Table, rules: MergeRules) -> Kinds:
    deleted = rows.column(DELETED).to_numpy()
    return event_kinds(deleted, [rows.column(name).combine_chunks() for name in rules.ordering_fields])


def _ordering(rows: pa.Table, name: str, arrow: pa.DataType | None = None) -> pa.Array:
    values = rows.column(name).combine_chunks()
    return normalised(values if arrow is None or values.type == arrow else values.cast(arrow))


def combined(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """Keep one row per key, the one that wins; of equal ones the last in the input's own order."""
    encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if len(encoded.dictionary) == rows.num_rows:
        return rows
    if POSITION in rows.column_names:
        rows = in_input_order(rows)
        encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    ids = np.asarray(encoded.indices).astype(np.int64)
    return rows.take(pa.array(winning_rows(rows, ids, len(encoded.dictionary), rules)))


def in_input_order(rows: pa.Table) -> pa.Table:
    """Return rows in the order of the input: after a shuffle the order of arrival means nothing."""
    return rows.sort_by(POSITION) if POSITION in rows.column_names else rows


def winning_rows(rows: pa.Table, ids: np.ndarray, count: int, rules: MergeRules) -> np.ndarray:
    """Return the rows that stay when one of each id does, in their order; ids are numbers below `count`."""
    if rules.ordering_fields:
        orderings = [_ordering(rows, name) for name in rules.ordering_fields]
        return np.sort(winner_per_key(ids, _kinds(rows, rules), orderings, count))
    return np.sort(last_per_key(ids, count))


def prepared_rows(context: WriteContext, task: TaskContext, path: str, rows: pa.Table) -> pa.Table:
    """Return incoming rows in the files' schema; columns they lack (deletes) are null and never written."""
    wanted = pa.schema([pa.field(RECORD_KEY, pa.string()), *context.data_schema])
    projected = plan_projection(rows.schema, wanted).apply_table(rows.combine_chunks())
    return with_meta_columns(projected, path, context, task)


def _merged(
    context: WriteContext, bucket: Bucket, base_file: BaseFile, prepared: pa.Table, decision: _Decision
) -> Iterator[pa.Table]:
    start = 0
    for batch in _stream(context, bucket, base_file):
        source = decision.source[start : start + batch.num_rows]
        start += batch.num_rows
        yield _merge_batch(pa.Table.from_batches([batch]), prepared, source)
    for first in range(0, len(decision.inserts), _BATCH_ROWS):
        yield prepared.take(pa.array(decision.inserts[first : first + _BATCH_ROWS]))


def _merge_batch(stored: pa.Table, prepared: pa.Table, source: np.ndarray) -> pa.Table:
    changed = np.flatnonzero(source != _KEEP)
    if len(changed) * _ROWS_PER_CHANGE <= len(source):
        return _spliced(stored, prepared, source, changed.tolist())
    replaced = np.flatnonzero(source >= 0)
    rows = np.arange(len(source))
    rows[replaced] = len(source) + np.arange(len(replaced))
    both = stored
    if len(replaced):
        both = pa.concat_tables([stored, prepared.take(pa.array(source[replaced]))]).unify_dictionaries()
    return both.combine_chunks().take(pa.array(rows[source != _DROP]))


def _spliced(stored: pa.Table, prepared: pa.Table, source: np.ndarray, changed: list[int]) -> pa.Table:
    """Put incoming rows between runs of stored ones, none of which is moved."""
    pieces, start = [], 0
    for row in changed:
        pieces.append(stored.slice(start, row - start))
        if source[row] != _DROP:
            pieces.append(prepared.slice(int(source[row]), 1))
        start = row + 1
    return pa.concat_tables([*pieces, stored.slice(start)]).unify_dictionaries()


def _stream(context: WriteContext, bucket: Bucket, base_file: BaseFile) -> Iterator[pa.RecordBatch]:
    """Yield the stored rows in the schema of files that are written; the file's own name is set by its writer."""
    schema = file_schema(context.schema)
    place = schema.get_field_index(FILE_NAME)
    for rows in stored_batches(context, bucket, base_file, schema.remove(place)):
        arrays = [*rows.columns[:place], constant("", rows.num_rows), *rows.columns[place:]]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(context: WriteContext, bucket: Bucket, base_file: BaseFile, columns: list[str]) -> pa.Table:
    wanted = pa.schema([context.schema.field(name) for name in columns])
    return pa.Table.from_batches(stored_batches(context, bucket, base_file, wanted), schema=wanted)


def stored_batches(
    context: WriteContext, bucket: Bucket, base_file: BaseFile, wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a base file in a wanted schema, in their order; dictionaries are taken from the file."""
    if bucket.reads is not None:
        yield from _read_mapped(context, bucket.reads, wanted)
        return
    repeating = [field.name for field in wanted if pa.types.is_dictionary(field.type)]
    with context.storage.open(base_file.path) as source:
        file = pq.ParquetFile(source, read_dictionary=repeating)
        projection = plan_projection(file.schema_arrow, wanted)
        batches = stream_batches(file, projection.file_columns, batch_rows=_BATCH_ROWS)
        yield from map(projection.apply, batches)


def _read_mapped(context: WriteContext, task: ReadTask, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    # Files keep their own values of partition columns.
    as_stored = replace(task, partition_values={})
    batches = read_task(as_stored, storage=context.storage, table_schema=context.schema, columns=wanted.names)
    for batch in batches:
        arrays = [
            column.dictionary_encode() if pa.types.is_dictionary(field.type) else column.cast(field.type)
            for column, field in zip(batch.columns, wanted, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _row_count(context: WriteContext, base_file: BaseFile) -> int:
    with context.storage.open(base_file.path) as source:
        return int(pq.read_metadata(source).num_rows)


def _parted(table: pa.Table) -> Iterator[pa.Table]:
    per_group = max(1, int(table.num_rows * ROW_GROUP_BYTES / max(table.nbytes, 1)))
    for start in range(0, table.num_rows, per_group):
        yield table.slice(start, per_group)


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Gather rows into tables of the size of a row group."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(held).unify_dictionaries()
            held, size = [], 0
    if held:
        yield pa.concat_tables(held).unify_dictionaries()
