"""Estimates the number of distinct values of columns from the dictionaries of Parquet files.

A dictionary gives the exact number for one column chunk. How many values two chunks share is unknown: chunks whose
bounds do not overlap share none, and others are taken to draw their values at random.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import expm1
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.errors import UnsupportedTable
from drawstring.formats.parquet import check_not_encrypted
from drawstring.formats.parquet_pages import dictionary_size
from drawstring.storage.base import Storage

MAX_FILES = 64
"""How many files are looked at; of more files they are a sample."""
_FULL_DICTIONARY = 900_000
"""Writers stop adding values to a dictionary of about a megabyte, so one of this size does not hold all of them."""
_THREADS = 8
_CACHED_FILES = 2_000
_STEPS = 60
_CAUTION = 0.95
"""Estimates are rounded down: a foreign key with more values than the key it refers to would look like a filter."""
_cached: OrderedDict[tuple[str, str, frozenset[str]], Mapping[str, list[Values] | None]] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a column in some rows: how many are not null, how many of them differ, and their bounds."""

    count: int
    distinct: int
    lower: Any
    upper: Any


def distinct_values(storage: Storage, paths: Sequence[str], columns: Collection[str]) -> dict[str, int]:
    """Estimate how many values of columns differ in the files, nulls aside; what files do not tell is left out.

    Args:
        storage: where the files are.
        paths: Parquet files.
        columns: names, dotted for fields of structs.
    """
    if not paths or not columns:
        return {}
    step = max(1, -(-len(paths) // MAX_FILES))
    wanted, names = paths[::step], frozenset(columns)
    with ThreadPoolExecutor(_THREADS) as pool:
        files = list(pool.map(lambda path: _of_file(storage, path, names), wanted))
    found = {name: [each.get(name) for each in files] for name in names}
    known = {
        name: [chunk for part in parts if part for chunk in part]
        for name, parts in found.items()
        if None not in parts
    }
    counts = {name: estimated(chunks, len(paths) / len(wanted)) for name, chunks in known.items()}
    return {name: count for name, count in counts.items() if count}


def estimated(chunks: Iterable[Values], share: float = 1.0) -> int:
    """How many values differ over chunks that are one of `share` parts of all."""
    groups = _overlapping(_merged(chunks))
    if len(groups) == 1:
        return round(_of_draws(groups[0], share))
    return round(share * sum(_of_draws(group, 1.0) for group in groups))


def _merged(chunks: Iterable[Values]) -> list[Values]:
    """Chunks in which no value is there twice, as one where their bounds are equal: they have the same values."""
    found: dict[Any, Values] = {}
    for number, each in enumerate(chunk for chunk in chunks if chunk.count):
        is_unique = each.distinct == each.count and each.lower is not None
        key = (each.lower, each.upper) if is_unique else number
        known = found.get(key)
        count = each.count if known is None else known.count + each.count
        distinct = each.distinct if known is None else max(known.distinct, each.distinct)
        found[key] = Values(count, distinct, each.lower, each.upper)
    return list(found.values())


def _overlapping(chunks: Sequence[Values]) -> list[list[Values]]:
    """The chunks in groups that have no value in common."""
    if not chunks or any(each.lower is None or each.upper is None for each in chunks):
        return [list(chunks)]
    groups: list[list[Values]] = []
    end: Any = None
    for each in sorted(chunks, key=lambda chunk: (chunk.lower, chunk.upper)):
        if groups and each.lower == each.upper == end:
            continue
        if groups and each.lower < end:
            groups[-1].append(each)
            end = max(end, each.upper)
        else:
            groups.append([each])
            end = each.upper
    return groups


def _of_draws(chunks: Sequence[Values], share: float) -> float:
    """How many values differ, if each chunk drew its values from as many as would let so many of them differ."""
    seen, count = sum(each.distinct for each in chunks), sum(each.count for each in chunks)
    if seen >= count:
        return seen * share
    low, high = float(max(each.distinct for each in chunks)), float(count) ** 2
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if sum(_drawn(middle, each.count) for each in chunks) < seen:
            low = middle
        else:
            high = middle
    return min(
        max(_CAUTION * _drawn(high, count * share), max(each.distinct for each in chunks)), seen * share
    )


def _drawn(values: float, count: float) -> float:
    """How many of so many values come up in `count` draws."""
    return -values * expm1(-count / values)


def _of_file(storage: Storage, path: str, columns: frozenset[str]) -> Mapping[str, list[Values] | None]:
    key = (storage.root, path, columns)
    with _lock:
        known = _cached.get(key)
    if known is None:
        known = _read(storage, path, columns)
        with _lock:
            _cached[key] = known
            while len(_cached) > _CACHED_FILES:
                _cached.popitem(last=False)
    return known


def _read(storage: Storage, path: str, columns: frozenset[str]) -> Mapping[str, list[Values] | None]:
    try:
        with storage.open(path) as file:
            footer = pq.read_metadata(file)
            check_not_encrypted(file, footer, path)
            places = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
            return {name: _of_column(file, footer, places[name]) for name in columns & places.keys()}
    except (OSError, ValueError, pa.ArrowException, UnsupportedTable):
        # Only the optimiser goes by it: whoever reads the file reports what is wrong with it.
        return {}


def _of_column(file: Any, footer: Any, at: int) -> list[Values] | None:
    found = [_of_chunk(file, footer.row_group(group).column(at)) for group in range(footer.num_row_groups)]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _of_chunk(file: Any, chunk: Any) -> Values | None:
    statistics = chunk.statistics
    if statistics is None or not statistics.has_null_count:
        return None
    count = chunk.num_values - statistics.null_count
    if not count:
        return Values(0, 0, None, None)
    distinct = _counted(file, chunk, count)
    if distinct is None:
        return None
    bounds = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
    return Values(count, min(count, distinct), *bounds)


def _counted(file: Any, chunk: Any, count: int) -> int | None:
    """How many values a chunk's dictionary has; all of them where there were too many for one."""
    if not any("DICTIONARY" in encoding for encoding in chunk.encodings):
        # Writers do without where values hardly ever repeat; truth values never have one.
        return min(count, 2) if chunk.physical_type == "BOOLEAN" else count
    if not chunk.has_dictionary_page:
        return None
    found = dictionary_size(file, chunk.dictionary_page_offset)
    if found is None:
        return None
    values, size = found
    return count if size >= _FULL_DICTIONARY else values
