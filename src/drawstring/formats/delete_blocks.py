"""DELETE log blocks: record keys, with the ordering values they were deleted at.

The content is: int32 version, int32 length, and (version 3) one Avro record that holds an array of records
`{recordKey, partitionPath, orderingVal}`. The ordering value is a union of one-field wrapper records. An int
0 or a null stands for "no ordering value": such a delete wins over everything before it. Versions 1 and 2 are
Java's (`kryo_deletes`).

The deletes of one block nearly always use one branch of the union. Then the array is a sequence of rows with
plain fields, which the native decoder takes; blocks that mix branches go through fastavro.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable
from drawstring.formats.avro_native import NativeDecodeError, Rows, decode_rows, read_varint, varint
from drawstring.formats.kryo_deletes import kryo_deletes

DELETE_BLOCK_VERSION = 3
_KRYO_VERSIONS = (1, 2)
PREFIX = struct.Struct(">ii")
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
WRAPPED: tuple[tuple[str, Any, pa.DataType], ...] = (
    ("null", "null", pa.null()),
    ("BooleanWrapper", "boolean", pa.bool_()),
    ("IntWrapper", "int", pa.int32()),
    ("LongWrapper", "long", pa.int64()),
    ("FloatWrapper", "float", pa.float32()),
    ("DoubleWrapper", "double", pa.float64()),
    ("BytesWrapper", "bytes", pa.binary()),
    ("StringWrapper", "string", pa.string()),
    ("DateWrapper", "int", pa.date32()),
    ("DecimalWrapper", _DECIMAL, pa.decimal128(30, 15)),
    ("TimeMicrosWrapper", "long", pa.time64("us")),
    ("TimestampMicrosWrapper", "long", pa.timestamp("us", tz="UTC")),
)
_NULL, INT_BRANCH, ARRAY_BRANCH = 0, 2, len(WRAPPED)
_FEW = 200
"""So many deletes are decoded one by one in the time that the native decoder takes to start."""
_SENTINEL = b"\x00drawstring: the deletes end here\x00"


@dataclass(frozen=True)
class DeleteBatch:
    """Deletes of one kind: with one array of ordering values per ordering field, or with none at all.

    `orderings` empty means commit-time deletes, which win over everything before them.
    """

    keys: pa.Array
    orderings: tuple[pa.Array, ...]


def decode_delete_block(content: pa.Buffer) -> list[DeleteBatch]:
    """Decode a DELETE block's content.

    Deletes of one block are not ordered among themselves, so they may come back grouped by kind.

    Raises:
        UnsupportedTable: the block has an unknown version, or ordering values of an unknown class.
        CorruptTable: the bytes are no list of deletes.
    """
    version, payload = _payload(content)
    try:
        if version in _KRYO_VERSIONS:
            deletes = kryo_deletes(_octets(payload), version=version)
            return list(_grouped((key, *_ordering_of(value)) for key, value in deletes))
        items = _array_items(payload)
        return [batch for rows in items for batch in _decode_rows(rows) if len(batch.keys)]
    except (IndexError, ValueError, pa.ArrowException, NativeDecodeError) as error:
        raise _unreadable(str(error)) from error


def _payload(content: pa.Buffer) -> tuple[int, pa.Buffer]:
    if content.size < PREFIX.size:
        raise _unreadable(f"its content has only {content.size} bytes")
    version, length = PREFIX.unpack(content.slice(0, PREFIX.size))
    if version not in (*_KRYO_VERSIONS, DELETE_BLOCK_VERSION):
        raise found_in_files(
            "UNSUPPORTED_DELETE_BLOCK", found=f"version {version}", known="versions 1, 2 and 3"
        )
    if length != content.size - PREFIX.size:
        raise _unreadable(f"it claims {length} bytes, {content.size - PREFIX.size} are there")
    return version, content.slice(PREFIX.size)


def _array_items(payload: pa.Buffer) -> list[Rows]:
    """Split an Avro array into its blocks; one without a byte size is taken to reach to the array's end."""
    data, position, rows = _octets(payload), 0, []
    while True:
        count, position = read_varint(data, position)
        if count == 0:
            break
        if count > 0:
            size = len(data) - position - 1
        else:
            size, position = read_varint(data, position)
        if not 0 < size < len(data) - position:
            raise ValueError(f"{abs(count)} deletes in {size} bytes")
        rows.append(Rows(abs(count), payload.slice(position, size)))
        position += size
    if position != len(data):
        raise ValueError("bytes follow the end of the list")
    return rows


def _octets(data: pa.Buffer) -> memoryview:
    return memoryview(data).cast("B")


def _decode_rows(rows: Rows) -> list[DeleteBatch]:
    if 3 * rows.count > rows.data.size:
        raise ValueError(f"{rows.count} deletes in {rows.data.size} bytes")
    shape = _shape_of_first(_octets(rows.data)) if rows.count > _FEW else None
    batches = _decode_alike(rows, shape) if shape is not None else None
    return list(batches if batches is not None else _grouped(_records(rows)))


def _shape_of_first(data: memoryview) -> tuple[int, ...] | None:
    """The union branches of the first delete: one, or ARRAY and those of its values; None when not plain."""
    position = _skip_text(data, _skip_text(data, 0))
    branch, position = read_varint(data, position)
    if branch != ARRAY_BRANCH:
        return (branch,) if 0 <= branch < ARRAY_BRANCH else None
    present, position = read_varint(data, position)
    count, position = read_varint(data, position) if present else (0, position)
    branches = [ARRAY_BRANCH]
    for _ in range(count):
        branch, position = read_varint(data, position)
        if not _NULL < branch < ARRAY_BRANCH:
            return None
        branches.append(branch)
        position = _skip_value(data, position, branch)
    return tuple(branches) if 0 < count <= 64 else None


def _skip_text(data: memoryview, position: int) -> int:
    present, position = read_varint(data, position)
    if not present:
        return position
    length, position = read_varint(data, position)
    return position + length


def _skip_value(data: memoryview, position: int, branch: int) -> int:
    avro = WRAPPED[branch][1]
    if avro in ("boolean", "float", "double"):
        return position + {"boolean": 1, "float": 4, "double": 8}[avro]
    number, position = read_varint(data, position)
    return position if avro in ("int", "long") else position + number


def _decode_alike(rows: Rows, shape: tuple[int, ...]) -> list[DeleteBatch] | None:
    """Decode deletes that all have `shape`; None when one of them has not."""
    fields, expected, values = plain_fields(shape)
    schema = {"type": "record", "name": "deletes", "fields": [KEY_FIELD, PATH_FIELD, *fields]}
    sentinel = _sentinel(shape)
    parts = [rows, Rows(1, pa.py_buffer(sentinel))]
    try:
        table = pa.Table.from_batches(decode_rows(schema, parts, filler=sentinel))
    except NativeDecodeError:
        return None
    alike = all(pc.all(pc.equal(table[name], number)).as_py() for name, number in expected.items())
    if not alike or table["recordKey"][rows.count].as_py() != _SENTINEL.decode():
        return None
    table = table.slice(0, rows.count).combine_chunks()
    orderings = [
        _one_array(table[name]).cast(WRAPPED[branch][2])
        for name, branch in zip(values, shape[-len(values) :] if values else (), strict=True)
    ]
    return _batches(_one_array(table["recordKey"]), shape[0], orderings)


KEY_FIELD = {"name": "recordKey", "type": ["null", "string"]}
PATH_FIELD = {"name": "partitionPath", "type": ["null", "string"]}


def plain_fields(shape: tuple[int, ...]) -> tuple[list[dict[str, Any]], dict[str, int], list[str]]:
    """Fields that spell out the union, the numbers some of them must hold, and the names of the values."""
    fields: list[dict[str, Any]] = [{"name": "branch", "type": "long"}]
    expected = {"branch": shape[0]}
    branches = shape
    if shape[0] == ARRAY_BRANCH:
        fields += [{"name": "present", "type": "long"}, {"name": "count", "type": "long"}]
        branches = shape[1:]
        expected |= {"present": 1, "count": len(branches)}
    values = []
    for index, branch in enumerate(branches):
        if shape[0] == ARRAY_BRANCH:
            fields.append({"name": f"branch{index}", "type": "long"})
            expected[f"branch{index}"] = branch
        if branch != _NULL:
            fields.append({"name": f"value{index}", "type": WRAPPED[branch][1]})
            values.append(f"value{index}")
    if shape[0] == ARRAY_BRANCH:
        fields.append({"name": "end", "type": "long"})
        expected["end"] = 0
    return fields, expected, values


def _sentinel(shape: tuple[int, ...]) -> bytes:
    """A delete of that shape with a key that no record has."""
    row = varint(1) + varint(len(_SENTINEL)) + _SENTINEL + varint(0) + varint(shape[0])
    if shape[0] != ARRAY_BRANCH:
        return row + _zero(shape[0])
    row += varint(1) + varint(len(shape) - 1)
    return row + b"".join(varint(branch) + _zero(branch) for branch in shape[1:]) + varint(0)


def _zero(branch: int) -> bytes:
    avro = WRAPPED[branch][1]
    if avro is _DECIMAL:
        return varint(1) + b"\x00"
    return {"null": b"", "float": bytes(4), "double": bytes(8)}.get(avro, b"\x00")


def _batches(keys: pa.Array, branch: int, orderings: Sequence[pa.Array]) -> list[DeleteBatch]:
    if branch == _NULL or not orderings:
        return [DeleteBatch(keys, ())]
    if branch != INT_BRANCH:
        return [DeleteBatch(keys, tuple(orderings))]
    zero = pc.equal(orderings[0], 0)
    other = pc.invert(zero)
    return [
        DeleteBatch(keys.filter(other), (orderings[0].filter(other),)),
        DeleteBatch(keys.filter(zero), ()),
    ]


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


_Delete = tuple[str, tuple[int, ...], tuple[Any, ...]]
"""A key, the branches of its ordering values, and these values."""


def _grouped(deletes: Iterable[_Delete]) -> Iterator[DeleteBatch]:
    """Group by kind what was decoded one by one; commit-time deletes come last, for they win anyway."""
    groups: dict[tuple[int, ...], tuple[list[str], list[tuple[Any, ...]]]] = {}
    for key, branches, values in deletes:
        keys, orderings = groups.setdefault(branches, ([], []))
        keys.append(key)
        orderings.append(values)
    for branches, (keys, orderings) in sorted(groups.items(), reverse=True):
        arrays = [
            pa.array([values[index] for values in orderings], type=_storage_type(branch)).cast(
                WRAPPED[branch][2]
            )
            for index, branch in enumerate(branches)
        ]
        yield DeleteBatch(pa.array(keys, type=pa.string()), tuple(arrays))


def _storage_type(branch: int) -> pa.DataType:
    name, arrow = WRAPPED[branch][1], WRAPPED[branch][2]
    return {"int": pa.int32(), "long": pa.int64()}.get(name, arrow) if isinstance(name, str) else arrow


def _records(rows: Rows) -> Iterator[_Delete]:
    import fastavro

    schema = _parsed_schema()
    stream = io.BytesIO(rows.data)
    for _ in range(rows.count):
        try:
            record: Any = fastavro.schemaless_reader(stream, schema, None, return_record_name=True)
        except Exception as error:
            raise ValueError(f"a delete cannot be decoded: {error}") from error
        branches, values = _ordering_of(record["orderingVal"])
        yield record["recordKey"], branches, values
    if stream.tell() != rows.data.size:
        raise ValueError("bytes follow the last delete")


def _ordering_of(value: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    if value is None:
        return (), ()
    name, wrapper = value
    if name == "ArrayWrapper":
        parts = [_ordering_of(part) for part in wrapper["wrappedValues"] or ()]
        if not all(branches for branches, _ in parts):
            return (), ()
        return tuple(b[0] for b, _ in parts), tuple(v[0] for _, v in parts)
    branch = _BRANCHES[name]
    if branch == INT_BRANCH and wrapper["value"] == 0:
        return (), ()
    return (branch,), (wrapper["value"],)


_BRANCHES = {name: index for index, (name, _, _) in enumerate(WRAPPED)}


@lru_cache(maxsize=1)
def _parsed_schema() -> Any:
    import fastavro

    return fastavro.parse_schema(_full_schema())


def _full_schema() -> dict[str, Any]:
    wrappers: list[Any] = [
        avro if name == "null" else _record(name, [{"name": "value", "type": avro}])
        for name, avro, _ in WRAPPED
    ]
    inner = {"type": "array", "items": [name for name, _, _ in WRAPPED]}
    array = _record("ArrayWrapper", [{"name": "wrappedValues", "type": ["null", inner]}])
    ordering = {"name": "orderingVal", "type": [*wrappers, array]}
    return _record("HoodieDeleteRecord", [KEY_FIELD, PATH_FIELD, ordering])


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _unreadable(reason: str) -> CorruptTable:
    return CorruptTable(f"A block of deletes cannot be read: {reason}.", condition="LOG_BLOCK_UNREADABLE")
