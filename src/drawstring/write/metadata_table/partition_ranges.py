"""Ranges of columns in whole partitions, carried on from commit to commit.

A partition's range only widens: what is deleted or replaced stays covered, which costs skipping and never rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from drawstring.formats.hfile import HFileReader
from drawstring.view.metadata_keys import partition_name, partition_stats_key
from drawstring.view.metadata_records import StatsRecord, decode_column_stats
from drawstring.view.metadata_table import MetadataTable
from drawstring.write.metadata_table.changes import NewDataFile
from drawstring.write.metadata_table.column_ranges import ColumnRange
from drawstring.write.metadata_table.layout import COLUMN_STATS, FILES, PARTITION_STATS

_INTEGERS = {
    3: pa.int32(),
    4: pa.int64(),
    12: pa.date32(),
    16: pa.timestamp("us", tz="UTC"),
    19: pa.timestamp("us"),
}
_OTHERS = {2: pa.bool_(), 5: pa.float32(), 6: pa.float64(), 7: pa.string(), 8: pa.binary()}
_TYPES = _INTEGERS | _OTHERS
_UNTOLD, _NULL, _DECIMAL = 0, 1, 10
_OLD_DECIMAL_SCALE = 15
"""Records that do not tell their type hold every decimal with this scale."""
_PLAIN = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64(), bytes: pa.binary()}
_MILLIS = {15: pa.timestamp("us", tz="UTC"), 18: pa.timestamp("us")}

Ranges = dict[tuple[str, str], ColumnRange]
"""Ranges by partition path and column."""


def partition_ranges(metadata: MetadataTable | None, files: Iterable[NewDataFile]) -> Ranges:
    """Return the ranges of all partitions that get files, bounds of what they hold already included.

    Whoever reads records of a partition merges them, whatever their order: bounds are widened, and counts added up. So
    counts tell of what no record tells yet. Hudi 1.2 cannot merge bounds of different types, as a promoted column has
    them: a record after those of another type stands for itself.

    `metadata` is the table as it is before the change, None for a new one.
    """
    added = ranges_of_files(files)
    if metadata is None or not added:
        return added
    before = _known(metadata, added)
    existing = _existing(metadata, {partition for partition, _ in added})
    found: Ranges = {}
    for (partition, column), new in added.items():
        old = before.get((partition, column))
        if old is not None:
            found[partition, column] = old.followed_by(new)
        elif partition in existing:
            found[partition, column] = _from_files(metadata, partition, column, new).merged(new)
        else:
            found[partition, column] = new
    return found


def ranges_of_files(files: Iterable[NewDataFile]) -> Ranges:
    """Return the ranges of files, merged by partition."""
    found: Ranges = {}
    for file in files:
        for part in file.ranges:
            key = (file.partition_path, part.column)
            found[key] = found[key].merged(part) if key in found else part
    return found


def _known(metadata: MetadataTable, added: Ranges) -> dict[tuple[str, str], _Stored]:
    by_key = {
        partition_stats_key(column, partition).encode(): (partition, column) for partition, column in added
    }
    found: dict[tuple[str, str], _Stored] = {}
    for key, record in _records(metadata, by_key):
        known = found.pop(by_key[key], None)
        old = range_of_record(record, added[by_key[key]].type)
        if old is not None:
            stored = _Stored(old, frozenset([_stored_type(record, old)]))
            found[by_key[key]] = known.and_also(stored) if known is not None else stored
    return found


def _records(metadata: MetadataTable, keys: Collection[bytes]) -> Iterator[tuple[bytes, StatsRecord]]:
    """Yield the stored ranges of some keys, older ones first; those of many logs are decoded together."""
    files = metadata.entries(PARTITION_STATS, lambda file: file.lookup(keys))
    for schema, run in groupby(files, key=itemgetter(1)):
        entries = [entry for found, _ in run for entry in found]
        records = decode_column_stats([value for _, value in entries], schema)
        yield from zip((key for key, _ in entries), records, strict=True)


@dataclass(frozen=True)
class _Stored:
    """What all records of a partition's column tell, and of which types their bounds are; None where that is untold."""

    found: ColumnRange
    types: frozenset[pa.DataType | None]

    def and_also(self, newer: _Stored) -> _Stored:
        # Records stand by when writes were requested: one that completed later may stand before another.
        return _Stored(self.found.widened(newer.found), self.types | newer.types)

    def followed_by(self, new: ColumnRange) -> ColumnRange:
        both = self.found.merged(new)
        if self.types <= {both.type, pa.null()}:
            return self.found.extended(new)
        return replace(both, is_whole=True)


def _stored_type(record: StatsRecord, found: ColumnRange) -> pa.DataType | None:
    if found.lower is None:
        return pa.null()
    return None if record.type_ordinal == _UNTOLD else found.type


def _existing(metadata: MetadataTable, partitions: Iterable[str]) -> set[str]:
    names = {partition_name(path).encode(): path for path in partitions}
    entries = metadata.entries(FILES, lambda file: file.lookup(names))
    return {names[key] for found, _ in entries for key, _ in found}


def _from_files(metadata: MetadataTable, partition: str, column: str, new: ColumnRange) -> ColumnRange:
    """Return what a partition's files say of a column; files that say nothing hold it as nulls only."""
    prefix = partition_stats_key(column, partition).encode()
    found = replace(
        new, lower=None, upper=None, value_count=1, null_count=1, total_size=0, total_uncompressed=0
    )

    def read(file: HFileReader) -> Any:
        return file.with_prefix(prefix)

    for entries, schema in metadata.entries(COLUMN_STATS, read):
        for record in decode_column_stats([value for _, value in entries], schema):
            old = range_of_record(record, new.type)
            if old is not None and record.column_name == column:
                found = found.merged(old)
    return found.promoted(new.type)


def range_of_record(record: StatsRecord, column: pa.DataType | None = None) -> ColumnRange | None:
    """Return a stored range; None where it is deleted, or its type is not known.

    Releases before 1.1 do not store the type: it is that of the `column`, if its values can be of it.
    """
    if record.is_deleted:
        return None
    arrow, lower, upper = _typed_bounds(record, column)
    if arrow is None:
        return None
    # Hudi's own statistics may have NaN for a bound, which is greater than all numbers.
    lower, upper = (
        math.inf if isinstance(value, float) and math.isnan(value) else value for value in (lower, upper)
    )
    values, nulls = record.value_count or 0, record.null_count or 0
    return ColumnRange(record.column_name, arrow, lower, upper, values, nulls)


def _typed_bounds(record: StatsRecord, column: pa.DataType | None) -> tuple[pa.DataType | None, Any, Any]:
    lower, upper, ordinal = record.lower, record.upper, record.type_ordinal
    if ordinal == _DECIMAL:
        precision, scale = map(int, str(record.type_info).split(","))
        arrow = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        return arrow, _unscaled(lower), _unscaled(upper)
    if ordinal in _MILLIS:
        return _MILLIS[ordinal], *(None if value is None else value * 1000 for value in (lower, upper))
    if ordinal == _NULL or (ordinal not in _TYPES and lower is None):
        return pa.null(), lower, upper
    if ordinal == _UNTOLD and column is not None:
        return _assumed_bounds(lower, upper, column)
    return _TYPES.get(ordinal), lower, upper


def _assumed_bounds(lower: Any, upper: Any, column: pa.DataType) -> tuple[pa.DataType, Any, Any]:
    """Take bounds for values of the column, or of what it was before a promotion."""
    if isinstance(lower, Decimal) or (isinstance(lower, bytes) and pa.types.is_decimal(column)):
        scale = max(column.scale if pa.types.is_decimal(column) else 0, _OLD_DECIMAL_SCALE)
        arrow = pa.decimal256(76, scale)
        return arrow, *(_at_scale(value, scale) for value in (lower, upper))
    plain = next((found for kind, found in _PLAIN.items() if isinstance(lower, kind)), column)
    fits = pa.types.is_string(column) == isinstance(lower, str) and not pa.types.is_decimal(column)
    return column if fits else plain, lower, upper


def _at_scale(value: Any, scale: int) -> int:
    if isinstance(value, Decimal):
        return int(value.scaleb(scale, Context(prec=100)))
    unscaled = int.from_bytes(value, "big", signed=True)
    return unscaled * int(10 ** (scale - _OLD_DECIMAL_SCALE))


def _unscaled(value: bytes | None) -> int | None:
    return None if value is None else int.from_bytes(value, "big", signed=True)
