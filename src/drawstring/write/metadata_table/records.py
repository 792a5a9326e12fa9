"""Records of the metadata table, encoded: key and value of each HFile entry."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from drawstring.formats.avro_schemas import stored_metadata_schema
from drawstring.view.metadata_keys import (
    ALL_PARTITIONS,
    bloom_filter_key,
    column_stats_key,
    partition_name,
    partition_stats_key,
)
from drawstring.write.metadata_table import layout
from drawstring.write.metadata_table.column_ranges import ColumnRange

_NAMESPACE = "org.apache.hudi.avro.model."
_UUID_FILE_ID = re.compile(r"^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-(\d+)$")
_UUID_ENCODING, _TEXT_ENCODING = 0, 1
_NOTHING = -1
_EXACT = Context(prec=100)

Entry = tuple[str, bytes]


@dataclass(frozen=True)
class FileBloomFilter:
    """The bloom filter of a base file, as its footer has it (base64 text)."""

    partition_path: str
    file_name: str
    type_code: str
    filter: bytes


@dataclass(frozen=True)
class KeyLocation:
    """Record keys that now live in one file group."""

    partition_path: str
    file_id: str
    keys: pa.Array


def partition_list_record(added: Iterable[str], deleted: Iterable[str] = ()) -> Entry:
    """Return the record that tells which partitions there are, and which are gone."""
    infos = {partition_name(path): {"size": 0, "isDeleted": False} for path in added}
    infos |= {partition_name(path): {"size": 0, "isDeleted": True} for path in deleted}
    return ALL_PARTITIONS, encode_record({"type": layout.PARTITION_RECORD, "filesystemMetadata": infos})


def file_list_record(partition_path: str, added: Mapping[str, int], deleted: Collection[str] = ()) -> Entry:
    """Return the record of a partition's new files, with their sizes, and of those that are gone."""
    infos = {name: {"size": size, "isDeleted": False} for name, size in added.items()}
    infos |= {name: {"size": 0, "isDeleted": True} for name in deleted}
    record_type = layout.INDEX_PARTITIONS[layout.FILES].record_type
    return partition_name(partition_path), encode_record({"type": record_type, "filesystemMetadata": infos})


def column_stats_record(
    partition_path: str, file_name: str, found: ColumnRange, *, typed: bool = True
) -> Entry:
    """Return the record of a column's range in one file; `typed` is false for statistics of version 1."""
    record_type = layout.INDEX_PARTITIONS[layout.COLUMN_STATS].record_type
    stats = _stats(file_name, found, typed)
    key = column_stats_key(found.column, partition_path, file_name)
    return key, encode_record({"type": record_type, "ColumnStatsMetadata": stats})


def partition_stats_record(partition_path: str, found: ColumnRange, *, typed: bool = True) -> Entry:
    """Return the record of a column's range in a partition; `typed` is false for statistics of version 1.

    Only a whole one is marked as tight, which to Hudi means that it stands for itself: Hudi takes records in the order
    in which writes were requested, and one that stands for itself hides what an earlier request completed later.
    """
    record_type = layout.INDEX_PARTITIONS[layout.PARTITION_STATS].record_type
    stats = _stats(partition_name(partition_path), found, typed) | {"isTightBound": found.is_whole}
    key = partition_stats_key(found.column, partition_path)
    return key, encode_record({"type": record_type, "ColumnStatsMetadata": stats})


def bloom_filter_record(instant: str, found: FileBloomFilter) -> Entry:
    """Return the record of a base file's bloom filter."""
    filter_record = {
        "type": found.type_code,
        "timestamp": instant,
        "bloomFilter": found.filter,
        "isDeleted": False,
    }
    record_type = layout.INDEX_PARTITIONS[layout.BLOOM_FILTERS].record_type
    key = bloom_filter_key(found.partition_path, found.file_name)
    return key, encode_record({"type": record_type, "BloomFilterMetadata": filter_record})


def _stats(file_name: str, found: ColumnRange, typed: bool) -> dict[str, Any]:
    typed = typed or not _fits_decimal_wrapper(found)
    wrapper, ordinal, info = _value_type(found.type)
    if found.lower is None and found.value_count == 0:
        ordinal, info = 1, None
    lower, upper = (
        _wrapped(wrapper, value, found.type) if typed else _wrapped_untyped(wrapper, value, found.type)
        for value in (found.lower, found.upper)
    )
    return {
        "fileName": file_name,
        "columnName": found.column,
        "minValue": lower,
        "maxValue": upper,
        "valueCount": found.value_count,
        "nullCount": found.null_count,
        "totalSize": found.total_size,
        "totalUncompressedSize": found.total_uncompressed,
        "isDeleted": False,
        "isTightBound": False,
        "valueType": {"typeOrdinal": ordinal, "additionalInfo": info} if typed else None,
    }


def _value_type(arrow: pa.DataType) -> tuple[str, int, str | None]:
    """Return the wrapper of a type's bounds, and how Hudi's statistics of version 2 call the type."""
    types = pa.types
    if types.is_decimal(arrow):
        return "BytesWrapper", 10, f"{arrow.precision},{arrow.scale}"
    if types.is_timestamp(arrow):
        return "LongWrapper", 16 if arrow.tz else 19, None
    for matches, wrapper, ordinal in (
        (types.is_boolean, "BooleanWrapper", 2),
        (types.is_int64, "LongWrapper", 4),
        (types.is_integer, "IntWrapper", 3),
        (types.is_float32, "FloatWrapper", 5),
        (types.is_floating, "DoubleWrapper", 6),
        (types.is_date, "IntWrapper", 12),
        (types.is_string, "StringWrapper", 7),
        (types.is_large_string, "StringWrapper", 7),
    ):
        if matches(arrow):
            return wrapper, ordinal, None
    return "BytesWrapper", 8, None


def _wrapped(wrapper: str, value: Any, arrow: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(arrow):
        value = value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)
    return (_NAMESPACE + wrapper, {"value": value})


def _fits_decimal_wrapper(found: ColumnRange) -> bool:
    """Whether statistics of version 1 can hold the bounds: 15 digits on either side of the point."""
    if not pa.types.is_decimal(found.type):
        return True
    bounds = [value for value in (found.lower, found.upper) if value is not None]
    return found.type.scale <= 15 and all(abs(value) < 10 ** (found.type.scale + 15) for value in bounds)


def _wrapped_untyped(wrapper: str, value: Any, arrow: pa.DataType) -> Any:
    """Statistics of version 1 tell the type of a date or decimal by the wrapper alone."""
    if value is not None and pa.types.is_date(arrow):
        wrapper = "DateWrapper"
    if value is not None and pa.types.is_decimal(arrow):
        return (_NAMESPACE + "DecimalWrapper", {"value": Decimal(value).scaleb(-arrow.scale, _EXACT)})
    return _wrapped(wrapper, value, arrow)


def record_index_values(located: KeyLocation, instant_ms: int) -> pa.Array:
    """Return the values of the record index for keys of one file group, all alike."""
    match = _UUID_FILE_ID.match(located.file_id)
    record: dict[str, Any] = {
        "partitionName": located.partition_path,
        "instantTime": instant_ms,
        "position": None,
    }
    if match is None:
        bits = {"fileIdHighBits": _NOTHING, "fileIdLowBits": _NOTHING, "fileIndex": _NOTHING}
        record |= {**bits, "fileId": located.file_id, "fileIdEncoding": _TEXT_ENCODING}
    else:
        high, low = _signed_halves(uuid.UUID(match.group(1)))
        bits = {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": int(match.group(2))}
        record |= {**bits, "fileId": "", "fileIdEncoding": _UUID_ENCODING}
    record_type = layout.INDEX_PARTITIONS[layout.RECORD_INDEX].record_type
    value = encode_record({"type": record_type, "recordIndexMetadata": record})
    return pa.repeat(pa.scalar(value, pa.binary()), len(located.keys))


def _signed_halves(found: uuid.UUID) -> tuple[int, int]:
    high, low = (int.from_bytes(part, "big", signed=True) for part in (found.bytes[:8], found.bytes[8:]))
    return high, low


def epoch_millis(instant: str, timezone: str) -> int:
    """Return when an instant was, its digits read as the table's clock (`UTC`, else the machine's zone)."""
    padded = (instant + "999")[:17] if len(instant) == 14 else instant[:17]
    moment = dt.datetime.strptime(padded[:14], "%Y%m%d%H%M%S")
    zoned = moment.replace(tzinfo=dt.timezone.utc) if timezone.upper() == "UTC" else moment.astimezone()
    return int(zoned.timestamp()) * 1000 + int(padded[14:17])


def encode_record(record: Mapping[str, Any]) -> bytes:
    """Return a record as it is stored."""
    stream = io.BytesIO()
    # The key is the entry's own; meta columns are not filled in the metadata table.
    fastavro.schemaless_writer(stream, _schema(), {**record, "key": ""})
    return stream.getvalue()


@lru_cache(maxsize=1)
def _schema() -> Any:
    return fastavro.parse_schema(json.loads(stored_metadata_schema()))
