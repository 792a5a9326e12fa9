"""Framing of log files: magic, lengths, headers; where each block's content lies.

A log file is a sequence of blocks (big-endian integers):

    magic `#HUDI#` | int64 block length | int32 format version | int32 block type
    header map | int64 content length | content | footer map | int64 total length

Blocks carry no checksum, so framing is checked in every way it can be: the length before the block must agree
with the length behind it, and header, content and footer must fill the block exactly. What fails becomes a
`CorruptRegion`; whether that is a crashed writer's leftover or damage to committed data depends on the
timeline, so callers decide with `CorruptRegion.is_damage`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import pyarrow as pa

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.storage.base import Storage

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1
MAX_BLOCK_BYTES = 2**31 - 1
"""No writer makes larger blocks: Java holds a block's content in one array."""
MAX_HEADER_ENTRIES = 64
_WHOLE_FILE_BYTES = 2**20
"""Files up to this size are held whole: few requests for the many small ones, little memory for the large."""
_SEARCH_BYTES = 2**18
_PREFIX = struct.Struct(">6sqii")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class BlockType(IntEnum):
    """What a block holds."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6


class Header(IntEnum):
    """Keys of a block's header map."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


class _Source:
    """Bytes of one log file: held whole when small, else fetched on demand through a window."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.storage = storage
        self.path = path
        self._holds = True
        with storage.open(path) as file:
            self.size = int(file.size())
            self._window_start = 0
            first = self.size if self.size <= _WHOLE_FILE_BYTES else _SEARCH_BYTES
            self._window: pa.Buffer = pa.py_buffer(file.read(first))

    def slice(self, offset: int, length: int) -> pa.Buffer:
        """The bytes at `offset`; fewer than `length` only at the end of the file."""
        offset = min(offset, self.size)
        length = max(0, min(length, self.size - offset))
        start, window = self._window_start, self._window
        if start <= offset and offset + length <= start + window.size:
            return window.slice(offset - start, length)
        if length > _SEARCH_BYTES or not self._holds:
            return self._fetch(offset, length)
        self._window_start, self._window = offset, self._fetch(offset, _SEARCH_BYTES)
        return self._window.slice(0, length)

    @property
    def held_bytes(self) -> int:
        """How many bytes are held."""
        return int(self._window.size)

    def forget(self) -> None:
        """Hold nothing from now on; bytes are fetched when they are asked for."""
        self._window_start, self._window, self._holds = 0, pa.py_buffer(b""), False

    def _fetch(self, offset: int, length: int) -> pa.Buffer:
        with self.storage.open(self.path) as file:
            file.seek(offset)
            return pa.py_buffer(file.read(length))


@dataclass(frozen=True)
class LogBlock:
    """One well-framed block. `content` fetches the bytes only when asked."""

    path: str
    offset: int
    type: BlockType
    headers: Mapping[Header, str]
    content_offset: int
    content_length: int
    _source: _Source = field(repr=False, compare=False)

    @property
    def instant_time(self) -> str:
        """The instant that wrote the block (`""` when the writer left it out)."""
        return self.headers.get(Header.INSTANT_TIME, "")

    @property
    def schema_json(self) -> str | None:
        """The Avro schema of the block's records, as JSON text."""
        return self.headers.get(Header.SCHEMA)

    @property
    def target_instant_time(self) -> str | None:
        """The instant a command block is about."""
        return self.headers.get(Header.TARGET_INSTANT_TIME)

    @property
    def is_partial(self) -> bool:
        """Whether the records hold only the columns that were assigned."""
        return self.headers.get(Header.IS_PARTIAL, "false").lower() == "true"

    @property
    def compacted_instants(self) -> tuple[str, ...]:
        """The instants whose blocks this block replaces (log compaction)."""
        text = self.headers.get(Header.COMPACTED_BLOCK_TIMES, "")
        return tuple(part.strip() for part in text.split(",") if part.strip())

    @property
    def held_bytes(self) -> int:
        """How many bytes of the block's file are held."""
        return self._source.held_bytes

    def content(self) -> pa.Buffer:
        """Fetch the content."""
        return self.read(0, self.content_length)

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Fetch some bytes of the content; fewer only at its end."""
        length = max(0, min(length, self.content_length - offset))
        data = self._source.slice(self.content_offset + offset, length)
        if data.size != length:
            raise CorruptTable(
                f"Log file {self.path} ends inside its block at byte {self.offset}: it changed meanwhile.",
                condition="LOG_FILE_CUT",
                path=self.path,
                offset=self.offset,
            )
        return data


@dataclass(frozen=True)
class CorruptRegion:
    """Bytes that are no well-framed block.

    - `instant`: the writing instant, when the header could still be read.
    - `is_tail`: nothing readable follows.
    - `looks_torn`: the bytes are the beginning of a proper block, as a dying writer leaves them.
    """

    path: str
    offset: int
    length: int
    reason: str
    instant: str | None
    is_tail: bool
    looks_torn: bool

    def is_damage(self, committed: Collection[str] | None, *, committed_size: int | None = None) -> bool:
        """Whether committed bytes are lost here.

        Args:
            committed: the instants whose blocks count; None when all of the file is committed.
            committed_size: bytes of the file that commits vouch for, when known.
        """
        if committed_size is not None and self.offset >= committed_size:
            return False
        if self.instant is not None:
            return committed is None or self.instant in committed
        return not (self.is_tail and self.offset > 0) and not (self.looks_torn and committed is not None)


@dataclass(frozen=True)
class LogScan:
    """Everything found in one log file, in file order."""

    path: str
    size: int
    blocks: tuple[LogBlock, ...]
    corrupt_regions: tuple[CorruptRegion, ...]
    _source: _Source = field(repr=False, compare=False)

    @property
    def held_bytes(self) -> int:
        """How many bytes of the file are held."""
        return self._source.held_bytes

    def forget(self) -> None:
        """Let go of the bytes that were fetched; blocks fetch theirs again."""
        self._source.forget()


def scan_log_file(storage: Storage, path: str) -> LogScan:
    """Find the blocks of a log file without touching their contents.

    Raises:
        FileNotFoundError: the file is missing.
        UnsupportedTable: a well-framed block of a newer format version, type or header key.
    """
    source = _Source(storage, path)
    blocks: list[LogBlock] = []
    regions: list[CorruptRegion] = []
    offset = 0
    while offset < source.size:
        block, end, problem = _read_block(source, offset)
        if block is not None:
            blocks.append(block)
        else:
            end = _find_magic(source, offset + 1)
            regions.append(_corrupt_region(source, offset, end, problem))
        offset = end
    return LogScan(path, source.size, tuple(blocks), tuple(regions), source)


class _BadFraming(Exception):
    """The bytes are no block; `torn` when they merely end too early."""

    def __init__(self, reason: str, *, torn: bool = False) -> None:
        super().__init__(reason)
        self.torn = torn


def _read_block(source: _Source, offset: int) -> tuple[LogBlock | None, int, _BadFraming | None]:
    try:
        length = _checked_length(source, offset)
        end = offset + 14 + length
        return _parse_block(source, offset, end), end, None
    except _BadFraming as problem:
        return None, 0, problem


def _checked_length(source: _Source, offset: int) -> int:
    prefix = source.slice(offset, _PREFIX.size)
    if bytes(prefix)[: len(MAGIC)] != MAGIC[: prefix.size]:
        raise _BadFraming("no magic where a block should begin")
    if prefix.size < _PREFIX.size:
        raise _BadFraming("the file ends inside a block's first bytes", torn=True)
    _, length, _, _ = _PREFIX.unpack(prefix)
    if not _PREFIX.size - 14 <= length <= MAX_BLOCK_BYTES:
        raise _BadFraming(f"impossible block length {length}")
    end = offset + 14 + length
    if end > source.size:
        raise _BadFraming(f"block of {length} bytes ends behind the file's end", torn=True)
    trailer = _LONG.unpack(source.slice(end - 8, 8))[0]
    if trailer != length + 6:
        raise _BadFraming(f"lengths before and behind the block disagree ({length + 6} and {trailer})")
    return int(length)


def _parse_block(source: _Source, offset: int, end: int) -> LogBlock:
    cursor = _Cursor(source, offset + 14, end)
    version, type_ordinal = cursor.int32(), cursor.int32()
    if version != FORMAT_VERSION:
        raise _unsupported(source.path, offset, "log format version", version, str(FORMAT_VERSION))
    if type_ordinal not in _TYPES:
        raise _unsupported(source.path, offset, "log block type", type_ordinal, "0 to 6")
    headers = _named(cursor.map(), source.path, offset)
    content_length = cursor.int64()
    content_offset = cursor.position
    if not 0 <= content_length <= end - content_offset - 12:
        raise _BadFraming(f"content of {content_length} bytes does not fit in its block")
    cursor.position += content_length
    cursor.map()
    if cursor.position != end - 8:
        raise _BadFraming("header, content and footer do not fill the block")
    return LogBlock(
        source.path, offset, BlockType(type_ordinal), headers, content_offset, content_length, source
    )


_TYPES = frozenset(int(kind) for kind in BlockType if kind is not BlockType.CORRUPT)
_KEYS = frozenset(int(key) for key in Header)


class _Cursor:
    """Reads integers and maps between two offsets; refuses to leave them."""

    def __init__(self, source: _Source, position: int, end: int) -> None:
        self.source = source
        self.position = position
        self.end = end

    def take(self, count: int) -> bytes:
        if count < 0 or self.position + count > self.end:
            raise _BadFraming(f"a length of {count} bytes leaves the block")
        data = self.source.slice(self.position, count)
        if data.size < count:
            raise _BadFraming("the file ends inside a block's header", torn=True)
        self.position += count
        return bytes(data)

    def int32(self) -> int:
        return int(_INT.unpack(self.take(4))[0])

    def int64(self) -> int:
        return int(_LONG.unpack(self.take(8))[0])

    def map(self) -> dict[int, str]:
        count = self.int32()
        if not 0 <= count <= MAX_HEADER_ENTRIES:
            raise _BadFraming(f"impossible number of header entries: {count}")
        entries: dict[int, str] = {}
        for _ in range(count):
            key, length = self.int32(), self.int32()
            entries[key] = self._text(length)
        return entries

    def _text(self, length: int) -> str:
        try:
            return self.take(length).decode()
        except UnicodeDecodeError as error:
            raise _BadFraming("a header value is not UTF-8") from error


def _named(entries: dict[int, str], path: str, offset: int) -> dict[Header, str]:
    unknown = [key for key in entries if key not in _KEYS]
    if unknown:
        raise _unsupported(path, offset, "log block header key", unknown[0], "0 to 8")
    return {Header(key): value for key, value in entries.items()}


def _unsupported(path: str, offset: int, what: str, found: int, known: str) -> UnsupportedTable:
    return found_in_files("UNKNOWN_LOG_FORMAT", path=path, offset=offset, what=what, found=found, known=known)


def _corrupt_region(source: _Source, offset: int, end: int, problem: _BadFraming | None) -> CorruptRegion:
    torn = problem is not None and problem.torn
    instant = None
    if bytes(source.slice(offset, len(MAGIC))) == MAGIC:
        instant, header_torn = _instant_of_remains(source, offset)
        torn = torn and (instant is not None or header_torn)
    return CorruptRegion(
        source.path, offset, end - offset, str(problem), instant, is_tail=end >= source.size, looks_torn=torn
    )


def _instant_of_remains(source: _Source, offset: int) -> tuple[str | None, bool]:
    """The instant in the header of a broken block, and whether the header just ends too early."""
    cursor = _Cursor(source, offset + _PREFIX.size, offset + MAX_BLOCK_BYTES)
    try:
        instant = cursor.map().get(int(Header.INSTANT_TIME))
    except _BadFraming as problem:
        return None, problem.torn
    return (instant, False) if instant and instant.isdigit() else (None, False)


def _find_magic(source: _Source, start: int) -> int:
    """The offset of the next magic at or after `start`, or the end of the file."""
    while start < source.size:
        found = bytes(source.slice(start, _SEARCH_BYTES)).find(MAGIC)
        if found >= 0:
            return start + found
        start += max(1, _SEARCH_BYTES - len(MAGIC) + 1)
    return source.size
