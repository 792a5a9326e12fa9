"""Tables that capture changes: what a commit did to the rows of a base file that it rewrote stands in change files.

Hudi's readers need them for nothing else: rows of new base files are inserted, those of replaced groups deleted, and
log files are compared with the slice that the commit says they were appended to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.table_config import TableConfig
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.formats.log_blocks import BlockType
from drawstring.formats.log_writer import avro_block_of, data_headers
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import BaseFile
from drawstring.model.file_names import join_path, log_file_name
from drawstring.reading.changes import changed_rows
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.change_images import BEFORE_ONLY, BOTH, KEYS_ONLY
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.schema.row_kinds import AFTER, DELETE, ROW_KIND
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.markers import staged_path
from drawstring.write.merge_group import stored_batches

_SUFFIX = ".cdc"
_BLOCK_ROWS = 1 << 16
_KEYS_SCHEMA = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")],
}


def capture_mode(config: TableConfig) -> str:
    """How much change files hold; empty for a table that captures nothing."""
    return config.cdc_logging_mode if config.captures_changes else ""


def with_changes(context: WriteContext, task: TaskContext, bucket: Bucket, stat: WriteStat) -> WriteStat:
    """What readers of changes need: a log file's slice is named, a rewritten base file gets a change file."""
    if bucket.slice is not None and stat.log_files:
        base = bucket.slice.base_file
        logs = tuple(log.name for log in bucket.slice.log_files)
        return replace(stat, slice_base=base.name if base is not None else "", slice_logs=logs)
    if bucket.base_file is None or stat.log_files:
        return stat
    return _with_change_file(context, task, bucket, bucket.base_file, stat)


def _with_change_file(
    context: WriteContext, task: TaskContext, bucket: Bucket, old: BaseFile, stat: WriteStat
) -> WriteStat:
    changes = _changes(context, bucket, old, stat)
    if not changes.num_rows:
        return stat
    name = log_file_name(stat.file_id, context.requested_time, 1, task.write_token) + _SUFFIX
    path = join_path(stat.partition_path, name)
    size = 0
    with context.storage.open_output(staged_path(context.requested_time, path)) as sink:
        for block in _blocks(context, changes):
            size += len(block)
            sink.write(block)
    return replace(stat, cdc_files=(path,), cdc_sizes=(size,))


def _changes(context: WriteContext, bucket: Bucket, old: BaseFile, stat: WriteStat) -> pa.Table:
    """One row for each change: op, key, and the rows before and after as structs."""
    staged = BaseFile(
        staged_path(context.requested_time, stat.path), stat.file_size, stat.file_id, context.requested_time
    )
    before = pa.Table.from_batches(
        stored_batches(context, bucket, old, context.schema), schema=context.schema
    )
    new = replace(bucket, reads=None)
    after = pa.Table.from_batches(stored_batches(context, new, staged, context.schema), schema=context.schema)
    taken, added = changed_rows(before, after)
    gone = taken.filter(pc.equal(taken.column(ROW_KIND), DELETE))
    olds = _images(context, taken).take(pc.index_in(_keys(added), value_set=_keys(taken)))
    ops = pc.if_else(pc.equal(added.column(ROW_KIND).combine_chunks(), AFTER), "u", "i")
    none = pa.nulls(gone.num_rows, olds.type)
    return pa.table(
        {
            "op": pa.concat_arrays([ops, pa.repeat("d", gone.num_rows)]),
            "ts_ms": pa.repeat(context.requested_time, len(ops) + gone.num_rows),
            "record_key": pa.concat_arrays([_keys(added), _keys(gone)]),
            "before": pa.concat_arrays([olds, _images(context, gone)]),
            "after": pa.concat_arrays([_images(context, added), none]),
        }
    )


def _keys(rows: pa.Table) -> pa.Array:
    return rows.column(RECORD_KEY).combine_chunks()


def _images(context: WriteContext, rows: pa.Table) -> pa.StructArray:
    fields = list(context.data_schema)
    arrays = [rows.column(field.name).combine_chunks() for field in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _blocks(context: WriteContext, changes: pa.Table) -> Iterator[bytes]:
    named = json.loads(context.avro_schema)
    # The text may be of some columns only.
    record = avro_schema_from_arrow(
        context.data_schema, name=named["name"], namespace=named.get("namespace", "")
    )
    schema = change_schema(context.change_capture, record)
    encoder, headers = AvroEncoder(schema), data_headers(context.requested_time, json.dumps(schema))
    chosen = changes.select([field["name"] for field in schema["fields"]])
    for start in range(0, chosen.num_rows, _BLOCK_ROWS):
        batches = chosen.slice(start, _BLOCK_ROWS).combine_chunks().to_batches()
        chunks = [chunk for batch in batches for chunk in encoder.encode(batch, with_length=True)]
        yield avro_block_of(chunks, headers, kind=BlockType.CDC_DATA)


def change_schema(mode: str, rows: Mapping[str, Any]) -> dict[str, Any]:
    """The Avro schema of change records, by that of the table's rows."""
    if mode == KEYS_ONLY:
        return _KEYS_SCHEMA
    namespace = rows.get("namespace", "")
    image = {"type": "record", "name": rows["name"], "fields": rows["fields"]}
    named = ["op", "record_key"] if mode == BEFORE_ONLY else ["op", "ts_ms"]
    types: dict[str, Any] = {**dict.fromkeys(named, "string"), "before": image}
    if mode == BOTH:
        types["after"] = f"{namespace}.{rows['name']}" if namespace else rows["name"]
    fields = [{"name": n, "type": ["null", kind], "doc": "", "default": None} for n, kind in types.items()]
    return {"type": "record", "name": "CDC", "namespace": namespace, "doc": "", "fields": fields}
