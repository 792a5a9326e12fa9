"""Keys of the metadata table's records, and the file group that a key belongs to."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from hashlib import md5

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

ALL_PARTITIONS = "__all_partitions__"
UNPARTITIONED = "."
HASH_CHARACTERS = 12
"""How many characters `hash_text` returns."""
_SEED = 0xFFFFFFFFDABADABA


@lru_cache(maxsize=1 << 14)
def hash_text(text: str) -> str:
    """Return the hash that stands for a column or a partition path in keys."""
    return b64encode(xxhash.xxh64(text.encode(), seed=_SEED).digest()).decode()


def partition_name(partition_path: str) -> str:
    """Return how records call a partition: an unpartitioned table's is a dot."""
    return partition_path or UNPARTITIONED


def column_stats_key(column: str, partition_path: str, file_name: str) -> str:
    """Return the key of a column's statistics in one file."""
    return partition_stats_key(column, partition_path) + _hash_file(file_name)


def partition_stats_key(column: str, partition_path: str) -> str:
    """Return the key of a column's statistics in a whole partition."""
    return hash_text(column) + hash_text(partition_name(partition_path))


def bloom_filter_key(partition_path: str, file_name: str) -> str:
    """Return the key of a base file's bloom filter."""
    return hash_text(partition_name(partition_path)) + _hash_file(file_name)


def _hash_file(name: str) -> str:
    return b64encode(md5(name.encode(), usedforsecurity=False).digest()).decode()


def file_groups_of(keys: pa.Array, groups: int) -> npt.NDArray[np.int64]:
    """Return the number of the file group of each key: by Java's hash of the key's text."""
    if groups == 1 or not len(keys):
        return np.zeros(len(keys), np.int64)
    hashes = _java_hashes(keys).astype(np.int64)
    # Java's abs leaves the smallest int negative, and its remainder takes the sign of the dividend.
    magnitude = np.where(hashes == -(2**31), hashes, np.abs(hashes))
    return np.abs(np.fmod(magnitude, groups))


def _java_hashes(keys: pa.Array) -> npt.NDArray[np.int32]:
    """Return `String.hashCode` of texts: 31 times the hash so far plus the next UTF-16 unit, in 32 bits."""
    hashes = np.zeros(len(keys), np.uint32)
    plain = pc.string_is_ascii(keys).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~plain).tolist():
        hashes[row] = _java_hash(keys[row].as_py())
    rows = np.flatnonzero(plain)
    if len(rows):
        hashes[rows] = _ascii_hashes(keys.take(pa.array(rows)))
    return hashes.view(np.int32)


def _ascii_hashes(keys: pa.Array) -> npt.NDArray[np.uint32]:
    combined = keys.cast(pa.binary())
    offsets = np.frombuffer(combined.buffers()[1], np.int32, len(combined) + 1, 4 * combined.offset)
    data = np.frombuffer(combined.buffers()[2] or b"\0", np.uint8)
    lengths = np.diff(offsets)
    hashes = np.zeros(len(lengths), np.uint32)
    rows = np.flatnonzero(lengths)
    for position in range(int(lengths.max())):
        rows = rows[lengths[rows] > position]
        hashes[rows] = hashes[rows] * np.uint32(31) + data[offsets[rows] + position]
    return hashes


def _java_hash(text: str) -> int:
    found = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(encoded), 2):
        found = (31 * found + (encoded[index] << 8 | encoded[index + 1])) & 0xFFFFFFFF
    return found
