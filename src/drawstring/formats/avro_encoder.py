"""Arrow to Avro, column by column: rows of a record batch as Avro records, without touching a row in Python.

Each column becomes *pieces*: for every row some bytes, maybe none. Pieces of fixed width are matrices of bytes
with a mask of those that count; texts, binaries and items of lists are Arrow's own binary arrays. Arrow joins the
pieces of each row.

    row = [length] | piece of column 1 | piece of column 2 | ...

Null has no bytes but the branch of its union, and so have the parts of a struct that is null: every piece knows
which rows are `present`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import IncompatibleSchema
from drawstring.schema.avro_arrow import arrow_schema_from_avro

CHUNK_ROWS = 16_384
"""Rows that are encoded at once: their matrices stay in the processor's cache."""
_CHUNK_BYTES = 256 << 20
"""Arrow bytes that are encoded at once, however few the rows: offsets of binaries have 31 bits."""
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_MILLIS = frozenset({"timestamp-millis", "local-timestamp-millis"})

Present = npt.NDArray[np.bool_]
Octets = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Matrix:
    """Bytes of a fixed width per row; `mask` says which of them count, None for all."""

    octets: Octets
    mask: Present | None = None


_Piece: TypeAlias = "_Matrix | pa.Array"


class AvroEncoder:
    """Encodes batches as records of one Avro schema; columns are found by name and cast to the schema's types."""

    def __init__(self, schema: str | Mapping[str, Any]) -> None:
        avro: Any = json.loads(schema) if isinstance(schema, str) else schema
        self.arrow_schema = arrow_schema_from_avro(avro)
        self._fields = _Inlined().resolve(avro)["fields"]

    def encode(self, batch: pa.RecordBatch, *, with_length: bool = False) -> list[pa.Array]:
        """Return the records as binary arrays, one item per row, in chunks.

        Args:
            batch: has the schema's columns, in any order; others are left out.
            with_length: put the record's length in front of it, four bytes, as log blocks want it.

        Raises:
            IncompatibleSchema: a column is missing, cannot be cast, or is null where the schema has no null.
        """
        columns = [self._column(batch, field) for field in self.arrow_schema]
        return [
            self._chunk([column.slice(start, count) for column in columns], count, with_length)
            for start, count in _chunks(batch)
        ]

    def _chunk(self, columns: Sequence[pa.Array], count: int, with_length: bool) -> pa.Array:
        pieces: list[_Piece] = []
        for column, field in zip(columns, self._fields, strict=True):
            pieces += _pieces(column, field["type"], None, field["name"])
        return _joined(pieces, count, with_length=with_length)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            raise IncompatibleSchema(
                f"Cannot encode rows: they lack the column {field.name!r} of the schema. Add it to the rows.",
                condition="COLUMN_MISSING",
                column=field.name,
            )
        column = batch.column(index)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        try:
            return column if column.type == field.type else column.cast(field.type)
        except pa.ArrowException as error:
            raise IncompatibleSchema(
                f"Cannot encode column {field.name!r}: {column.type} does not become {field.type} ({error}). "
                "Cast the column before writing.",
                condition="COLUMN_TYPE_MISMATCH",
                column=field.name,
                found=str(column.type),
                expected=str(field.type),
            ) from error


def joined_octets(rows: pa.Array) -> memoryview:
    """Return the bytes of encoded rows, one behind the other."""
    if not len(rows):
        return memoryview(b"")
    bounds = _offsets(rows)
    return memoryview(rows.buffers()[2]).cast("B")[int(bounds[0]) : int(bounds[-1])]


def _chunks(batch: pa.RecordBatch) -> list[tuple[int, int]]:
    rows = batch.num_rows
    size = max(1, min(CHUNK_ROWS, rows * _CHUNK_BYTES // max(1, batch.nbytes)))
    return [(start, min(size, rows - start)) for start in range(0, rows, size)]


class _Inlined:
    """A schema in which every name stands for its definition; recursive schemas are refused before."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def resolve(self, avro: Any, namespace: str = "") -> Any:
        """Return the schema with definitions in place of names."""
        if isinstance(avro, list):
            return [self.resolve(branch, namespace) for branch in avro]
        if isinstance(avro, str):
            return (
                avro
                if avro in _PRIMITIVES
                else self._named.get(_full(avro, namespace), self._named.get(avro))
            )
        kind = avro["type"]
        if kind in ("record", "error", "fixed", "enum"):
            return self._defined(avro, _full(str(avro["name"]), str(avro.get("namespace", namespace) or "")))
        if isinstance(kind, (dict, list)) or (kind not in _PRIMITIVES and kind not in ("array", "map")):
            return self.resolve(kind, namespace)
        inner = {key: self.resolve(avro[key], namespace) for key in ("items", "values") if key in avro}
        return {**avro, **inner}

    def _defined(self, avro: Mapping[str, Any], full_name: str) -> Any:
        namespace = full_name.rpartition(".")[0]
        fields = [
            {**field, "type": self.resolve(field["type"], namespace)} for field in avro.get("fields", ())
        ]
        self._named[full_name] = {**avro, "fields": fields}
        return self._named[full_name]


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _pieces(array: pa.Array, avro: Any, present: Present | None, path: str) -> list[_Piece]:
    """Return the pieces of a column; rows that are not `present` get no bytes."""
    if isinstance(avro, list):
        return _union(array, avro, present, path)
    kind = avro["type"] if isinstance(avro, dict) else avro
    _refuse_nulls(array, present, path)
    if kind in ("record", "error"):
        return _record(array, avro, present, path)
    if kind == "array":
        return _list(array, avro["items"], present, path)
    if kind == "map":
        return _map(array, avro["values"], present, path)
    return _value(array, kind, avro if isinstance(avro, dict) else {}, present, path)


def _record(array: pa.Array, avro: Any, present: Present | None, path: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    for index, field in enumerate(avro["fields"]):
        pieces += _pieces(array.field(index), field["type"], present, f"{path}.{field['name']}")
    return pieces


def _union(array: pa.Array, branches: Sequence[Any], present: Present | None, path: str) -> list[_Piece]:
    null = branches.index("null") if "null" in branches else None
    others = [number for number in range(len(branches)) if number != null]
    if len(others) > 1 and pa.types.is_struct(array.type):
        return _members(array, branches, null, present, path)
    if not others:
        return [_branch(np.zeros(len(array), np.uint8), present)]
    chosen, valid = _widest(branches, others), _valid(array)
    numbers = np.full(len(array), 2 * chosen, np.uint8)
    if valid is not None:
        if null is None:
            _refuse_nulls(array, present, path)
        numbers[~valid] = 2 * (null or 0)
    return [_branch(numbers, present), *_pieces(array, branches[chosen], _both(present, valid), path)]


def _members(
    array: pa.Array, branches: Sequence[Any], null: int | None, present: Present | None, path: str
) -> list[_Piece]:
    """Return the pieces of a union of several types: a struct of which one member is set, or none for null."""
    numbers = np.full(len(array), 2 * (null or 0), np.uint8)
    outer, set_members = _valid(array), np.zeros(len(array), np.uint8)
    parts: list[_Piece] = []
    for index, number in enumerate(number for number in range(len(branches)) if number != null):
        member = array.field(index)
        here = _both(outer, _valid(member))
        here = np.ones(len(array), np.bool_) if here is None else here
        numbers[here] = 2 * number
        set_members += here
        parts += _pieces(member, branches[number], _both(present, here), path)
    counted = set_members if present is None else set_members[present]
    if np.any(counted > 1) or (null is None and np.any(counted == 0)):
        raise IncompatibleSchema(
            f"Column {path} is a union: one of its members must be set in each row, none only for null.",
            condition="INVALID_UNION",
            column=path,
        )
    return [_branch(numbers, present), *parts]


def _list(array: pa.Array, items: Any, present: Present | None, path: str) -> list[_Piece]:
    offsets, values = _items(array)
    return _repeated(_joined(_pieces(values, items, None, f"{path}.element"), len(values)), offsets, present)


def _map(array: pa.Array, values: Any, present: Present | None, path: str) -> list[_Piece]:
    offsets, entries = _items(array)
    pieces = _pieces(entries.field(0), "string", None, f"{path}.key")
    pieces += _pieces(entries.field(1), values, None, f"{path}.value")
    return _repeated(_joined(pieces, len(entries)), offsets, present)


def _widest(branches: Sequence[Any], others: Sequence[int]) -> int:
    """The branch that holds every value: of int and long it is long."""
    return next((n for n in others if branches[n] in ("long", "double")), others[0])


def _valid(array: pa.Array) -> Present | None:
    """Which rows are not null; None when all are."""
    if array.null_count == 0:
        return None
    valid: Present = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _both(one: Present | None, other: Present | None) -> Present | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _refuse_nulls(array: pa.Array, present: Present | None, path: str) -> None:
    if array.null_count == 0 or pa.types.is_null(array.type):
        return
    valid = _valid(array)
    if valid is not None and not np.all(valid if present is None else valid | ~present):
        raise IncompatibleSchema(
            f"Column {path} has nulls, and the table's schema does not allow them there. Fill them, or make the "
            "column nullable.",
            condition="NULL_IN_REQUIRED_COLUMN",
            column=path,
        )


def _branch(numbers: Octets, present: Present | None) -> _Matrix:
    return _Matrix(numbers[:, None], None if present is None else present[:, None])


def _value(
    array: pa.Array, kind: str, avro: Mapping[str, Any], present: Present | None, path: str
) -> list[_Piece]:
    logical = avro.get("logicalType")
    if kind == "null":
        return []
    if kind == "boolean":
        return [
            _fixed(array.fill_null(False).to_numpy(zero_copy_only=False).view(np.uint8)[:, None], present)
        ]
    if kind in ("int", "long"):
        return [varints(_integers(array, logical), present)]
    if kind in ("float", "double"):
        width = 4 if kind == "float" else 8
        return [_fixed(_primitive(array, f"<f{width}").view(np.uint8).reshape(-1, width), present)]
    if logical == "decimal":
        return _decimal(array, kind, avro, present)
    if kind == "enum":
        numbers = pc.index_in(array, pa.array(avro["symbols"], pa.string()))
        _refuse(numbers.is_null(), present, path, f"another value than {', '.join(avro['symbols'])}")
        return [varints(_integers(numbers, None), present)]
    if kind == "fixed":
        _refuse(
            pc.not_equal(pc.binary_length(array), int(avro["size"])),
            present,
            path,
            "values of another length",
        )
        return [_present_only(array, present)]
    binary = array if pa.types.is_binary(array.type) else array.cast(pa.binary())
    return [varints(_lengths(binary).astype(np.int64), present), _present_only(binary, present)]


def _refuse(wrong: pa.Array, present: Present | None, path: str, what: str) -> None:
    found = wrong.fill_null(False).to_numpy(zero_copy_only=False)
    if np.any(found if present is None else found & present):
        raise IncompatibleSchema(
            f"Column {path} holds {what}, which its type in the table's schema does not allow. Correct the values.",
            condition="VALUE_NOT_IN_SCHEMA",
            column=path,
        )


def _fixed(octets: Octets, present: Present | None) -> _Matrix:
    return _Matrix(octets, None if present is None else np.broadcast_to(present[:, None], octets.shape))


def _primitive(array: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The values as numpy, whatever null slots hold."""
    wanted = np.dtype(dtype)
    if not len(array):
        return np.empty(0, wanted)
    return np.frombuffer(array.buffers()[1], wanted, len(array), array.offset * wanted.itemsize)


def _integers(array: pa.Array, logical: str | None) -> npt.NDArray[np.int64]:
    width = array.type.bit_width // 8
    numbers = _primitive(array, f"<i{width}").astype(np.int64)
    return numbers // 1000 if logical in _MILLIS else numbers


def varints(numbers: npt.NDArray[np.int64], present: Present | None = None) -> _Matrix:
    """Encode longs as Avro does: zigzag, then seven bits a byte."""
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    if present is not None:
        # What null slots hold must not make the matrix wide.
        rest = np.where(present, rest, np.uint64(0))
    largest = int(rest.max()) if len(rest) else 0
    width = max(1, -(-largest.bit_length() // 7))
    octets = np.empty((len(rest), width), np.uint8)
    mask = np.empty((len(rest), width), np.bool_) if width > 1 or present is not None else None
    more: Any = np.ones(len(rest), np.bool_) if present is None else present
    for position in range(width):
        if mask is not None:
            mask[:, position] = more
        follows = rest > 0x7F
        octets[:, position] = (rest & np.uint64(0x7F)).astype(np.uint8) | (follows.view(np.uint8) << 7)
        rest = rest >> np.uint64(7)
        more = more & follows
    return _Matrix(octets, mask)


def _decimal(array: pa.Array, kind: str, avro: Mapping[str, Any], present: Present | None) -> list[_Piece]:
    octets = big_endian(array)
    if kind == "fixed":
        return [_fixed(_resized(octets, int(avro["size"])), present)]
    mask = _significant(octets)
    if present is not None:
        mask &= present[:, None]
    return [varints(mask.sum(axis=1, dtype=np.int64), present), _Matrix(octets, mask)]


def big_endian(array: pa.Array) -> Octets:
    """Return decimals as two's complement, the most significant byte first."""
    width = array.type.bit_width // 8
    if not len(array):
        return np.empty((0, width), np.uint8)
    raw = np.frombuffer(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)
    return raw.reshape(-1, width)[:, ::-1]


def _resized(octets: Octets, size: int) -> Octets:
    width = octets.shape[1]
    if size <= width:
        return octets[:, width - size :]
    return np.hstack([np.repeat(np.uint8(0) - (octets[:, :1] >> 7), size - width, axis=1), octets])


def _significant(octets: Octets) -> Present:
    """Which bytes of two's complement numbers cannot be left out; the last one never can."""
    sign = octets[:, :1] >> 7
    redundant = (octets[:, :-1] == np.uint8(0) - sign) & ((octets[:, 1:] >> 7) == sign)
    mask = np.ones(octets.shape, np.bool_)
    mask[:, :-1] = ~np.logical_and.accumulate(redundant, axis=1)
    return mask


def _lengths(array: pa.Array) -> npt.NDArray[np.int32]:
    lengths: npt.NDArray[np.int32] = np.diff(_offsets(array))
    return lengths


def _offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)


def _present_only(array: pa.Array, present: Present | None) -> pa.Array:
    if present is not None and not present.all():
        return pc.if_else(pa.array(present), array, pa.scalar(b"", pa.binary())).fill_null(b"")
    return array.fill_null(b"") if array.null_count else array


def _items(array: pa.Array) -> tuple[npt.NDArray[np.int32], Any]:
    """The offsets of each row's items, and the items: only those of this slice."""
    offsets = _offsets(array)
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return offsets - offsets[0], values


def _repeated(items: pa.Array, offsets: npt.NDArray[np.int32], present: Present | None) -> list[_Piece]:
    """Pieces of lists: how many items, the items of each row one behind the other, and the end."""
    rows = len(offsets) - 1
    here = np.ones(rows, np.bool_) if present is None else present
    counts = np.diff(offsets).astype(np.int64)
    starts = _offsets(items)[offsets]
    body = pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(starts.tobytes()), items.buffers()[2]]
    )
    end = _fixed(np.zeros((rows, 1), np.uint8), present)
    return [varints(counts, here & (counts > 0)), _present_only(body, present), end]


def _joined(pieces: Sequence[_Piece], count: int, *, with_length: bool = False) -> pa.Array:
    """Join the pieces of each row."""
    merged = _merged(pieces)
    lengths = [_piece_lengths(piece, count) for piece in merged]
    if with_length:
        total = np.sum(lengths, axis=0, dtype=np.int64) if lengths else np.zeros(count, np.int64)
        prefix = total.astype(">i4").view(np.uint8).reshape(-1, 4)
        if merged and isinstance(merged[0], _Matrix):
            merged[0] = _stacked([_Matrix(prefix), merged[0]])
            lengths[0] = lengths[0] + 4
        else:
            merged.insert(0, _Matrix(prefix))
            lengths.insert(0, np.full(count, 4, np.int64))
    arrays = [_binary(piece, found) for piece, found in zip(merged, lengths, strict=True)]
    if not arrays:
        return pa.array([b""] * count, pa.binary())
    return arrays[0] if len(arrays) == 1 else pc.binary_join_element_wise(*arrays, b"")


def _merged(pieces: Sequence[_Piece]) -> list[_Piece]:
    """Put neighbouring matrices together: one join instead of many."""
    merged: list[_Piece] = []
    run: list[_Matrix] = []
    for piece in pieces:
        if isinstance(piece, _Matrix):
            run.append(piece)
            continue
        if run:
            merged.append(_stacked(run))
            run = []
        merged.append(piece)
    if run:
        merged.append(_stacked(run))
    return merged


def _stacked(run: Sequence[_Matrix]) -> _Matrix:
    if len(run) == 1:
        return run[0]
    octets = np.hstack([part.octets for part in run])
    if all(part.mask is None for part in run):
        return _Matrix(octets)
    masks = [np.ones(part.octets.shape, np.bool_) if part.mask is None else part.mask for part in run]
    return _Matrix(octets, np.hstack(masks))


def _piece_lengths(piece: _Piece, count: int) -> npt.NDArray[Any]:
    if not isinstance(piece, _Matrix):
        return _lengths(piece)
    if piece.mask is None:
        return np.full(count, piece.octets.shape[1], np.int64)
    # Adding columns is faster than summing along rows, which are short.
    lengths = np.zeros(count, np.int64)
    for column in range(piece.mask.shape[1]):
        lengths += piece.mask[:, column]
    return lengths


def _binary(piece: _Piece, lengths: npt.NDArray[Any]) -> pa.Array:
    if not isinstance(piece, _Matrix):
        return piece
    data = piece.octets.reshape(-1) if piece.mask is None else piece.octets[piece.mask]
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
