"""Parquet page headers, looked at before any page is expanded: what a page claims decides what is allocated.

A header is a Thrift struct in the compact protocol; of its fields only the two sizes matter here, and how many values
a dictionary has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

MAX_PAGE_BYTES = 256 << 20
"""Largest page that is expanded; writers aim at one megabyte."""
MAX_HEADER_BYTES = 16 << 20

_WINDOW = 512
_UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _DICTIONARY, _COUNT = 2, 3, 7, 1
_BOOLEANS = (1, 2)
_BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = 3, (4, 5, 6), 7, 8, (9, 10), 12


def check_pages(file: Any, footer: Any, columns: Collection[str], *, all_chunks: bool = True) -> None:
    """Raise ValueError when a page of the top-level `columns` claims more than `MAX_PAGE_BYTES`.

    It takes one small read per page. Where each is a request to a store, `all_chunks=False` leaves out the column
    chunks that claim, as a whole, no more than a page may.
    """
    for first, end, name in _chunks(footer, frozenset(columns), 0 if all_chunks else MAX_PAGE_BYTES):
        _check_chunk(file, first, end, name)


def dictionary_size(file: Any, position: int) -> tuple[int, int] | None:
    """Return how many values the dictionary page at a position has, and in how many bytes; None for other pages."""
    header = _Header(file, position)
    return None if header.dictionary < 0 else (header.dictionary, header.uncompressed)


def _chunks(footer: Any, columns: frozenset[str], at_least: int) -> Iterator[tuple[int, int, str]]:
    schema = footer.schema
    leaves = [i for i in range(footer.num_columns) if schema.column(i).path.partition(".")[0] in columns]
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for leaf in leaves:
            chunk = row_group.column(leaf)
            if chunk.total_uncompressed_size < at_least:
                continue
            # An offset of 0 says that there is no such page, as in row groups without rows.
            starts = [chunk.data_page_offset or 0, chunk.has_dictionary_page and chunk.dictionary_page_offset]
            starts = [start for start in starts if start]
            if not starts:
                continue
            yield min(starts), min(starts) + chunk.total_compressed_size, chunk.path_in_schema


def _check_chunk(file: Any, position: int, end: int, name: str) -> None:
    while position < end:
        header = _Header(file, position)
        if not 0 <= header.uncompressed <= MAX_PAGE_BYTES:
            raise ValueError(
                f"a page of column {name} at byte {position} claims {header.uncompressed} bytes; at most "
                f"{MAX_PAGE_BYTES} are expected"
            )
        if header.compressed < 0 or header.end + header.compressed > end:
            raise ValueError(f"a page of column {name} at byte {position} reaches beyond its column")
        position = header.end + header.compressed


class _Header:
    """What a page header claims: sizes, for a dictionary the number of its values, and where the header ends."""

    def __init__(self, file: Any, position: int) -> None:
        self._file, self._start, self._at = file, position, 0
        self._bytes = b""
        self.uncompressed = self.compressed = self.dictionary = -1
        self._read_struct(depth=0)
        self.end = position + self._at

    def _read_struct(self, depth: int, of: int = 0) -> None:
        if depth > 8:
            raise ValueError(f"the page header at byte {self._start} nests too deep")
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            value = self._skip(head & 15, depth, field)
            if depth == 1 and (of, field) == (_DICTIONARY, _COUNT):
                self.dictionary = value
            if depth == 0 and field == _UNCOMPRESSED_SIZE:
                self.uncompressed = value
            if depth == 0 and field == _COMPRESSED_SIZE:
                self.compressed = value

    def _skip(self, kind: int, depth: int, field: int = 0) -> int:
        """Pass over one value; that of an integer is returned."""
        if kind in _INTEGERS:
            return self._zigzag()
        if kind == _STRUCT:
            self._read_struct(depth + 1, field)
        elif kind == _BINARY:
            self._advance(self._varint())
        elif kind in (_BYTE, _DOUBLE):
            self._advance(1 if kind == _BYTE else 8)
        elif kind in _LISTS:
            self._skip_list(depth)
        elif kind not in _BOOLEANS:
            raise ValueError(f"the page header at byte {self._start} is damaged")
        return -1

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        count = self._varint() if head >> 4 == 15 else head >> 4
        for _ in range(count):
            # Booleans take a byte each in lists, none as fields.
            self._skip(_BYTE if head & 15 in _BOOLEANS else head & 15, depth + 1)

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError(f"the page header at byte {self._start} is damaged")

    def _byte(self) -> int:
        self._advance(1)
        return self._bytes[self._at - 1]

    def _advance(self, count: int) -> None:
        self._at += count
        if self._at > MAX_HEADER_BYTES:
            raise ValueError(
                f"the page header at byte {self._start} claims more than {MAX_HEADER_BYTES} bytes"
            )
        if self._at > len(self._bytes):
            self._file.seek(self._start)
            self._bytes = self._file.read(max(_WINDOW, self._at * 2))
            if self._at > len(self._bytes):
                raise ValueError(f"the file ends within the page header at byte {self._start}")
