"""Writes HFiles as Hudi's own writer does: one level of index, uncompressed, no checksums."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from drawstring.formats.hfile import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    HEADER_BYTES,
    ROOT_INDEX_MAGIC,
    TRAILER_BYTES,
    TRAILER_MAGIC,
)

BLOCK_BYTES = 64 * 2**10
_BYTES_PER_CHECKSUM = 16384
_KEY_SUFFIX = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"


def write_hfile(
    entries: Iterable[tuple[bytes, bytes]], *, schema: str, block_bytes: int = BLOCK_BYTES
) -> bytes:
    """Return an HFile of entries, which must come sorted by key, each key once."""
    file = bytearray()
    index: list[tuple[bytes, int, int]] = []
    count, last_key, key_bytes, value_bytes = 0, b"", 0, 0
    cells, first = bytearray(), b""
    for key, value in entries:
        if count and key <= last_key:
            raise ValueError(f"keys are not ascending: {key!r} after {last_key!r}")
        if len(cells) >= block_bytes:
            _close_block(file, index, first, cells)
            cells = bytearray()
        first = first if cells else key
        cells += _cell(key, value)
        count, last_key = count + 1, key
        key_bytes, value_bytes = key_bytes + len(_key(key)), value_bytes + len(value)
    if cells:
        _close_block(file, index, first, cells)
    info = {
        "hfile.LASTKEY": _key(last_key) if count else b"",
        "hfile.AVG_KEY_LEN": struct.pack(">i", key_bytes // count if count else 0),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", value_bytes // count if count else 0),
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        "schema": schema.encode(),
    }
    return _finish(file, index, info, count)


def _finish(
    file: bytearray, index: list[tuple[bytes, int, int]], info: Mapping[str, bytes], count: int
) -> bytes:
    load_on_open = len(file)
    root = b"".join(
        struct.pack(">qi", offset, size) + _hadoop_varint(len(key) + 2) + struct.pack(">h", len(key)) + key
        for key, offset, size in index
    )
    file += _block(ROOT_INDEX_MAGIC, root)
    file += _block(ROOT_INDEX_MAGIC, b"")
    file_info_offset = len(file)
    pairs = b"".join(
        _delimited(1, _delimited(1, name.encode()) + _delimited(2, value)) for name, value in info.items()
    )
    file += _block(FILE_INFO_MAGIC, b"PBUF" + _varint(len(pairs)) + pairs)
    numbers = {
        1: file_info_offset,
        2: load_on_open,
        3: len(root),
        5: len(index),
        6: 0,
        7: count,
        8: 1,
        9: index[0][1] if index else 0,
        10: index[-1][1] if index else 0,
    }
    message = b"".join(_varint(number << 3) + _varint(value) for number, value in numbers.items())
    message += _delimited(11, _COMPARATOR) + _varint(12 << 3) + _varint(2)
    trailer = TRAILER_MAGIC + _varint(len(message)) + message
    return bytes(file + trailer.ljust(TRAILER_BYTES - 4, b"\x00") + struct.pack(">i", 3))


def _close_block(
    file: bytearray, index: list[tuple[bytes, int, int]], first: bytes, cells: bytearray
) -> None:
    block = _block(DATA_MAGIC, bytes(cells))
    index.append((first, len(file), len(block)))
    file += block


def _block(magic: bytes, content: bytes) -> bytes:
    with_header = HEADER_BYTES + len(content)
    checksums = b"\x00" * 4 * -(-with_header // _BYTES_PER_CHECKSUM)
    header = struct.pack(
        ">8siiqbii",
        magic,
        len(content) + len(checksums),
        len(content),
        -1,
        0,
        _BYTES_PER_CHECKSUM,
        with_header,
    )
    return header + content + checksums


def _key(row: bytes) -> bytes:
    return struct.pack(">h", len(row)) + row + _KEY_SUFFIX


def _cell(row: bytes, value: bytes) -> bytes:
    key = _key(row)
    return struct.pack(">ii", len(key), len(value)) + key + value + b"\x00"


def _delimited(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _hadoop_varint(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    size = (number.bit_length() + 7) // 8
    return bytes([256 - 112 - size]) + number.to_bytes(size, "big")
