"""Many Avro records of one schema decoded field by field: each step reads one field of all records at once.

Made for the small, flat records of the metadata table, which are too many to be decoded one by one and have
unions that native decoders refuse. What it does not know (maps, arrays) raises `CannotDecode`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_PADDING = b"\x00" * 16
_FLOATS: dict[str, np.dtype[Any]] = {"float": np.dtype("<f4"), "double": np.dtype("<f8")}
Positions = npt.NDArray[np.int64]


class CannotDecode(Exception):
    """The schema has something that this decoder does not know, or the bytes do not fit it."""


def decode_columns(records: Sequence[memoryview], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Decode records; returns, by field, an array of values, or for a record the same of its fields.

    The fields of a record behind a union are None where the union has another branch.
    """
    lengths = np.fromiter(map(len, records), np.int64, len(records))
    ends = np.cumsum(lengths)
    data = b"".join([*records, _PADDING])
    cursor = _Cursor(data, ends - lengths)
    try:
        found: dict[str, Any] = _Decoder({}).read(schema, cursor)
    except (IndexError, ValueError, KeyError, UnicodeDecodeError) as error:
        raise CannotDecode(str(error)) from error
    if not np.array_equal(cursor.at, ends):
        raise CannotDecode("records do not end where they should")
    return found


class _Cursor:
    """Where each record is read next."""

    def __init__(self, data: bytes, at: Positions) -> None:
        self.data = data
        self.bytes = np.frombuffer(data, np.uint8)
        self.at = at

    def part(self, rows: Positions) -> _Cursor:
        """A cursor of some of the records."""
        part = _Cursor.__new__(_Cursor)
        part.data, part.bytes, part.at = self.data, self.bytes, self.at[rows]
        return part

    def longs(self) -> npt.NDArray[np.int64]:
        """Read a zigzag-coded number of each record."""
        at = self.at
        byte = self.bytes[at]
        value = (byte & 0x7F).astype(np.uint64)
        at = at + 1
        rows = np.flatnonzero(byte > 0x7F)
        shift = 7
        while len(rows):
            if shift > 63:
                raise ValueError("a number of more than ten bytes")
            byte = self.bytes[at[rows]]
            value[rows] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[rows] += 1
            rows = rows[byte > 0x7F]
            shift += 7
        self.at = at
        signs = -(value & np.uint64(1)).astype(np.int64)
        number: npt.NDArray[np.int64] = (value >> np.uint64(1)).astype(np.int64) ^ signs
        return number

    def skip(self, lengths: npt.NDArray[np.int64] | int) -> Positions:
        """Pass over bytes of each record; returns where they begin."""
        start = self.at
        self.at = start + lengths
        if len(self.at) and (int(self.at.max()) > len(self.data) or int(np.min(self.at - start)) < 0):
            raise ValueError("a value leaves its record")
        return start


class _Decoder:
    """Decodes by a schema; `names` holds the named types met so far."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def read(self, avro: Any, cursor: _Cursor) -> Any:
        if isinstance(avro, list):
            return self._union(avro, cursor)
        kind = avro["type"] if isinstance(avro, dict) else avro
        if isinstance(kind, (dict, list)):
            return self.read(kind, cursor)
        if kind == "record":
            self._names[avro["name"].rsplit(".", 1)[-1]] = avro
            return {field["name"]: self.read(field["type"], cursor) for field in avro["fields"]}
        if kind in ("array", "map", "enum", "fixed") or _is_decimal(avro):
            raise CannotDecode(f"no decoder of {avro}")
        known = self._names.get(str(kind).rsplit(".", 1)[-1])
        return self.read(known, cursor) if known is not None else _primitive(kind, cursor)

    def _union(self, branches: Sequence[Any], cursor: _Cursor) -> Any:
        for branch in branches:
            self._learn(branch)
        chosen = cursor.longs()
        merged: Any = None
        for number in np.unique(chosen):
            if not 0 <= number < len(branches):
                raise ValueError(f"a union has no branch {number}")
            rows = np.flatnonzero(chosen == number)
            part = cursor.part(rows)
            found = self.read(branches[number], part)
            cursor.at[rows] = part.at
            merged = _placed(merged, found, rows, len(chosen))
        return merged

    def _learn(self, branch: Any) -> None:
        if isinstance(branch, dict) and branch.get("type") == "record":
            self._names.setdefault(branch["name"].rsplit(".", 1)[-1], branch)


def _is_decimal(avro: Any) -> bool:
    return isinstance(avro, dict) and avro.get("logicalType") == "decimal"


def _placed(merged: Any, found: Any, rows: Positions, count: int) -> Any:
    """Put the values of one branch among those of the others."""
    if isinstance(found, dict):
        known = merged if isinstance(merged, dict) else {}
        return {
            **known,
            **{name: _placed(known.get(name), values, rows, count) for name, values in found.items()},
        }
    if found is None or (merged is None and len(rows) == count):
        return merged if found is None else found
    if isinstance(merged, dict):
        raise CannotDecode("a union of records and values")
    target = np.full(count, None, object) if merged is None else merged.astype(object)
    target[rows] = found
    return target


def _primitive(kind: str, cursor: _Cursor) -> Any:
    if kind == "null":
        return None
    if kind in ("int", "long"):
        return cursor.longs()
    if kind == "boolean":
        return cursor.bytes[cursor.skip(1)] != 0
    if kind in _FLOATS:
        size = _FLOATS[kind].itemsize
        starts = cursor.skip(size)
        return cursor.bytes[starts[:, None] + np.arange(size)].copy().view(_FLOATS[kind])[:, 0]
    if kind in ("string", "bytes"):
        lengths = cursor.longs()
        starts = cursor.skip(lengths)
        return _slices(cursor.data, starts, lengths, is_text=kind == "string")
    raise CannotDecode(f"no decoder of {kind}")


def _slices(
    data: bytes, starts: Positions, lengths: npt.NDArray[np.int64], *, is_text: bool
) -> npt.NDArray[Any]:
    pairs = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    values = np.empty(len(starts), object)
    values[:] = [data[a:b].decode() for a, b in pairs] if is_text else [data[a:b] for a, b in pairs]
    return values
