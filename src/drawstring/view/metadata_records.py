"""Records of the metadata table, decoded from Avro."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
import numpy as np
import numpy.typing as npt

from drawstring.errors import CorruptTable
from drawstring.formats.avro_columns import CannotDecode, decode_columns

FileSizes = dict[str, "int | None"]
"""File names with their sizes; None says that the file was deleted."""

_SCHEMAS = 16
_FEW_RECORDS = 32


def decode_record(value: memoryview, schema: str) -> dict[str, Any]:
    """Decode one record of any kind; raises `CorruptTable` when the bytes do not fit the schema."""
    try:
        record: dict[str, Any] = fastavro.schemaless_reader(io.BytesIO(value), _parsed(schema))
    except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise _corrupt(error) from error
    return record


class StatsRecord(NamedTuple):
    """Statistics of one column of one file; bounds are as stored, without the records that wrap them."""

    file_name: str
    column_name: str
    lower: Any
    upper: Any
    value_count: int | None
    null_count: int | None
    is_deleted: bool
    type_ordinal: int
    type_info: str | None


class StatsColumns(NamedTuple):
    """Statistics of one column of many files, an array for each field of `StatsRecord`."""

    file_names: npt.NDArray[Any]
    column_names: npt.NDArray[Any]
    lower: npt.NDArray[Any]
    upper: npt.NDArray[Any]
    value_count: npt.NDArray[Any]
    null_count: npt.NDArray[Any]
    is_deleted: npt.NDArray[Any]
    type_ordinal: npt.NDArray[Any]
    type_info: npt.NDArray[Any]


def decode_column_stats(values: Sequence[memoryview], schema: str) -> list[StatsRecord]:
    """Decode records of column statistics, all of one column or index.

    Many at once are decoded field by field, since one by one they would take longer than planning may.
    """
    columns = stats_columns(values, schema) if len(values) >= _FEW_RECORDS else None
    if columns is not None:
        return list(map(StatsRecord._make, zip(*(field.tolist() for field in columns), strict=True)))
    return [
        _stats_of_record(decode_record(value, schema).get("ColumnStatsMetadata") or {}) for value in values
    ]


def stats_columns(values: Sequence[memoryview], schema: str) -> StatsColumns | None:
    """Decode records of column statistics field by field; None where they are damaged or of another shape.

    What is damaged is told by the decoder that looks at each record.
    """
    try:
        found = decode_columns(values, _json(schema))["ColumnStatsMetadata"]
        kind = found.get("valueType") or {}
        fields = (
            *(found[name] for name in ("fileName", "columnName")),
            *(_unwrapped(found[name]) for name in ("minValue", "maxValue")),
            *(found[name] for name in ("valueCount", "nullCount", "isDeleted")),
            _or_zero(kind.get("typeOrdinal"), len(values)),
            kind.get("additionalInfo"),
        )
    except (CannotDecode, KeyError, TypeError, AttributeError):
        return None
    nothing = np.full(len(values), None, object)
    return StatsColumns._make(nothing if field is None else field for field in fields)


def _or_zero(numbers: Any, count: int) -> npt.NDArray[np.int64]:
    if numbers is None:
        return np.zeros(count, np.int64)
    return np.fromiter((number or 0 for number in numbers.tolist()), np.int64, count)


def _unwrapped(values: Any) -> Any:
    return values.get("value") if isinstance(values, dict) else values


def _stats_of_record(record: Mapping[str, Any]) -> StatsRecord:
    get = record.get
    kind = get("valueType") or {}
    return StatsRecord(
        get("fileName") or "",
        get("columnName") or "",
        _unwrapped(get("minValue")),
        _unwrapped(get("maxValue")),
        get("valueCount"),
        get("nullCount"),
        bool(get("isDeleted")),
        kind.get("typeOrdinal") or 0,
        kind.get("additionalInfo"),
    )


_LOCATION = ("partitionName", "fileIdHighBits", "fileIdLowBits", "fileIndex", "fileId", "fileIdEncoding")


def decode_record_index(values: Sequence[memoryview], schema: str) -> list[tuple[Any, ...] | None]:
    """Decode records of the record index: partition, the file id's halves and number or its text, its encoding.

    None for a record that tells no location.
    """
    if len(values) >= _FEW_RECORDS:
        try:
            columns = decode_columns(values, _json(schema))["recordIndexMetadata"]
            return list(zip(*(columns[name].tolist() for name in _LOCATION), strict=True))
        except (CannotDecode, KeyError, TypeError, AttributeError):
            # What is damaged, or tells no location, is told by the decoder that looks at each record.
            pass
    records = [decode_record(value, schema).get("recordIndexMetadata") for value in values]
    return [None if found is None else tuple(found[name] for name in _LOCATION) for found in records]


def decode_files(value: memoryview, schema: str) -> FileSizes:
    """Decode the file map of a record of the `files` partition.

    Listings of large tables are made of such records, so they are decoded by hand: only the map is looked at,
    and no object is made per entry but its name and size.
    """
    skip = _map_position(schema)
    if skip is None:
        return _files_of(decode_record(value, schema))
    data = bytes(value)
    try:
        position = skip(data)
        return _file_map(data, position) if position is not None else {}
    except (IndexError, UnicodeDecodeError) as error:
        raise _corrupt(error) from error


@lru_cache(maxsize=_SCHEMAS)
def _parsed(schema: str) -> Any:
    try:
        return fastavro.parse_schema(json.loads(schema))
    except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
        raise _corrupt(error) from error


@lru_cache(maxsize=_SCHEMAS)
def _json(schema: str) -> Any:
    try:
        return json.loads(schema)
    except ValueError as error:
        raise _corrupt(error) from error


def _corrupt(why: object) -> CorruptTable:
    return CorruptTable(
        f"A record of the metadata table cannot be decoded: {why!r}. Rebuild the metadata table with "
        "`drawstring metadata rebuild PATH`.",
        condition="INVALID_METADATA_RECORD",
    )


def _files_of(record: dict[str, Any]) -> FileSizes:
    found = record.get("filesystemMetadata") or {}
    return {name: None if info["isDeleted"] else info["size"] for name, info in found.items()}


@lru_cache(maxsize=_SCHEMAS)
def _map_position(schema: str) -> Callable[[bytes], int | None] | None:
    """Return what finds the map's position (None: no map), or None when the schema is not the expected one."""
    fields = _json(schema).get("fields", [])
    names = [field["name"] for field in fields]
    if "filesystemMetadata" not in names:
        return None
    before = [_kind(field["type"]) for field in fields[: names.index("filesystemMetadata")]]
    expected = ["null", {"type": "map", "values": {"fields": ["size:long", "isDeleted:boolean"]}}]
    if None in before or _shape(fields[len(before)]["type"]) != expected:
        return None
    return lambda data: _skip(data, before)


def _kind(avro: Any) -> str | None:
    name = avro.get("type") if isinstance(avro, dict) else avro
    if name in ("string", "int"):
        return str(name)
    branches = [branch.get("type") if isinstance(branch, dict) else branch for branch in avro or ()]
    return "optional" if branches == ["null", "string"] else None


def _shape(avro: Any) -> Any:
    if not (isinstance(avro, list) and len(avro) == 2 and isinstance(avro[1], dict)):
        return None
    values = avro[1].get("values")
    fields = values.get("fields", ()) if isinstance(values, dict) else ()
    listed = [f"{field['name']}:{field['type']}" for field in fields]
    return [avro[0], {"type": avro[1].get("type"), "values": {"fields": listed}}]


def _skip(data: bytes, kinds: list[str | None]) -> int | None:
    position = 0
    for kind in kinds:
        number, position = _varint(data, position)
        if kind == "optional":
            if number == 0:
                continue
            number, position = _varint(data, position)
        if kind != "int":
            position += number >> 1
    branch, position = _varint(data, position)
    return position if branch else None


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read an unsigned variable-length number; Avro's are twice the value for values of 0 and more."""
    byte = data[position]
    number, shift, position = byte & 0x7F, 7, position + 1
    while byte > 0x7F:
        byte = data[position]
        number |= (byte & 0x7F) << shift
        shift, position = shift + 7, position + 1
    return number, position


def _file_map(data: bytes, position: int) -> FileSizes:
    # The reading of numbers is written out, not called: this loop runs once per file of the table.
    files: FileSizes = {}
    while True:
        count, position = _varint(data, position)
        if count == 0:
            return files
        if count & 1:
            count += 1
            _, position = _varint(data, position)
        for _ in range(count >> 1):
            byte = data[position]
            number, shift, position = byte & 0x7F, 7, position + 1
            while byte > 0x7F:
                byte = data[position]
                number |= (byte & 0x7F) << shift
                shift, position = shift + 7, position + 1
            end = position + (number >> 1)
            name = data[position:end].decode()
            byte = data[end]
            number, shift, position = byte & 0x7F, 7, end + 1
            while byte > 0x7F:
                byte = data[position]
                number |= (byte & 0x7F) << shift
                shift, position = shift + 7, position + 1
            files[name] = None if data[position] else number >> 1
            position += 1
