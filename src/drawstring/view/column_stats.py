"""Column statistics kept in the metadata table, for base files and log files.

Writers are known to have stored wrong records, so a record counts only where it cannot be one of those:
bounds of floats are wrong when a value was NaN, missing bounds with as many nulls as values may stand for
statistics that Parquet left out (it does for long texts), and such gaps may hide behind the bounds of other
row groups.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import xxhash

from drawstring.formats.hfile import Entry, HFileReader
from drawstring.predicates.evaluate import ColumnFacts
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.view.metadata_records import decode_record
from drawstring.view.metadata_table import UNPARTITIONED, MetadataTable
from drawstring.view.statistics import FileStatistics, comparable_bounds

INDEX = "column_stats"
PARTITION_INDEX = "partition_stats"
MAX_TEXT = 1000
"""Texts this long may have been left out of Parquet's statistics; bounds near it are not trusted."""
_SEED = 0xFFFFFFFFDABADABA
_HASH_CHARACTERS = 12
_FEW_PARTITIONS = 64
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
_DECIMAL = 10

FileKey = tuple[str, str]
"""A partition path and a file name."""


class ColumnStats:
    """The `column_stats` index of a metadata table."""

    def __init__(self, metadata: MetadataTable) -> None:
        self._metadata = metadata

    @staticmethod
    def of(metadata: MetadataTable | None) -> ColumnStats | None:
        """Return the index, or None when the table has none."""
        return ColumnStats(metadata) if metadata is not None and INDEX in metadata.indexes else None

    def statistics(
        self, columns: Mapping[str, pa.DataType], partitions: Collection[str], *, find_empty: bool = True
    ) -> dict[FileKey, FileStatistics]:
        """Return what is known of the files of some partitions.

        Args:
            columns: the table's columns asked for, by name (dotted for struct fields), with their types.
            partitions: partition paths.
            find_empty: whether to look for files without rows, such as logs of nothing but deletes.
        """
        by_hash = {_partition_hash(path): path for path in partitions}
        found: dict[FileKey, dict[str, ColumnFacts]] = {}
        empty: set[FileKey] = set()
        for name in {*columns, RECORD_KEY} if find_empty else columns:
            for key, record in self._records(name, by_hash).items():
                if name == RECORD_KEY and record["valueCount"] == 0 and record["nullCount"] == 0:
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
        by_hash = {_partition_hash(path): path for path in partitions}
        found: dict[str, dict[str, ColumnFacts]] = {}
        for name, wanted in columns.items():
            for (partition, _), record in self._records(name, by_hash, index=PARTITION_INDEX).items():
                facts = _facts(record, wanted)
                if facts is not None:
                    found.setdefault(partition, {})[name] = replace(facts, may_be_null=True)
        return {partition: FileStatistics(facts) for partition, facts in found.items()}

    def _records(
        self, column: str, by_hash: Mapping[str, str], *, index: str = INDEX
    ) -> dict[FileKey, dict[str, Any]]:
        prefixes = [_hash(column)]
        if len(by_hash) <= _FEW_PARTITIONS:
            prefixes = [prefixes[0] + partition for partition in by_hash]
        latest: dict[FileKey, dict[str, Any]] = {}
        for key, value, schema in self._metadata.records(index, lambda file: _entries(file, prefixes)):
            partition = by_hash.get(key[_HASH_CHARACTERS : 2 * _HASH_CHARACTERS])
            record = (
                decode_record(value, schema).get("ColumnStatsMetadata") if partition is not None else None
            )
            if record is None or partition is None or record["columnName"] != column:
                continue
            file_key = (partition, record["fileName"])
            latest.pop(file_key, None)
            if not record["isDeleted"]:
                latest[file_key] = record
        return latest


def _entries(file: HFileReader, prefixes: Iterable[str]) -> Iterator[Entry]:
    for prefix in prefixes:
        yield from file.with_prefix(prefix.encode())


def _partition_hash(path: str) -> str:
    return _hash(path or UNPARTITIONED)


def _hash(text: str) -> str:
    return b64encode(xxhash.xxh64(text.encode(), seed=_SEED).digest()).decode()


def _facts(record: Mapping[str, Any], wanted: pa.DataType) -> ColumnFacts | None:
    lower, upper = _value(record["minValue"]), _value(record["maxValue"])
    if lower is None or upper is None or not record["valueCount"] or record["nullCount"] is None:
        return None
    found = _type(record.get("valueType"), lower)
    if found is None or _may_hide_long_texts(record, lower, upper):
        return None
    bounds = comparable_bounds(_typed(lower, found), _typed(upper, found), found, wanted)
    if bounds == (None, None):
        return None
    return ColumnFacts(wanted, *bounds, may_be_null=record["nullCount"] != 0 or found != wanted)


def _may_hide_long_texts(record: Mapping[str, Any], lower: Any, upper: Any) -> bool:
    if not isinstance(lower, str):
        return False
    return record["nullCount"] != 0 or max(len(lower), len(upper)) >= MAX_TEXT


def _value(wrapped: Any) -> Any:
    return wrapped.get("value") if isinstance(wrapped, dict) else wrapped


def _type(value_type: Mapping[str, Any] | None, value: Any) -> pa.DataType | None:
    """Return the type of a record's values; old records do not say it, then only plain ones are taken."""
    ordinal = value_type["typeOrdinal"] if value_type else 0
    if ordinal == _DECIMAL and value_type and isinstance(value, bytes):
        precision, scale = str(value_type["additionalInfo"]).split(",")
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
