"""Where existing record keys live.

An index answers, for keys of one partition, which file group holds each of them and at which position of its base
file. A key may live in several groups; all of them are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.bloom import KeyFooter
from drawstring.model.file_group import FileSlice
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage

_THREADS = 8
_ROWS_PER_HASHED_KEY = 10
"""To hash a key for a bloom filter costs as much as to read and compare about so many."""


@dataclass(frozen=True)
class Located:
    """Keys found in one slice: numbers of the keys that were asked for, and the rows of the base file."""

    slice: FileSlice
    keys: np.ndarray
    positions: np.ndarray


class Index(Protocol):
    """Finds keys in the slices of one partition."""

    def locate(self, storage: Storage, keys: pa.Array, slices: Sequence[FileSlice]) -> list[Located]:
        """Return, for each slice that holds any of the keys, which ones and where."""
        ...


class SimpleIndex:
    """Reads the keys of every base file that could hold one, by what footers tell: ranges and bloom filters."""

    def locate(self, storage: Storage, keys: pa.Array, slices: Sequence[FileSlice]) -> list[Located]:
        """Return, for each slice that holds any of the keys, which ones and where."""
        if not len(keys):
            return []
        # One hash table serves all files of the partition.
        bounds = pc.min_max(keys).as_py()
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(lambda s: _found_in(storage, keys, bounds, s), slices)
            return [located for located in found if located is not None]


def _found_in(
    storage: Storage, keys: pa.Array, bounds: dict[str, str], candidate: FileSlice
) -> Located | None:
    if candidate.base_file is None:
        return None
    numbers, positions, start = [], [], 0
    with storage.open(candidate.base_file.path) as source:
        file = pq.ParquetFile(source)
        wanted = _candidates(file, keys)
        if not len(wanted):
            return None
        if len(wanted) < len(keys):
            keys = keys.take(pa.array(wanted))
            bounds = pc.min_max(keys).as_py()
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if may_hold(file, group, bounds):
                stored = file.read_row_group(group, columns=[RECORD_KEY]).column(0)
                matches = pc.index_in(stored, value_set=keys)
                rows = np.flatnonzero(np.asarray(matches.is_valid()))
                positions.append(rows + start)
                numbers.append(np.asarray(matches.drop_null()))
            start += count
    if not sum(map(len, numbers)):
        return None
    return Located(candidate, wanted[np.concatenate(numbers)], np.concatenate(positions))


def _candidates(file: pq.ParquetFile, keys: pa.Array) -> np.ndarray:
    """Return the numbers of the keys that the file may hold, by its key range and bloom filter."""
    if len(keys) * _ROWS_PER_HASHED_KEY > file.metadata.num_rows:
        return np.arange(len(keys))
    return np.flatnonzero(KeyFooter.of(file.metadata.metadata).candidates(keys))


def may_hold(file: pq.ParquetFile, row_group: int, bounds: dict[str, str]) -> bool:
    """Whether a row group's range of keys meets that of the keys that are looked for."""
    column = file.schema_arrow.get_field_index(RECORD_KEY)
    statistics = file.metadata.row_group(row_group).column(column).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = statistics.min, statistics.max
    if not isinstance(low, str) or not isinstance(high, str):
        return True
    # Bounds may be cut: a cut upper bound is raised by its writer, a cut lower bound is lower anyway.
    return not (_bytes(bounds["max"]) < _bytes(low) or _bytes(bounds["min"]) > _bytes(high))


def _bytes(text: str) -> bytes:
    return text.encode()
