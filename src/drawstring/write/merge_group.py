"""Rewriting a file group: its base file, with incoming rows merged in by key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.schema.projection import plan_projection
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import (
    ROW_GROUP_BYTES,
    BaseFileWriter,
    TaskContext,
    WriteContext,
    file_schema,
    with_meta_columns,
)

DELETED = "_drawstring_deleted"
POSITION = "_drawstring_position"
"""Column that numbers rows in the input's own order; rows without it came in that order."""
_BATCH_ROWS = 1 << 16
_KEEP, _DROP = -1, -2


@dataclass(frozen=True)
class MergeRules:
    """How incoming rows meet stored ones.

    - `by_key`: match by record key; otherwise rows are only added (the insert operation).
    - `combine`: keep one of several incoming rows of one key.
    - `ordering_fields`: a row replaces another only if it is not older by these; none: the last one wins, and
      so it does among equal ones, where the last of the incoming rows is the last in the input's own order.
    """

    by_key: bool = True
    combine: bool = True
    ordering_fields: tuple[str, ...] = ()


def write_bucket(
    context: WriteContext, task: TaskContext, bucket: Bucket, incoming: pa.Table, rules: MergeRules
) -> WriteStat | None:
    """Write the file of one bucket and return its statistics; None when there is nothing to write.

    Incoming columns: record key, partition path, whether the row deletes, its position in the input unless
    the rows come in that order, then the table's own (any subset when all rows delete).
    """
    rows = _combined(incoming, rules) if rules.combine else incoming
    if bucket.base_file is None:
        return _write_new(context, task, bucket, rows)
    return _rewrite(context, task, bucket, bucket.base_file, rows, rules)


def _write_new(context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table) -> WriteStat | None:
    live = rows.filter(pc.invert(rows.column(DELETED)))
    if not live.num_rows:
        return None
    writer = BaseFileWriter(context, task, bucket.group.partition_path, bucket.group.file_id)
    for chunk in _row_groups(_prepared(context, task, bucket.group.partition_path, live)):
        writer.write(chunk)
    size = writer.close()
    return writer.stat(size, num_inserts=writer.rows)


def _rewrite(
    context: WriteContext,
    task: TaskContext,
    bucket: Bucket,
    base_file: BaseFile,
    rows: pa.Table,
    rules: MergeRules,
) -> WriteStat | None:
    decision = _decide(context, base_file, rows, rules)
    if decision.is_idle:
        return None
    prepared = _prepared(context, task, bucket.group.partition_path, rows)
    writer = BaseFileWriter(context, task, bucket.group.partition_path, bucket.group.file_id)
    merged = _merged(context, base_file, prepared, decision)
    for chunk in _row_groups(merged, schema=file_schema(context.schema)):
        writer.write(chunk)
    size = writer.close()
    return writer.stat(
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


def _decide(context: WriteContext, base_file: BaseFile, rows: pa.Table, rules: MergeRules) -> _Decision:
    deleted = rows.column(DELETED).to_numpy()
    if not rules.by_key:
        count = _row_count(context, base_file)
        return _Decision(np.full(count, _KEEP, dtype=np.int64), np.flatnonzero(~deleted))
    stored = _read(context, base_file, [RECORD_KEY, *rules.ordering_fields])
    found = pc.index_in(stored.column(RECORD_KEY), rows.column(RECORD_KEY).combine_chunks())
    source = pc.fill_null(found, _KEEP).to_numpy().astype(np.int64)
    matched = np.flatnonzero(source >= 0)
    seen = np.zeros(rows.num_rows, dtype=bool)
    seen[source[matched]] = True
    if rules.ordering_fields and len(matched):
        wins = _wins(rows.take(pa.array(source[matched])), stored.take(pa.array(matched)), rules)
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


def _combined(rows: pa.Table, rules: MergeRules) -> pa.Table:
    """Keep one row per key, the one that wins; of equal ones the last in the input's own order."""
    encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if len(encoded.dictionary) == rows.num_rows:
        return rows
    if POSITION in rows.column_names:
        # After a shuffle the order of arrival means nothing.
        rows = rows.sort_by(POSITION)
        encoded = rows.column(RECORD_KEY).combine_chunks().dictionary_encode()
    ids = np.asarray(encoded.indices).astype(np.int64)
    return rows.take(pa.array(winning_rows(rows, ids, len(encoded.dictionary), rules)))


def winning_rows(rows: pa.Table, ids: np.ndarray, count: int, rules: MergeRules) -> np.ndarray:
    """Return the rows that stay when one of each id does, in their order; ids are numbers below `count`."""
    if rules.ordering_fields:
        orderings = [_ordering(rows, name) for name in rules.ordering_fields]
        return np.sort(winner_per_key(ids, _kinds(rows, rules), orderings, count))
    return np.sort(last_per_key(ids, count))


def _prepared(context: WriteContext, task: TaskContext, path: str, rows: pa.Table) -> pa.Table:
    """Return incoming rows in the files' schema; columns they lack (deletes) are null and never written."""
    wanted = pa.schema([pa.field(RECORD_KEY, pa.string()), *context.data_schema])
    projected = plan_projection(rows.schema, wanted).apply_table(rows.combine_chunks())
    return with_meta_columns(projected, path, context, task)


def _merged(
    context: WriteContext, base_file: BaseFile, prepared: pa.Table, decision: _Decision
) -> Iterator[pa.Table]:
    start = 0
    for batch in _stream(context, base_file):
        source = decision.source[start : start + batch.num_rows]
        start += batch.num_rows
        yield _merge_batch(pa.Table.from_batches([batch]), prepared, source)
    if len(decision.inserts):
        yield prepared.take(pa.array(decision.inserts))


def _merge_batch(stored: pa.Table, prepared: pa.Table, source: np.ndarray) -> pa.Table:
    if (source == _KEEP).all():
        return stored
    replaced = np.flatnonzero(source >= 0)
    rows = np.arange(len(source))
    rows[replaced] = len(source) + np.arange(len(replaced))
    both = stored
    if len(replaced):
        both = pa.concat_tables([stored, prepared.take(pa.array(source[replaced]))]).unify_dictionaries()
    return both.combine_chunks().take(pa.array(rows[source != _DROP]))


def _stream(context: WriteContext, base_file: BaseFile) -> Iterator[pa.RecordBatch]:
    schema = file_schema(context.schema)
    with context.storage.open(base_file.path) as source:
        file = pq.ParquetFile(source)
        projection = plan_projection(file.schema_arrow, context.schema)
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=projection.file_columns):
            rows = projection.apply(batch)
            arrays = [
                column.dictionary_encode() if pa.types.is_dictionary(target.type) else column
                for column, target in zip(rows.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read(context: WriteContext, base_file: BaseFile, columns: list[str]) -> pa.Table:
    wanted = pa.schema([context.schema.field(name) for name in columns])
    with context.storage.open(base_file.path) as source:
        file = pq.ParquetFile(source)
        projection = plan_projection(file.schema_arrow, wanted)
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=projection.file_columns)
        return pa.Table.from_batches([projection.apply(batch) for batch in batches], schema=wanted)


def _row_count(context: WriteContext, base_file: BaseFile) -> int:
    with context.storage.open(base_file.path) as source:
        return int(pq.read_metadata(source).num_rows)


def _row_groups(tables: Iterator[pa.Table] | pa.Table, schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    """Gather rows into tables of the size of a row group."""
    if isinstance(tables, pa.Table):
        per_group = max(1, int(tables.num_rows * ROW_GROUP_BYTES / max(tables.nbytes, 1)))
        for start in range(0, tables.num_rows, per_group):
            yield tables.slice(start, per_group)
        return
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
