"""Column statistics kept in the metadata table, for base files and log files.

Some writers stored wrong records, so a record is used only if it cannot be one of those:
bounds of floats are wrong when a value was NaN, missing bounds with as many nulls as values may stand for
statistics that Parquet left out (it does for long texts), and such gaps may hide behind the bounds of other
row groups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from drawstring.formats.hfile import Entry, HFileReader
from drawstring.predicates.facts import ColumnFacts
from drawstring.predicates.ranges import IntegerRange
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.view.integer_bounds import FileKey, IntegerBounds
from drawstring.view.metadata_keys import HASH_CHARACTERS, hash_text, partition_name
from drawstring.view.metadata_records import StatsColumns, StatsRecord, decode_column_stats, stats_columns
from drawstring.view.metadata_table import MetadataTable
from drawstring.view.statistics import FileStatistics, are_exact, comparable_bounds

log = logging.getLogger(__name__)

INDEX = "column_stats"
PARTITION_INDEX = "partition_stats"
MAX_TEXT = 1000
"""Texts this long may have been left out of Parquet's statistics; bounds near it are not trusted."""
_FEW_PARTITIONS = 64
_KEPT_ANSWERS = 4
_EPOCH = datetime(1970, 1, 1)
_TYPES: dict[int, pa.DataType] = {
    2: pa.bool_(),
    3: pa.int32(),
    4: pa.int64(),
    7: pa.string(),
    12: pa.date32(),
    15: pa.timestamp("ms", tz="UTC"),
    16: pa.timestamp("us", tz="UTC"),
    18: pa.timestamp("ms"),
    19: pa.timestamp("us"),
}
_DECIMAL, _UNKNOWN = 10, -1
_PLAIN = tuple(_TYPES[ordinal] for ordinal in (2, 3, 4, 7))
"""Types whose values are stored as they are."""
Told = TypeVar("Told")


class ColumnStats:
    """The `column_stats` index of a metadata table; what was read of many partitions is kept.

    Where files of it are gone (it was made anew, or compacted and cleaned, since its timeline was listed) nothing is
    known any more.
    """

    def __init__(self, metadata: MetadataTable) -> None:
        self._metadata = metadata
        self.is_gone = False
        self._kept: dict[Any, dict[FileKey, FileStatistics]] = {}
        self._bounds: dict[str, IntegerBounds | None] = {}

    @staticmethod
    def of(metadata: MetadataTable | None) -> ColumnStats | None:
        """Return the index, or None when the table has none."""
        return ColumnStats(metadata) if metadata is not None and INDEX in metadata.indexes else None

    def statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str], *, find_empty: bool = True
    ) -> Mapping[FileKey, FileStatistics]:
        """Return what is known of the files of some partitions, and maybe of others.

        Args:
            columns: the table's columns asked for, by name (dotted for struct fields), with their types.
            partitions: partition paths.
            find_empty: whether to look for files without rows, such as logs of nothing but deletes.
        """
        return self._told(lambda: self._kept_statistics(columns, partitions, find_empty), {})

    def _told(self, read: Callable[[], Told], nothing: Told) -> Told:
        """The records of the index, or nothing if files of it are gone."""
        if self.is_gone:
            return nothing
        try:
            return read()
        except FileNotFoundError as error:
            log.warning("Not using column statistics: files of the metadata table were removed (%s).", error)
            self.is_gone = True
            return nothing

    def _kept_statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str], find_empty: bool
    ) -> Mapping[FileKey, FileStatistics]:
        if len(partitions) <= _FEW_PARTITIONS:
            return self._statistics(columns, partitions, find_empty)
        key = (frozenset(columns.items()), find_empty)
        if key not in self._kept:
            self._kept[key] = self._statistics(columns, self._metadata.partitions(), find_empty)
            if len(self._kept) > _KEPT_ANSWERS:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]

    def outside(self, ranges: Mapping[str, IntegerRange]) -> set[FileKey]:
        """The files of the table that have no value within the range of some column.

        Args:
            ranges: by name of an integer column, which values are wanted.
        """
        found: set[FileKey] = set()
        for column, wanted in ranges.items():
            if column not in self._bounds:
                self._bounds[column] = self._told(partial(self._integer_bounds, column), None)
            bounds = self._bounds[column]
            found |= set() if bounds is None else bounds.outside(wanted)
        return found

    def _integer_bounds(self, column: str) -> IntegerBounds | None:
        by_hash = {_partition_hash(path): path for path in self._metadata.partitions()}
        prefix = hash_text(column)
        parts: list[tuple[list[str | None], StatsColumns]] = []
        for entries, schema in self._metadata.entries(INDEX, lambda file: _entries(file, [prefix])):
            records = stats_columns([value for _, value in entries], schema)
            if records is None:
                return None
            parts.append(([by_hash.get(_partition_of(key)) for key, _ in entries], records))
        return IntegerBounds.of(column, parts)

    def _statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str], find_empty: bool
    ) -> dict[FileKey, FileStatistics]:
        by_hash = {_partition_hash(path): path for path in partitions}
        found: dict[FileKey, dict[str, ColumnFacts]] = {}
        empty: set[FileKey] = set()
        for name in {*columns, RECORD_KEY} if find_empty else columns:
            for key, record in self._records(name, by_hash).items():
                if name == RECORD_KEY and record.value_count == 0 and record.null_count == 0:
                    empty.add(key)
                facts = _facts(record, columns[name]) if name in columns else None
                if facts is not None:
                    found.setdefault(key, {})[name] = facts
        return {key: FileStatistics(found.get(key, {}), key in empty) for key in {*found, *empty}}

    def partition_statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str]
    ) -> dict[str, FileStatistics]:
        """Return what is known of whole partitions as they are now; nothing when writes came meanwhile.

        Any column may have nulls: the counts are sums over files, of which merging may keep any row.
        """
        if PARTITION_INDEX not in self._metadata.indexes or self._metadata.is_ahead:
            return {}
        return self._told(lambda: self._partition_statistics(columns, partitions), {})

    def _partition_statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str]
    ) -> dict[str, FileStatistics]:
        by_hash = {_partition_hash(path): path for path in partitions}
        found: dict[str, dict[str, ColumnFacts]] = {}
        for name, wanted in columns.items():
            for (partition, _), record in self._records(name, by_hash, index=PARTITION_INDEX).items():
                facts = _facts(record, wanted)
                if facts is not None:
                    found.setdefault(partition, {})[name] = replace(
                        facts, may_be_null=True, nulls=None, is_exact=False
                    )
        return {partition: FileStatistics(facts) for partition, facts in found.items()}

    def _records(
        self, column: str, by_hash: Mapping[str, str], *, index: str = INDEX
    ) -> dict[FileKey, StatsRecord]:
        prefixes = [hash_text(column)]
        if len(by_hash) <= _FEW_PARTITIONS:
            prefixes = [prefixes[0] + partition for partition in by_hash]
        latest: dict[FileKey, StatsRecord] = {}
        for entries, schema in self._metadata.entries(index, lambda file: _entries(file, prefixes)):
            named = [(by_hash.get(_partition_of(key)), value) for key, value in entries]
            known = [(path, value) for path, value in named if path is not None]
            records = decode_column_stats([value for _, value in known], schema)
            for (partition, _), record in zip(known, records, strict=True):
                if record.column_name == column:
                    key = (partition, record.file_name)
                    before = latest.pop(key, None)
                    if not record.is_deleted:
                        latest[key] = (
                            _widest(before, record) if before and index == PARTITION_INDEX else record
                        )
        return latest


def _widest(one: StatsRecord, other: StatsRecord) -> StatsRecord:
    """Merge two ranges of a partition, in either order; of types or bounds that cannot be compared nothing is known.

    Records stand by when their writes were requested, so that none of them need be the whole.
    """
    unknown = other._replace(type_ordinal=_UNKNOWN)
    if (one.type_ordinal, one.type_info) != (other.type_ordinal, other.type_info):
        return unknown
    if _is_empty(one) or _is_empty(other):
        return other if _is_empty(one) else one
    if None in (one.lower, one.upper, other.lower, other.upper):
        return unknown
    lower = min(one.lower, other.lower, key=_comparable)
    nulls = (
        None
        if None in (one.null_count, other.null_count)
        else (one.null_count or 0) + (other.null_count or 0)
    )
    upper = max(one.upper, other.upper, key=_comparable)
    return other._replace(lower=lower, upper=upper, null_count=nulls)


def _is_empty(record: StatsRecord) -> bool:
    """Whether there are only nulls."""
    no_bounds = record.lower is None and record.upper is None
    return no_bounds and record.value_count is not None and record.value_count == record.null_count


def _comparable(bound: Any) -> Any:
    return int.from_bytes(bound, "big", signed=True) if isinstance(bound, bytes) else bound


def _partition_of(key: bytes) -> str:
    return key[HASH_CHARACTERS : 2 * HASH_CHARACTERS].decode()


def _entries(file: HFileReader, prefixes: Iterable[str]) -> Iterator[Entry]:
    for prefix in prefixes:
        yield from file.with_prefix(prefix.encode())


def _partition_hash(path: str) -> str:
    return hash_text(partition_name(path))


def _facts(record: StatsRecord, wanted: pa.DataType) -> ColumnFacts | None:
    lower, upper = record.lower, record.upper
    if lower is None or upper is None or not record.value_count or record.null_count is None:
        return None
    found = _type(record, lower)
    if found is None or _may_hide_long_texts(record, lower, upper):
        return None
    if found not in _PLAIN:
        try:
            lower, upper = _typed(lower, found), _typed(upper, found)
        except OverflowError:
            # Times before the year 1 and after 9999, which Python cannot say.
            return None
    bounds = comparable_bounds(lower, upper, found, wanted)
    if bounds == (None, None):
        return None
    is_same = found == wanted
    return ColumnFacts(
        wanted,
        *bounds,
        may_be_null=record.null_count != 0 or not is_same,
        nulls=record.null_count if is_same else None,
        is_exact=is_same and are_exact(*bounds, found, wanted),
    )


def _may_hide_long_texts(record: StatsRecord, lower: Any, upper: Any) -> bool:
    if not isinstance(lower, str):
        return False
    return record.null_count != 0 or max(len(lower), len(upper)) >= MAX_TEXT


def _type(record: StatsRecord, value: Any) -> pa.DataType | None:
    """Return the type of a record's values; old records do not say it, then only plain ones are taken."""
    ordinal = record.type_ordinal
    if ordinal == _DECIMAL and isinstance(value, bytes):
        precision, scale = str(record.type_info).split(",")
        return pa.decimal128(int(precision), int(scale))
    if ordinal:
        return _TYPES.get(ordinal)
    if isinstance(value, str):
        return pa.string()
    # An old record's number may be a date or a time as well; the comparison with the column's type decides.
    return pa.int64() if isinstance(value, int) and not isinstance(value, bool) else None


def _typed(value: Any, found: pa.DataType) -> Any:
    types = pa.types
    if types.is_decimal(found):
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(
            -found.scale, Context(prec=found.precision + 1)
        )
    if types.is_date(found) and isinstance(value, int):
        return date(1970, 1, 1) + timedelta(days=value)
    if types.is_timestamp(found) and isinstance(value, int):
        moment = _EPOCH + timedelta(microseconds=value * (1000 if found.unit == "ms" else 1))
        return moment.replace(tzinfo=timezone.utc) if found.tz else moment
    return value
