"""Bloom filters and key ranges in the footers of base files, as Hudi's bloom index writes and reads them.

A key is hashed `hashes` times by the 32-bit MurmurHash2 of Hadoop (whose last bytes go in backwards), each time with
the hash before it as seed; whole columns of keys are hashed at once.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.bloom_options import DYNAMIC, SIMPLE, BloomOptions

BLOOM_FILTER = "org.apache.hudi.bloomfilter"
OLD_BLOOM_FILTER = "com.uber.hoodie.bloomfilter"
MIN_KEY, MAX_KEY = "hoodie_min_record_key", "hoodie_max_record_key"
TYPE_CODE = "hoodie_bloom_filter_type_code"

_VERSION, _MURMUR = -1, 1
_HEADER, _DYNAMIC = struct.Struct(">iibi"), struct.Struct(">iii")
_M = np.uint32(0x5BD1E995)
_CHUNK = 1 << 13
"""Keys that are hashed together: their words stay in the processor's cache."""
_FEWEST_ENTRIES = 64
"""Smaller filters are all noise."""
_FIRST_UNLIKE_UTF16 = 0xEE
"""From this byte on UTF-8 and UTF-16, by which Java compares, may order texts differently."""

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint32]


def bit_size(entries: int, rate: float) -> int:
    """Return the number of bits for that many keys."""
    return math.ceil(entries * (-math.log(rate) / (math.log(2) * math.log(2))))


def hash_count(size: int, entries: int) -> int:
    """Return the number of hashes that suits a number of bits."""
    return math.ceil(math.log(2) * size / entries)


@dataclass(frozen=True)
class BloomFilter:
    """A filter as read: a key may be there if one of the rows has all its bits."""

    hashes: int
    size: int
    rows: tuple[npt.NDArray[np.uint8], ...]

    @classmethod
    def decode(cls, text: str | bytes, kind: str = SIMPLE) -> BloomFilter:
        """Read a filter from a footer; raises ValueError for what is none, or is hashed in another way."""
        data = base64.b64decode(text)
        try:
            return cls._dynamic(data) if kind == DYNAMIC else cls._simple(data)
        except struct.error as error:
            raise ValueError(f"a bloom filter of {len(data)} bytes is cut: {error}") from None

    @classmethod
    def _simple(cls, data: bytes) -> BloomFilter:
        hashes, size, row, _ = _row(data, 0)
        return cls(hashes, size, (row,))

    @classmethod
    def _dynamic(cls, data: bytes) -> BloomFilter:
        hashes, size = _checked(data, 0)
        _, _, count = _DYNAMIC.unpack_from(data, _HEADER.size)
        rows, at = [], _HEADER.size + _DYNAMIC.size
        for _ in range(count):
            _, row_size, row, at = _row(data, at)
            if row_size != size:
                raise ValueError(f"a row of a bloom filter has {row_size} bits; expected {size}")
            rows.append(row)
        return cls(hashes, size, tuple(rows))

    def might_contain(self, keys: pa.Array) -> Mask:
        """Tell which keys the file may hold; the others it does not."""
        found = np.zeros(len(keys), dtype=bool)
        for rows, words in _hashed(keys):
            alive = [np.ones(len(rows), dtype=bool) for _ in self.rows]
            for positions in words.positions(self.hashes, self.size):
                byte, bit = positions >> 3, (positions & 7).astype(np.uint8)
                for row, there in zip(self.rows, alive, strict=True):
                    there &= (row[byte] >> bit & 1).astype(bool)
            found[rows] = np.logical_or.reduce(alive) if alive else False
        return found


def _checked(data: bytes, at: int) -> tuple[int, int]:
    version, hashes, hash_type, size = _HEADER.unpack_from(data, at)
    if version != _VERSION or hash_type != _MURMUR or size <= 0 or not 0 < hashes < 1000:
        raise ValueError(
            f"no bloom filter by murmur hashes: version {version}, hash {hash_type}, {size} bits"
        )
    return hashes, size


def _row(data: bytes, at: int) -> tuple[int, int, npt.NDArray[np.uint8], int]:
    hashes, size = _checked(data, at)
    start, length = at + _HEADER.size, (size + 7) // 8
    if len(data) < start + length:
        raise ValueError(f"a bloom filter of {len(data)} bytes is cut: {start + length} expected")
    return hashes, size, np.frombuffer(data, np.uint8, length, start), start + length


class FooterKeys:
    """Gathers the keys of a file for its footer: the filter and the key range.

    Few keys get a filter of their own size, which readers take as any other; from `most_entries` keys on rows of
    `entries` share them.
    """

    def __init__(self, options: BloomOptions) -> None:
        self._options = options
        self._held: list[pa.Array] = []
        self._count = 0
        self._rows: list[Mask] = []
        self._range: tuple[str, str] | None = None

    def add(self, keys: pa.Array) -> None:
        """Add keys of rows; none is null."""
        if not len(keys) or not self._options.enabled:
            return
        self._widen(keys)
        self._count += len(keys)
        if self._rows or self._count > self._capacity:
            self._spread([*self._held, keys])
            self._held = []
        else:
            self._held.append(keys)

    @property
    def _capacity(self) -> int:
        """How many keys a filter of their own size is made for."""
        options = self._options
        return options.entries if options.kind == SIMPLE else max(options.entries, options.most_entries)

    def _widen(self, keys: pa.Array) -> None:
        least, greatest = key_range(keys)
        if self._range is None:
            self._range = least, greatest
        else:
            self._range = min(self._range[0], least, key=_utf16), max(self._range[1], greatest, key=_utf16)

    def _spread(self, arrays: list[pa.Array]) -> None:
        options = self._options
        size = bit_size(options.entries, options.rate)
        if not self._rows:
            count = 1 if options.kind == SIMPLE else -(-options.most_entries // options.entries)
            self._rows = [np.zeros(size, dtype=bool) for _ in range(count)]
        for keys in arrays:
            step = -(-len(keys) // len(self._rows))
            for number, bits in enumerate(self._rows):
                _set_bits(bits, keys.slice(number * step, step), hash_count(size, options.entries))

    def metadata(self) -> dict[str, str]:
        """Return the entries of the footer; none without keys."""
        if self._range is None:
            return {}
        options = self._options
        entries = options.entries if self._rows else min(max(self._count, _FEWEST_ENTRIES), self._capacity)
        if options.kind == SIMPLE:
            entries = options.entries
        size = bit_size(entries, options.rate)
        hashes = hash_count(size, entries)
        rows = self._rows or [np.zeros(size, dtype=bool)]
        for keys in self._held:
            _set_bits(rows[0], keys, hashes)
        header = _HEADER.pack(_VERSION, hashes, _MURMUR, size)
        body = b"".join(header + np.packbits(row, bitorder="little").tobytes() for row in rows)
        found = {MIN_KEY: self._range[0], MAX_KEY: self._range[1]}
        if options.kind == DYNAMIC:
            last = self._count - (len(rows) - 1) * entries
            body = header + _DYNAMIC.pack(entries, max(last, 0), len(rows)) + body
            found[TYPE_CODE] = DYNAMIC
        return found | {BLOOM_FILTER: base64.b64encode(body).decode()}


@dataclass(frozen=True)
class KeyFooter:
    """What the footer of a base file tells of its keys; None for what it does not tell."""

    least: str | None = None
    greatest: str | None = None
    filter: BloomFilter | None = None

    @classmethod
    def of(cls, metadata: Mapping[bytes, bytes] | None) -> KeyFooter:
        """Read the key-value metadata of a Parquet footer; a filter that cannot be used counts as none."""
        found = metadata or {}
        text = found.get(BLOOM_FILTER.encode()) or found.get(OLD_BLOOM_FILTER.encode())
        bounds = [found.get(name.encode()) for name in (MIN_KEY, MAX_KEY)]
        least, greatest = (None if bound is None else bound.decode() for bound in bounds)
        try:
            bloom = (
                None
                if text is None
                else BloomFilter.decode(text, found.get(TYPE_CODE.encode(), b"").decode())
            )
        except ValueError:
            bloom = None
        return cls(least, greatest, bloom)

    def candidates(self, keys: pa.Array) -> Mask:
        """Tell which keys the file may hold: those in its range that its filter does not rule out.

        Keys are distinct texts. Nothing is ruled out where footers tell nothing, and nothing by the range where
        texts order differently in UTF-16, by which Hudi wrote it.
        """
        possible = np.ones(len(keys), dtype=bool)
        if self.least is not None and self.greatest is not None and self._orders_alike(keys):
            within = pc.and_(pc.greater_equal(keys, self.least), pc.less_equal(keys, self.greatest))
            possible &= np.asarray(within)
        if self.filter is not None and possible.any():
            rows = np.flatnonzero(possible)
            possible[rows] = self.filter.might_contain(keys.take(pa.array(rows)))
        return possible

    def _orders_alike(self, keys: pa.Array) -> bool:
        bounds = f"{self.least}{self.greatest}".encode()
        return not bounds or (max(bounds) < _FIRST_UNLIKE_UTF16 and _highest_byte(keys) < _FIRST_UNLIKE_UTF16)


def key_range(keys: pa.Array) -> tuple[str, str]:
    """Return the least and the greatest key, in Java's order."""
    if _highest_byte(keys) < _FIRST_UNLIKE_UTF16:
        found = pc.min_max(keys)
        return found["min"].as_py(), found["max"].as_py()
    texts = keys.to_pylist()
    return min(texts, key=_utf16), max(texts, key=_utf16)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _highest_byte(keys: pa.Array) -> int:
    offsets, data = _buffers(keys)
    used = data[offsets[0] : offsets[-1]]
    return int(used.max()) if len(used) else 0


def _set_bits(bits: Mask, keys: pa.Array, hashes: int) -> None:
    for _, words in _hashed(keys):
        for positions in words.positions(hashes, len(bits)):
            bits[positions] = True


@dataclass(frozen=True)
class _KeyWords:
    """Keys of one length, ready to be hashed with any seed: mixed words, then what their last bytes add."""

    count: int
    length: int
    words: list[Words]
    tail: Words | None

    def positions(self, hashes: int, size: int) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the bit of every key, hash by hash."""
        seeds: Words = np.zeros(self.count, dtype=np.uint32)
        divisor = np.uint32(size)
        for _ in range(hashes):
            seeds = self._hash(seeds)
            distance: Words = np.abs(seeds.view(np.int32)).view(np.uint32)
            quotient = distance // divisor
            quotient *= divisor
            distance -= quotient
            yield distance.astype(np.int64)

    def _hash(self, seeds: Words) -> Words:
        h: Words = seeds ^ np.uint32(self.length)
        for word in self.words:
            h *= _M
            h ^= word
        if self.tail is not None:
            h ^= self.tail
            h *= _M
        shifted = h >> np.uint32(13)
        h ^= shifted
        h *= _M
        h ^= np.right_shift(h, np.uint32(15), out=shifted)
        return h


def _hashed(keys: pa.Array) -> Iterator[tuple[npt.NDArray[np.int64], _KeyWords]]:
    """Yield keys of equal length in chunks: their rows, and their words."""
    offsets, data = _buffers(keys)
    starts, lengths = offsets[:-1], np.diff(offsets)
    for length in np.flatnonzero(np.bincount(lengths)).tolist() if len(lengths) else ():
        rows = np.flatnonzero(lengths == length)
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            yield chunk, _words(data, starts[chunk], length)


def _words(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> _KeyWords:
    matrix = _texts(data, starts, length)
    whole = length // 4
    words = []
    for number in range(whole):
        k = np.ascontiguousarray(matrix[:, 4 * number : 4 * number + 4]).view("<u4")[:, 0].astype(np.uint32)
        k *= _M
        k ^= k >> np.uint32(24)
        k *= _M
        words.append(k)
    return _KeyWords(len(starts), length, words, _tail(matrix[:, 4 * whole :]))


def _texts(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.uint8]:
    """Return texts of one length as rows; those that lie side by side, as keys made of numbers do, as they are."""
    first, end = int(starts[0]), int(starts[-1]) + length
    side_by_side = end - first == len(starts) * length
    at = slice(first, end) if side_by_side else (starts[:, None] + np.arange(length)).ravel()
    found: npt.NDArray[np.uint8] = data[at].reshape(len(starts), length)
    return found


def _tail(matrix: npt.NDArray[np.uint8]) -> Words | None:
    """Up to three last bytes, the last one lowest, each with its sign as in Java."""
    count = matrix.shape[1]
    if not count:
        return None
    signed = matrix.view(np.int8).astype(np.int32)
    tail: npt.NDArray[np.int32] = np.zeros(len(matrix), dtype=np.int32)
    for place in range(count):
        tail ^= signed[:, count - 1 - place] << (8 * place)
    return tail.view(np.uint32)


def _buffers(keys: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets of texts, and their bytes."""
    _, offsets, data = keys.buffers()
    width = np.int64 if pa.types.is_large_string(keys.type) else np.int32
    found = np.frombuffer(offsets, dtype=width)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    return found, np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, np.uint8)
