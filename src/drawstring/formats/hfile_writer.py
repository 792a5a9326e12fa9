"""Writes HFiles as Hudi's own writer does: one level of index, every block compressed with gzip, no checksums.

    data blocks | [meta blocks] | root index | meta index | file info | trailer (4096 bytes)

The same entries make the same bytes, at whatever time they are written.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.avro_encoder import joined_octets
from drawstring.formats.hfile import (
    DATA_MAGIC,
    FILE_INFO_MAGIC,
    HEADER_BYTES,
    META_MAGIC,
    ROOT_INDEX_MAGIC,
    TRAILER_BYTES,
    TRAILER_MAGIC,
)

BLOCK_BYTES = 1 << 20
"""`hoodie.hfile.block.size` of Hudi 1.2, where it does not say otherwise."""
NONE, GZIP = "none", "gzip"
_CODECS = {GZIP: 1, NONE: 2}
_BYTES_PER_CHECKSUM = 16384
_KEY_SUFFIX = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"
_MVCC = b"\x00"
_COMPARATOR = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_MAX_KEY_BYTES = 2**15 - 1


def write_hfile(
    entries: Iterable[tuple[bytes, bytes]],
    *,
    schema: str,
    block_bytes: int = BLOCK_BYTES,
    compression: str = GZIP,
) -> bytes:
    """Return an HFile of entries, which must come sorted by key, each key once."""
    listed = list(entries)
    keys = pa.array([key for key, _ in listed], pa.binary())
    values = pa.array([value for _, value in listed], pa.binary())
    return write_sorted(keys, values, schema=schema, block_bytes=block_bytes, compression=compression)


def write_sorted(
    keys: pa.Array,
    values: pa.Array,
    *,
    schema: str,
    block_bytes: int = BLOCK_BYTES,
    compression: str = GZIP,
    info: Mapping[str, bytes] | None = None,
    meta_blocks: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return an HFile of sorted keys and their values (binary arrays).

    Args:
        keys: ascending bytewise, each once; ValueError if they are not.
        values: one per key.
        schema: the Avro schema of the values, as JSON.
        block_bytes: a data block is closed when it holds so many bytes.
        compression: `gzip`, as Hudi does, or `none`.
        info: more entries of the file's own, such as `minRecordKey`.
        meta_blocks: blocks by name, such as `bloomFilter`.
    """
    _check(keys)
    file = _File(compression)
    cells = _cells(keys, values)
    lengths = _lengths(cells)
    for start, stop in _blocks(lengths, block_bytes):
        file.add_data(keys[start].as_py(), bytes(joined_octets(cells.slice(start, stop - start))))
    for name in sorted(meta_blocks or {}):
        file.add_meta(name, (meta_blocks or {})[name])
    own = {**_file_info(keys, values, schema), **(info or {})}
    return file.finish(own, len(keys))


def record_key_info(keys: pa.Array) -> dict[str, bytes]:
    """Return what base files say of their keys: the smallest and the largest."""
    if not len(keys):
        return {}
    return {"minRecordKey": keys[0].as_py(), "maxRecordKey": keys[len(keys) - 1].as_py()}


def _check(keys: pa.Array) -> None:
    if len(keys) > 1:
        unsorted = pc.index(pc.less(keys.slice(0, len(keys) - 1), keys.slice(1)), False).as_py()
        if unsorted >= 0:
            first, second = keys[unsorted].as_py(), keys[unsorted + 1].as_py()
            raise ValueError(f"keys are not ascending: {second!r} after {first!r}")
    if len(keys) and pc.max(pc.binary_length(keys)).as_py() > _MAX_KEY_BYTES:
        raise ValueError(f"a key of an HFile has at most {_MAX_KEY_BYTES} bytes")


def _file_info(keys: pa.Array, values: pa.Array, schema: str) -> dict[str, bytes]:
    count = max(1, len(keys))
    key_bytes, value_bytes = int(_lengths(keys).sum()), int(_lengths(values).sum())
    return {
        "hfile.LASTKEY": _row(keys[len(keys) - 1].as_py()) if len(keys) else b"",
        "hfile.AVG_KEY_LEN": struct.pack(">i", key_bytes // count),
        "hfile.AVG_VALUE_LEN": struct.pack(">i", value_bytes // count),
        "KEY_VALUE_VERSION": struct.pack(">i", 1),
        "MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        "schema": schema.encode(),
    }


def _cells(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return all cells: lengths of key and value, the key with what HBase puts around it, the value."""
    if not len(keys):
        return pa.array([], pa.binary())
    numbers = np.empty(len(keys), np.dtype([("key", ">i4"), ("value", ">i4"), ("row", ">i2")]))
    numbers["row"] = _lengths(keys)
    numbers["key"] = _lengths(keys) + 2 + len(_KEY_SUFFIX)
    numbers["value"] = _lengths(values)
    heads = pa.Array.from_buffers(pa.binary(10), len(keys), [None, pa.py_buffer(numbers.tobytes())])
    suffix, end = pa.scalar(_KEY_SUFFIX, pa.binary()), pa.scalar(_MVCC, pa.binary())
    return pc.binary_join_element_wise(heads.cast(pa.binary()), keys, suffix, values, end, b"")


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.binary_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _blocks(lengths: npt.NDArray[np.int64], block_bytes: int) -> Iterable[tuple[int, int]]:
    """Yield the bounds of blocks: each is closed by the entry that fills it."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        stop = min(int(np.searchsorted(ends, before + block_bytes)) + 1, len(lengths))
        yield start, stop
        start = stop


@dataclass
class _File:
    """An HFile that grows block by block."""

    compression: str = NONE
    content: bytearray = field(default_factory=bytearray)
    index: list[tuple[bytes, int, int]] = field(default_factory=list)
    meta: list[tuple[bytes, int, int]] = field(default_factory=list)
    data_bytes: int = 0

    def add_data(self, first_key: bytes, cells: bytes) -> None:
        """Add a data block."""
        self.data_bytes += len(cells)
        self.index.append((_row(first_key), *self._add(DATA_MAGIC, cells)))

    def add_meta(self, name: str, content: bytes) -> None:
        """Add a meta block; they come behind the data."""
        self.meta.append((name.encode(), *self._add(META_MAGIC, content)))

    def _add(self, magic: bytes, content: bytes) -> tuple[int, int]:
        offset = len(self.content)
        self.content += _block(magic, content, self.compression)
        return offset, len(self.content) - offset

    def finish(self, info: Mapping[str, bytes], count: int) -> bytes:
        """Add what closes the file and return it."""
        load_on_open, _ = self._add(ROOT_INDEX_MAGIC, _index_block(self.index))
        self._add(ROOT_INDEX_MAGIC, _index_block(self.meta))
        pairs = b"".join(
            _delimited(1, _delimited(1, name.encode()) + _delimited(2, value)) for name, value in info.items()
        )
        file_info, _ = self._add(FILE_INFO_MAGIC, b"PBUF" + _varint(len(pairs)) + pairs)
        numbers = {
            1: file_info,
            2: load_on_open,
            3: self.data_bytes,
            5: len(self.index),
            6: len(self.meta),
            7: count,
            8: 1,
            9: self.index[0][1] if self.index else 0,
            10: self.index[-1][1] if self.index else 0,
        }
        return bytes(self.content) + _trailer(numbers, _CODECS[self.compression])


def _trailer(numbers: Mapping[int, int], codec: int) -> bytes:
    message = b"".join(_varint(number << 3) + _varint(value) for number, value in numbers.items())
    message += _delimited(11, _COMPARATOR) + _varint(12 << 3) + _varint(codec)
    trailer = TRAILER_MAGIC + _varint(len(message)) + message
    return trailer.ljust(TRAILER_BYTES - 4, b"\x00") + struct.pack(">i", 3)


def _index_block(entries: Iterable[tuple[bytes, int, int]]) -> bytes:
    return b"".join(
        struct.pack(">qi", offset, size) + _hadoop_varint(len(key)) + key for key, offset, size in entries
    )


def _block(magic: bytes, content: bytes, compression: str = NONE) -> bytes:
    data = content
    if compression == GZIP:
        compressor = zlib.compressobj(wbits=31)
        data = compressor.compress(content) + compressor.flush()
    with_header = HEADER_BYTES + len(data)
    checksums = b"\x00" * 4 * -(-with_header // _BYTES_PER_CHECKSUM)
    header = struct.pack(
        ">8siiqbii",
        magic,
        len(data) + len(checksums),
        len(content),
        -1,
        0,
        _BYTES_PER_CHECKSUM,
        with_header,
    )
    return header + data + checksums


def _row(key: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key


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
