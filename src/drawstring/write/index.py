"""Where existing record keys live.

An index answers, for some keys and slices, which file group holds each key. If a key is in several groups, all of them
are returned. A global index looks into the slices of all partitions; `moved_rows` decides what happens to rows whose
key it finds in another partition than the one that they name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.bloom import KeyFooter
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage
from drawstring.write.log_keys import keys_in_log
from drawstring.write.moved_rows import StoredVersions

NO_POSITION = -1
_THREADS = 8
_ROWS_PER_HASHED_KEY = 10
"""Hashing a key for a bloom filter takes as long as reading and comparing about so many keys."""


@dataclass(frozen=True)
class Located:
    """Keys found in one slice: numbers of the keys that were asked for, and the rows of its base file where known.

    A key that a log holds has `NO_POSITION`.
    """

    slice: FileSlice
    keys: np.ndarray
    positions: np.ndarray | None = None


class Index(Protocol):
    """Finds keys in slices, which have only those logs that must be read. Sent to executors."""

    def locate(self, storage: Storage, keys: pa.Array, slices: Sequence[FileSlice]) -> list[Located]:
        """Return, for each slice that holds any of the keys, which ones and where."""
        ...


class LiveKeys(Protocol):
    """Tells where keys that were found in several places are alive; sent to executors."""

    @property
    def began(self) -> Mapping[FileGroupId, str]:
        """The base instants of the file groups."""
        ...

    def alive(self, group: FileGroupId, keys: pa.Array) -> np.ndarray:
        """Tell which of the keys that were found in a group are alive there."""
        ...


@dataclass(frozen=True)
class LookUp:
    """The question of a write to its index: where to look, and what to do with rows found in another partition.

    - `slices`: the slices of the partitions; `searched`: the same with only those logs that must be read, none of them
      if all keys are new.
    - `is_global`: keys are looked for in all slices, otherwise in those of the row's partition.
    - `combines`: one row of each key is kept, by `ordering`, before a global index is asked.
    - `moves`: reads stored records, so that rows can move to the partition that they name; without it rows are written
      where their key lies.
    - `live_keys`: finds out in which groups logs have deleted keys that are in several groups; without it rows go to
      all of these groups.
    """

    storage: Storage
    slices: tuple[FileSlice, ...] = ()
    searched: tuple[FileSlice, ...] = ()
    index: Index = field(default_factory=lambda: SimpleIndex())
    is_global: bool = False
    combines: bool = True
    ordering: tuple[str, ...] = ()
    moves: Callable[[Sequence[FileGroupId]], StoredVersions] | None = None
    live_keys: Callable[[Sequence[FileGroupId]], LiveKeys] | None = None


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
    base = candidate.base_file
    found = [] if base is None else [_found_in_base(storage, keys, bounds, base)]
    found += [_found_in_log(storage, keys, log) for log in candidate.log_files]
    numbers = np.concatenate([one[0] for one in found]) if found else np.zeros(0, np.int64)
    if not len(numbers):
        return None
    return Located(candidate, numbers, np.concatenate([one[1] for one in found]))


def _found_in_log(storage: Storage, keys: pa.Array, log: LogFile) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the keys that a log holds; it has no positions."""
    numbers = [
        np.asarray(pc.index_in(stored, value_set=keys).drop_null())
        for stored in keys_in_log(storage, log.path)
    ]
    found = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)
    return found.astype(np.int64), np.full(len(found), NO_POSITION, dtype=np.int64)


def _found_in_base(
    storage: Storage, keys: pa.Array, bounds: dict[str, str], base: BaseFile
) -> tuple[np.ndarray, np.ndarray]:
    nothing = np.zeros(0, np.int64)
    numbers, positions, start = [nothing], [nothing], 0
    with storage.open(base.path) as source:
        file = pq.ParquetFile(source)
        wanted = _candidates(file, keys)
        if not len(wanted):
            return nothing, nothing
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
    return wanted[np.concatenate(numbers)], np.concatenate(positions)


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
