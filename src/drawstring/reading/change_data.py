"""The change data of one file group of one commit: op, ts_ms, before, after, in Hudi's spelling."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import CorruptTable
from drawstring.formats.avro import block_schema, decode_blocks
from drawstring.formats.log_blocks import BlockType, LogBlock, scan_log_file
from drawstring.model.read_task import ChangeSpec, ImageSpec
from drawstring.reading.changes import read_changes
from drawstring.reading.slice_rows import SliceReader
from drawstring.schema.change_images import BOTH, KEYS_ONLY
from drawstring.schema.change_images import CHANGE_DATA as SCHEMA
from drawstring.schema.json_text import AVRO, PLAIN, json_rows
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.schema.row_kinds import BEFORE, DELETE, ROW_KIND
from drawstring.storage.base import Storage


def read_change_data(change: ChangeSpec, images: ImageSpec, *, storage: Storage) -> pa.Table:
    """What a commit did to one file group.

    Args:
        change: the group before and after, where data files are read.
        images: how the table keeps images, and the files that hold some.
        storage: where the table's files are.
    """
    schema = row_schema(images)
    rows = SliceReader(storage, schema)
    if not images.files or images.mode == KEYS_ONLY:
        return _computed(change, images, rows)
    records = _records(storage, images.files)
    before = _images(records, "before").fill_null("null")
    if images.mode == BOTH:
        return _rows(records.column("op"), images, before, _images(records, "after").fill_null("null"))
    return _rows(records.column("op"), images, before, _after(records, change, rows))


def _computed(change: ChangeSpec, images: ImageSpec, reader: SliceReader) -> pa.Table:
    """Images taken from the data files."""
    rows = read_changes(change, reader, columns=reader.table_schema.names)
    is_taken = pc.is_in(rows.column(ROW_KIND), value_set=pa.array([BEFORE, DELETE]))
    taken, added = _keyed(rows.filter(is_taken)), _keyed(rows.filter(pc.invert(is_taken)))
    old, new = taken.column("key").combine_chunks(), added.column("key").combine_chunks()
    gone = taken.filter(pc.invert(pc.is_in(old, value_set=new)))
    before = taken.column("image").take(pc.index_in(new, value_set=old))
    kinds = pc.if_else(before.is_valid(), "u", "i")
    parts = [
        _rows(kinds, images, before, added.column("image")),
        _rows(pa.repeat("d", gone.num_rows), images, gone.column("image"), None),
    ]
    return pa.concat_tables(parts)


def _after(records: pa.Table, change: ChangeSpec, reader: SliceReader) -> pa.Array:
    """The images after, from the new data file."""
    schema = reader.table_schema
    changed = records.column("record_key").combine_chunks()
    batches = (batch for task in change.after for batch in reader.rows(task, schema.names))
    kept = (batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=changed)) for batch in batches)
    rows = _keyed(pa.Table.from_batches(kept, schema=schema))
    found = pc.index_in(changed, value_set=rows.column("key").combine_chunks())
    deleted = pc.equal(records.column("op").combine_chunks(), "d")
    return rows.column("image").take(pc.if_else(deleted, pa.scalar(None, pa.int32()), found))


def row_schema(images: ImageSpec) -> pa.Schema:
    """The schema of the table's rows."""
    return pa.ipc.read_schema(pa.py_buffer(images.schema))


def _records(storage: Storage, files: Sequence[str]) -> pa.Table:
    """The records of change files; all of one commit have one schema."""
    blocks = [block for path in sorted(files) for block in _blocks(storage, path)]
    tables = [
        pa.Table.from_batches(
            decode_blocks(block.schema_json or "", [block.content()]), schema=block_schema(block.schema_json)
        )
        for block in blocks
    ]
    return pa.concat_tables(tables).combine_chunks()


def _blocks(storage: Storage, path: str) -> list[LogBlock]:
    try:
        scan = scan_log_file(storage, path)
    except FileNotFoundError as error:
        raise _unreadable(path, "it is missing") from error
    if scan.corrupt_regions:
        raise _unreadable(path, scan.corrupt_regions[0].reason)
    return [block for block in scan.blocks if block.type is BlockType.CDC_DATA]


def _keyed(rows: pa.Table) -> pa.Table:
    """Rows as their key and their image."""
    shown = rows.drop_columns([ROW_KIND]) if ROW_KIND in rows.column_names else rows
    image = json_rows(
        pa.StructArray.from_arrays(
            [column.combine_chunks() for column in shown.columns], fields=list(shown.schema)
        ),
        PLAIN,
    )
    return pa.table({"key": rows.column(RECORD_KEY).combine_chunks(), "image": image})


def _images(records: pa.Table, name: str) -> pa.Array:
    return json_rows(records.column(name).combine_chunks(), AVRO)


def _rows(op: pa.Array, images: ImageSpec, before: pa.Array, after: pa.Array | None) -> pa.Table:
    count = len(op)
    times = pa.repeat(images.instant, count)
    after = pa.nulls(count, pa.string()) if after is None else after
    return pa.table([op, times, before, after], schema=SCHEMA)


def _unreadable(path: str, reason: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read the change file {path}: {reason}. Restore it from a copy; the table itself does not need it.",
        condition="CHANGE_FILE_UNREADABLE",
        path=path,
    )
