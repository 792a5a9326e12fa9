"""Footers of Parquet files, changed in place: bounds taken out of column chunks that must not have any.

A footer is one Thrift structure in the compact protocol. Only what leads to the statistics of a column chunk is
looked at; everything else is copied as it stands.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping

MAGIC = b"PAR1"
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS = 4, 1, 3, 12
_NULL_COUNT = 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_VARINTS = (_I16, _I32, _I64)


def without_bounds(footer: bytes, chunks: Mapping[int, Collection[int]]) -> bytes:
    """Return the end of a file, from its footer on, without minimum and maximum of some column chunks.

    `chunks` gives, by the number of a row group, the numbers of its columns. Counts of nulls stay.
    """
    length = struct.unpack("<I", footer[-8:-4])[0]
    assert footer.endswith(MAGIC), "the magic number ends a file"
    assert len(footer) == length + 8, "nothing but a footer, its length and the magic number"
    pieces, copied = [], 0
    for start, end in sorted(_statistics(footer, chunks)):
        pieces += [footer[copied:start], _counts_only(footer, start)]
        copied = end
    body = b"".join([*pieces, footer[copied:length]])
    return body + struct.pack("<I", len(body)) + MAGIC


def _statistics(data: bytes, chunks: Mapping[int, Collection[int]]) -> Iterator[tuple[int, int]]:
    """Yield where the statistics of the chunks lie."""
    groups = _positions(data, 0, _ROW_GROUPS)
    for group, columns in chunks.items():
        found = _positions(data, groups[group], _COLUMNS)
        for column in columns:
            meta_data = _field(data, found[column], _META_DATA)
            where = None if meta_data is None else _field(data, meta_data, _STATISTICS)
            if where is not None:
                yield where, _after(data, where, _STRUCT)


def _positions(data: bytes, structure: int, number: int) -> list[int]:
    """Return where the elements of a list of structures begin."""
    start = _field(data, structure, number)
    if start is None:
        return []
    count, kind, at = _list_header(data, start)
    found = []
    for _ in range(count):
        found.append(at)
        at = _after(data, at, kind)
    return found


def _field(data: bytes, structure: int, number: int) -> int | None:
    return next((at for found, _, at in _fields(data, structure) if found == number), None)


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, type and place of the fields of a structure; the last is the stop, of type 0."""
    number = 0
    while True:
        header = data[at]
        at += 1
        if header == 0:
            yield -1, 0, at
            return
        kind = header & 0x0F
        if header >> 4:
            number += header >> 4
        else:
            raw, at = _varint(data, at)
            number = (raw >> 1) ^ -(raw & 1)
        yield number, kind, at
        at = _after_field(data, at, kind)


def _after_field(data: bytes, at: int, kind: int) -> int:
    return at if kind in (_TRUE, _FALSE) else _after(data, at, kind)


def _after(data: bytes, at: int, kind: int) -> int:
    """Return where a value ends."""
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind in _VARINTS:
        return _varint(data, at)[1]
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in (_LIST, _SET):
        count, element, at = _list_header(data, at)
        for _ in range(count):
            at = _after(data, at, element)
        return at
    if kind == _MAP:
        return _after_map(data, at)
    assert kind == _STRUCT, f"type {kind} of Thrift's compact protocol"
    for _, _, end in _fields(data, at):
        at = end
    return at


def _after_map(data: bytes, at: int) -> int:
    count, at = _varint(data, at)
    if count:
        kinds = data[at]
        at += 1
        for _ in range(count):
            at = _after(data, _after(data, at, kinds >> 4), kinds & 0x0F)
    return at


def _list_header(data: bytes, at: int) -> tuple[int, int, int]:
    header = data[at]
    if header >> 4 < 15:
        return header >> 4, header & 0x0F, at + 1
    count, after = _varint(data, at + 1)
    return count, header & 0x0F, after


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _counts_only(data: bytes, statistics: int) -> bytes:
    where = _field(data, statistics, _NULL_COUNT)
    if where is None:
        return b"\0"
    return bytes([_NULL_COUNT << 4 | _I64]) + data[where : _after(data, where, _I64)] + b"\0"
