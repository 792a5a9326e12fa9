"""HFiles, the sorted key-value files of the metadata table: read by key, by range, or whole.

    data blocks | [meta blocks] | root index | meta index | file info | trailer (4096 bytes)

Only version 3 is read; both of its writers are (Hudi's own, minor version 0, and HBase's, minor version 3).
Checksums are ignored: neither writer's readers rely on them, and one of the writers stores zeros.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable, UnsupportedTable

TRAILER_BYTES = 4096
HEADER_BYTES = 33
MAX_BLOCK_BYTES = 2**31 - 1
MAX_EXPANDED_BYTES = 256 << 20
"""Largest block after decompression: a few kilobytes must not fill the memory."""
_WHOLE_FILE_BYTES = 16 * 2**20
_MAX_INDEX_LEVELS = 8
_HEADER = struct.Struct(">8siiqbii")
_CELL = struct.Struct(">iih")
_INDEX_ENTRY = struct.Struct(">qi")
_CODECS = {1: "GZ", 2: "NONE"}
DATA_MAGIC = b"DATABLK*"
ENCODED_DATA_MAGIC = b"DATABLKE"
ROOT_INDEX_MAGIC = b"IDXROOT2"
INNER_INDEX_MAGICS = (b"IDXINTE2", b"IDXLEAF2")
META_MAGIC = b"METABLKc"
FILE_INFO_MAGIC = b"FILEINF2"
TRAILER_MAGIC = b'TRABLK"$'

Entry = tuple[bytes, memoryview]


@dataclass(frozen=True)
class Trailer:
    """What the last 4096 bytes say."""

    file_info_offset: int
    load_on_open_offset: int
    data_index_count: int
    entry_count: int
    index_levels: int
    first_data_offset: int
    last_data_offset: int
    codec: int


@dataclass(frozen=True)
class _IndexEntry:
    key: bytes
    offset: int
    size: int


class _Index:
    """One index block: entries by key; a key lies in the block of the last entry that is not after it."""

    def __init__(self, entries: list[_IndexEntry]) -> None:
        self._keys = [entry.key for entry in entries]
        self._entries = entries

    def at(self, key: bytes) -> _IndexEntry | None:
        position = bisect_right(self._keys, key)
        return self._entries[position - 1] if position else None

    def since(self, key: bytes) -> list[_IndexEntry]:
        return self._entries[max(bisect_right(self._keys, key) - 1, 0) :]


class HFileReader:
    """One HFile over a seekable `pyarrow.NativeFile` or bytes; blocks are fetched when they are needed."""

    def __init__(self, source: Any, *, path: str = "") -> None:
        self._path = path
        self._source = _Source(source, path)
        try:
            self.trailer = _parse_trailer(self._source, path)
        except (struct.error, IndexError, ValueError) as error:
            raise _corrupt(path, error) from error
        self._inner: dict[int, _Index] = {}

    @property
    def entry_count(self) -> int:
        """How many entries the file holds."""
        return self.trailer.entry_count

    @cached_property
    def file_info(self) -> dict[str, bytes]:
        """The file's own key-value pairs, such as `schema`."""
        with _guard(self._path):
            content = self._block(self.trailer.file_info_offset).content
            return _parse_file_info(content)

    @property
    def schema(self) -> str | None:
        """The Avro schema of the values, as JSON."""
        found = self.file_info.get("schema")
        return found.decode() if found else None

    def entries(self) -> Iterator[Entry]:
        """Yield all entries in key order."""
        with _guard(self._path):
            for block in self._data_blocks():
                yield from self._cells(block)

    def scan(self, start: bytes, stop: bytes | None = None) -> Iterator[Entry]:
        """Yield entries from `start` (included) to `stop` (excluded); other blocks are not read."""
        with _guard(self._path):
            for entry in self._index_from(start):
                if stop is not None and entry.key >= stop:
                    return
                for key, value in self._cells(self._block(entry.offset, entry.size).content):
                    if stop is not None and key >= stop:
                        return
                    if key >= start:
                        yield key, value

    def with_prefix(self, prefix: bytes) -> Iterator[Entry]:
        """Yield the entries whose keys begin with `prefix`."""
        return self.scan(prefix, _after_prefix(prefix))

    def lookup(self, keys: Iterable[bytes]) -> Iterator[Entry]:
        """Yield the entries with these keys, in key order; each block is read at most once."""
        wanted = sorted(set(keys))
        with _guard(self._path):
            for block, keys_in_block in self._blocks_of(wanted):
                yield from (cell for cell in self._cells(block) if cell[0] in keys_in_block)

    def _blocks_of(self, ascending_keys: list[bytes]) -> Iterator[tuple[memoryview, set[bytes]]]:
        by_offset: dict[int, tuple[_IndexEntry, set[bytes]]] = {}
        for key in ascending_keys:
            entry = self._index_at(key)
            if entry is not None:
                by_offset.setdefault(entry.offset, (entry, set()))[1].add(key)
        for entry, keys in by_offset.values():
            yield self._block(entry.offset, entry.size).content, keys

    def _index_at(self, key: bytes) -> _IndexEntry | None:
        entry = self._root_index.at(key)
        for _ in range(self.trailer.index_levels - 1):
            if entry is None:
                return None
            entry = self._inner_index(entry).at(key)
        return entry

    def _index_from(self, key: bytes) -> Iterator[_IndexEntry]:
        return self._descend(self._root_index, key, self.trailer.index_levels)

    def _descend(self, index: _Index, key: bytes, levels: int) -> Iterator[_IndexEntry]:
        for entry in index.since(key):
            if levels <= 1:
                yield entry
            else:
                yield from self._descend(self._inner_index(entry), key, levels - 1)

    @cached_property
    def _root_index(self) -> _Index:
        if self.trailer.entry_count == 0:
            return _Index([])
        block = self._block(self.trailer.load_on_open_offset)
        if block.magic != ROOT_INDEX_MAGIC:
            raise ValueError(f"no root index at byte {self.trailer.load_on_open_offset}")
        return _Index(_parse_root_index(block.content, self.trailer.data_index_count))

    def _inner_index(self, entry: _IndexEntry) -> _Index:
        if entry.offset not in self._inner:
            block = self._block(entry.offset, entry.size)
            if block.magic not in INNER_INDEX_MAGICS:
                raise ValueError(f"no index block at byte {entry.offset}")
            self._inner[entry.offset] = _Index(_parse_inner_index(block.content))
        return self._inner[entry.offset]

    def _data_blocks(self) -> Iterator[memoryview]:
        """Walk the blocks one after the other; index and bloom blocks may lie between them."""
        if self.trailer.entry_count == 0:
            return
        offset = self.trailer.first_data_offset
        while offset <= self.trailer.last_data_offset:
            block = self._block(offset)
            if block.magic == DATA_MAGIC:
                yield block.content
            elif block.magic == ENCODED_DATA_MAGIC:
                raise _unsupported(self._path, "encoded data blocks")
            offset += block.size

    @cached_property
    def _has_mvcc(self) -> bool:
        return int.from_bytes(self.file_info.get("KEY_VALUE_VERSION", b""), "big") == 1

    @cached_property
    def _has_tags(self) -> bool:
        return "hfile.MAX_TAGS_LEN" in self.file_info

    def _cells(self, content: memoryview) -> Iterator[Entry]:
        unpack, position, end = _CELL.unpack_from, 0, len(content)
        has_mvcc, has_tags = self._has_mvcc, self._has_tags
        while position < end:
            key_length, value_length, row_length = unpack(content, position)
            row = position + 10
            value = position + 8 + key_length
            position = value + value_length
            if key_length < row_length + 2 or row_length < 0 or value_length < 0 or position > end:
                raise ValueError("a cell leaves its block")
            yield bytes(content[row : row + row_length]), content[value:position]
            if has_tags:
                position += 2 + int.from_bytes(content[position : position + 2], "big")
            if has_mvcc:
                position += _varint_size(content[position])

    def _block(self, offset: int, size: int | None = None) -> _Block:
        if size is None:
            header = self._source.read(offset, HEADER_BYTES)
            size = HEADER_BYTES + int(_HEADER.unpack(header)[1])
        return _parse_block(self._source.read(offset, size), self.trailer.codec)


@dataclass(frozen=True)
class _Block:
    magic: bytes
    content: memoryview
    size: int


class _Source:
    """Bytes of the file: held whole when small, else read piece by piece."""

    def __init__(self, source: Any, path: str) -> None:
        self._file: Any = None
        if hasattr(source, "seek"):
            self.size = int(source.size())
            self._file = source
            if self.size <= _WHOLE_FILE_BYTES:
                source.seek(0)
                self._whole = memoryview(source.read(self.size))
                self._file = None
        else:
            self._whole = memoryview(source).cast("B")
            self.size = len(self._whole)

    def read(self, offset: int, length: int) -> memoryview:
        """The bytes at `offset`; ValueError when the file does not have that many."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise ValueError(f"{length} bytes at byte {offset} leave a file of {self.size} bytes")
        if self._file is None:
            return self._whole[offset : offset + length]
        self._file.seek(offset)
        return memoryview(self._file.read(length))


class _guard:
    """Turns what goes wrong on bad bytes into `CorruptTable`; a class, since generators hold it open."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, (struct.error, IndexError, ValueError, zlib.error, UnicodeDecodeError)):
            raise _corrupt(self._path, error) from error


def _corrupt(path: str, why: object) -> CorruptTable:
    return CorruptTable(f"{path or 'An HFile'} is damaged: {why}.", condition="INVALID_HFILE", path=path)


def _unsupported(path: str, what: str) -> UnsupportedTable:
    return found_in_files("UNSUPPORTED_HFILE", path=path or "an HFile", what=what)


def _parse_trailer(source: _Source, path: str) -> Trailer:
    content = source.read(source.size - TRAILER_BYTES, TRAILER_BYTES)
    if bytes(content[:8]) != TRAILER_MAGIC:
        raise ValueError("no trailer where the file ends")
    version = int.from_bytes(content[-4:], "big") & 0xFFFFFF
    if version != 3:
        raise _unsupported(path, f"format version {version}")
    length, position = _varint(content, 8)
    fields = _protobuf_integers(content[position : position + length])
    if not 1 <= fields.get(8, 1) <= _MAX_INDEX_LEVELS:
        raise ValueError(f"an index of {fields[8]} levels")
    codec = fields.get(12, 2)
    if codec not in _CODECS:
        raise _unsupported(path, f"compression codec {codec}")
    return Trailer(
        file_info_offset=fields.get(1, 0),
        load_on_open_offset=fields.get(2, 0),
        data_index_count=fields.get(5, 0),
        entry_count=fields.get(7, 0),
        index_levels=fields.get(8, 1),
        first_data_offset=fields.get(9, 0),
        last_data_offset=fields.get(10, 0),
        codec=codec,
    )


def _parse_block(raw: memoryview, codec: int) -> _Block:
    magic, _, uncompressed, _, _, _, data_end = _HEADER.unpack_from(raw)
    if not HEADER_BYTES <= data_end <= len(raw) or not 0 <= uncompressed <= MAX_BLOCK_BYTES:
        raise ValueError("a block's header contradicts its size")
    data = raw[HEADER_BYTES:data_end]
    if codec == 1:
        if uncompressed > MAX_EXPANDED_BYTES:
            raise ValueError(f"a compressed block claims {uncompressed} bytes, at most {MAX_EXPANDED_BYTES}")
        data = memoryview(zlib.decompressobj(wbits=47).decompress(data, uncompressed))
    if len(data) < uncompressed:
        raise ValueError(f"a block of {uncompressed} bytes has only {len(data)}")
    return _Block(magic, data[:uncompressed], len(raw))


def _parse_root_index(content: memoryview, count: int) -> list[_IndexEntry]:
    entries, position = [], 0
    for _ in range(count):
        offset, size = _INDEX_ENTRY.unpack_from(content, position)
        length, start = _hadoop_varint(content, position + 12)
        position = start + length
        entries.append(_IndexEntry(_row(content[start:position]), offset, size))
    return entries


def _parse_inner_index(content: memoryview) -> list[_IndexEntry]:
    count = int.from_bytes(content[:4], "big")
    offsets = struct.unpack_from(f">{count + 1}i", content, 4)
    base = 4 + 4 * (count + 1)
    entries = []
    for start, stop in pairwise(offsets):
        offset, size = _INDEX_ENTRY.unpack_from(content, base + start)
        entries.append(_IndexEntry(_row(content[base + start + 12 : base + stop]), offset, size))
    return entries


def _row(key: memoryview) -> bytes:
    length = int.from_bytes(key[:2], "big")
    if length > len(key) - 2:
        raise ValueError("an index key is cut")
    return bytes(key[2 : 2 + length])


def _parse_file_info(content: memoryview) -> dict[str, bytes]:
    if bytes(content[:4]) != b"PBUF":
        raise ValueError("file info is not in protobuf form")
    length, position = _varint(content, 4)
    info: dict[str, bytes] = {}
    for _, pair in _protobuf(content[position : position + length]):
        fields = dict(_protobuf(pair)) if isinstance(pair, memoryview) else {}
        info[bytes(fields.get(1, b"")).decode()] = bytes(fields.get(2, b""))
    return info


def _protobuf(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    position = 0
    while position < len(content):
        tag, position = _varint(content, position)
        if tag & 7 == 0:
            number, position = _varint(content, position)
            yield tag >> 3, number
        elif tag & 7 == 2:
            length, position = _varint(content, position)
            yield tag >> 3, content[position : position + length]
            position += length
        else:
            position += {1: 8, 5: 4}.get(tag & 7, len(content))


def _protobuf_integers(content: memoryview) -> dict[int, int]:
    return {number: value for number, value in _protobuf(content) if isinstance(value, int)}


def _varint(content: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[position]
        number |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return number, position
        shift += 7


def _hadoop_varint(content: memoryview, position: int) -> tuple[int, int]:
    size = _varint_size(content[position])
    if size == 1:
        first = content[position]
        return first - 256 if first > 127 else first, position + 1
    return int.from_bytes(content[position + 1 : position + size], "big"), position + size


def _varint_size(first: int) -> int:
    """How many bytes one of Hadoop's variable-length integers takes, by its first byte."""
    signed = first - 256 if first > 127 else first
    if signed >= -112:
        return 1
    return -119 - signed if signed < -120 else -111 - signed


def _after_prefix(prefix: bytes) -> bytes | None:
    """Return the smallest key behind all keys with this prefix, None when there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else None
