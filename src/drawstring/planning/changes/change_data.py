"""The change data of a range of commits as Hudi's readers return it: op, ts_ms, before, after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import CorruptTable
from drawstring.formats.avro import block_schema, decode_blocks
from drawstring.formats.log_blocks import BlockType, LogBlock, scan_log_file
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Instant
from drawstring.planning.changes.changelog import Changelog, touched_groups
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_state import TableState
from drawstring.schema.json_text import AVRO, PLAIN, json_rows
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.schema.row_kinds import ROW_KIND

BOTH, BEFORE_ONLY, KEYS_ONLY = "DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"
SCHEMA = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])


@dataclass(frozen=True)
class ChangeData:
    """What the commits after `begin`, up to and including `end`, changed.

    1. `op` is `i`, `u` or `d`, `ts_ms` the commit's instant, `before` and `after` are rows as JSON.
    2. Images that change files hold come as they are, without meta columns; an absent one is the text `null`. Images
       taken from data files have the meta columns, and an absent one is null.
    3. Table services change nothing. A replaced file group is deleted row by row.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """Four columns of text."""
        return SCHEMA

    def to_arrow(self) -> pa.Table:
        """Read everything into one table."""
        return pa.Table.from_batches(self.to_batches(), schema=SCHEMA)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read, one file group of one commit at a time."""
        for instant, metadata in self._changelog.writes:
            files = _change_files(metadata)
            for group in touched_groups(metadata):
                found = self._group(group, instant, files.get(group, ()))
                yield from found.cast(SCHEMA).to_batches()

    @cached_property
    def _changelog(self) -> Changelog:
        return Changelog(self.state, self.read, self.begin, self.end)

    @cached_property
    def _mode(self) -> str:
        return self.state.config.properties.get("hoodie.table.cdc.supplemental.logging.mode", BOTH).upper()

    def _group(self, group: FileGroupId, instant: Instant, files: Sequence[str]) -> pa.Table:
        if not files or self._mode == KEYS_ONLY:
            return self._computed(group, instant)
        if self._mode == BOTH:
            return self._logged(files, instant)
        return self._logged_before(group, instant, files)

    def _computed(self, group: FileGroupId, instant: Instant) -> pa.Table:
        """Images taken from the data files."""
        columns = self._changelog.schema.names
        taken, added = map(_keyed, self._changelog.group_changes(group, instant, columns))
        old, new = taken.column("key").combine_chunks(), added.column("key").combine_chunks()
        gone = taken.filter(pc.invert(pc.is_in(old, value_set=new)))
        before = taken.column("image").take(pc.index_in(new, value_set=old))
        kinds = pc.if_else(before.is_valid(), "u", "i")
        parts = [
            _rows(kinds, instant, before, added.column("image")),
            _rows(pa.repeat("d", gone.num_rows), instant, gone.column("image"), None),
        ]
        return pa.concat_tables(parts)

    def _logged(self, files: Sequence[str], instant: Instant) -> pa.Table:
        """Both images from the change files."""
        records = self._records(files)
        before, after = (_images(records, name).fill_null("null") for name in ("before", "after"))
        return _rows(records.column("op"), instant, before, after)

    def _logged_before(self, group: FileGroupId, instant: Instant, files: Sequence[str]) -> pa.Table:
        """The image before from the change files, the one after from the new data file."""
        records = self._records(files)
        rows = _keyed(self._changelog.rows_after(group, instant, self._columns))
        keys = rows.column("key").combine_chunks()
        found = pc.index_in(records.column("record_key").combine_chunks(), value_set=keys)
        deleted = pc.equal(records.column("op").combine_chunks(), "d")
        after = rows.column("image").take(pc.if_else(deleted, pa.scalar(None, pa.int32()), found))
        return _rows(records.column("op"), instant, _images(records, "before").fill_null("null"), after)

    @property
    def _columns(self) -> list[str]:
        return [name for name in self._changelog.schema.names if name != ROW_KIND]

    def _records(self, files: Sequence[str]) -> pa.Table:
        """The records of change files; all of one commit have one schema."""
        blocks = [block for path in sorted(files) for block in self._blocks(path)]
        tables = [
            pa.Table.from_batches(
                decode_blocks(block.schema_json or "", [block.content()]),
                schema=block_schema(block.schema_json),
            )
            for block in blocks
        ]
        return pa.concat_tables(tables).combine_chunks()

    def _blocks(self, path: str) -> list[LogBlock]:
        try:
            scan = scan_log_file(self.state.storage, path)
        except FileNotFoundError as error:
            raise _unreadable(path, "it is missing") from error
        if scan.corrupt_regions:
            raise _unreadable(path, scan.corrupt_regions[0].reason)
        return [block for block in scan.blocks if block.type is BlockType.CDC_DATA]


def _change_files(metadata: CommitMetadata) -> dict[FileGroupId, tuple[str, ...]]:
    def key(stat: WriteStat) -> FileGroupId:
        return FileGroupId(stat.partition_path, stat.file_id)

    return {key(stat): stat.cdc_files for stat in metadata.stats if stat.cdc_files}


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


def _rows(op: pa.Array, instant: Instant, before: pa.Array, after: pa.Array | None) -> pa.Table:
    count = len(op)
    times = pa.repeat(instant.requested_time, count)
    after = pa.nulls(count, pa.string()) if after is None else after
    return pa.table([op, times, before, after], schema=SCHEMA)


def _unreadable(path: str, reason: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read the change file {path}: {reason}. Restore it from a copy; the table itself does not need it.",
        condition="CHANGE_FILE_UNREADABLE",
        path=path,
    )
