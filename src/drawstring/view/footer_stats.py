"""Column statistics from Parquet footers, kept in memory: files never change under their names."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.errors import UnsupportedTable
from drawstring.formats.parquet import check_not_encrypted
from drawstring.predicates.facts import ColumnFacts
from drawstring.storage.base import Storage
from drawstring.view.statistics import FileStatistics, are_exact, comparable_bounds

_THREADS = 8
_PARQUET_MR = re.compile(r"parquet-mr version (\d+)\.(\d+)")
_CACHED_FILES = 10_000
_footers: OrderedDict[tuple[str, str], _Footer] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True)
class _ColumnStatistics:
    type: pa.DataType
    lower: Any
    upper: Any
    nulls: int | None
    rows: int


@dataclass(frozen=True)
class _Footer:
    columns: Mapping[str, _ColumnStatistics]
    rows: int
    covers_nan: bool = False


def footer_statistics(
    storage: Storage, paths: Iterable[str], columns: Mapping[str, pa.DataType]
) -> dict[str, FileStatistics]:
    """Return what the footers of Parquet files say, by path; files whose footer cannot be read are left out."""
    wanted = list(dict.fromkeys(paths))
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = zip(wanted, pool.map(lambda path: _footer(storage, path), wanted), strict=True)
    return {path: _statistics(footer, columns) for path, footer in footers if footer is not None}


def bounds_beside_nan(
    storage: Storage, paths: Sequence[str], columns: Iterable[str]
) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of float columns over files, by name: of all values but NaN, which is enough for estimates."""
    with ThreadPoolExecutor(_THREADS) as pool:
        footers = list(pool.map(lambda path: _footer(storage, path), paths))
    found = {
        name: [None if footer is None else footer.columns.get(name) for footer in footers] for name in columns
    }
    return {name: bounds for name, each in found.items() if (bounds := _bounds_over(each)) is not None}


def _bounds_over(columns: Sequence[_ColumnStatistics | None]) -> tuple[Any, Any] | None:
    present = [each for each in columns if each is None or each.nulls != each.rows]
    known = [(each.lower, each.upper) for each in present if each is not None]
    if (
        not known
        or len(known) < len(present)
        or any(one is None or one != one for pair in known for one in pair)
    ):
        return None
    return min(lower for lower, _ in known), max(upper for _, upper in known)


def _footer(storage: Storage, path: str) -> _Footer | None:
    key = (storage.root, path)
    with _lock:
        known = _footers.get(key)
    if known is None:
        known = _read(storage, path)
    if known is not None:
        with _lock:
            _footers[key] = known
            while len(_footers) > _CACHED_FILES:
                _footers.popitem(last=False)
    return known


def _read(storage: Storage, path: str) -> _Footer | None:
    try:
        with storage.open(path) as file:
            metadata = pq.read_metadata(file)
            check_not_encrypted(file, metadata, path)
    except (OSError, pa.ArrowException, UnsupportedTable):
        # Skipping is an optimisation: whoever reads the file reports what is wrong with it.
        return None
    types = dict(_leaves(metadata.schema.to_arrow_schema(), ""))
    return _Footer(dict(_columns(metadata, types)), metadata.num_rows, bounds_cover_nan(metadata.created_by))


def bounds_cover_nan(created_by: str | None) -> bool:
    """Whether a writer leaves no bounds where a value is NaN, as parquet-mr (Spark, Hudi) does since 1.10."""
    found = _PARQUET_MR.match(created_by or "")
    return found is not None and (int(found[1]), int(found[2])) >= (1, 10)


def _leaves(fields: Iterable[pa.Field], prefix: str) -> Iterator[tuple[str, pa.DataType]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, f"{prefix}{field.name}.")
        elif not pa.types.is_nested(field.type):
            yield f"{prefix}{field.name}", field.type


def _columns(
    metadata: pq.FileMetaData, types: Mapping[str, pa.DataType]
) -> Iterator[tuple[str, _ColumnStatistics]]:
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        if name in types:
            chunks = [metadata.row_group(group).column(index) for group in range(metadata.num_row_groups)]
            yield name, _column(chunks, types[name], metadata.num_rows)


def _column(chunks: list[Any], found: pa.DataType, rows: int) -> _ColumnStatistics:
    lowers, uppers, nulls = [], [], 0
    complete = counted = True
    for chunk in chunks:
        statistics = chunk.statistics
        has_nulls = statistics is not None and statistics.has_null_count
        counted = counted and has_nulls
        nulls += statistics.null_count if has_nulls else 0
        if has_nulls and statistics.null_count == chunk.num_values:
            continue
        bounds = _bounds(statistics)
        if bounds is None:
            complete = False
            continue
        lowers.append(bounds[0])
        uppers.append(bounds[1])
    bounded = complete and bool(lowers)
    lower, upper = (min(lowers), max(uppers)) if bounded else (None, None)
    return _ColumnStatistics(found, lower, upper, nulls if counted else None, rows)


def _bounds(statistics: Any) -> tuple[Any, Any] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        return statistics.min, statistics.max
    except (OverflowError, ValueError):
        # Times before the year 1 and after 9999, which Python cannot say.
        return None


def _statistics(footer: _Footer, columns: Mapping[str, pa.DataType]) -> FileStatistics:
    facts = {
        name: _facts(footer.columns[name], wanted, footer.covers_nan)
        for name, wanted in columns.items()
        if name in footer.columns
    }
    return FileStatistics(facts, is_empty=footer.rows == 0, rows=footer.rows)


def _facts(column: _ColumnStatistics, wanted: pa.DataType, covers_nan: bool) -> ColumnFacts:
    if column.nulls == column.rows and column.rows > 0:
        return ColumnFacts(wanted, all_null=True, nulls=column.nulls)
    found = column.type
    lower, upper = comparable_bounds(column.lower, column.upper, found, wanted, cover_nan=covers_nan)
    # A value that does not fit the wider type becomes null.
    return ColumnFacts(
        wanted,
        lower,
        upper,
        may_be_null=column.nulls != 0 or found != wanted,
        nulls=column.nulls if found == wanted else None,
        is_exact=are_exact(column.lower, column.upper, found, wanted),
    )
