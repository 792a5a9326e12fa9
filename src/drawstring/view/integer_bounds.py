"""Bounds of an integer column in very many files at once, from the column statistics of the metadata table.

Facts of single files (`column_stats.py`) say more and cost an object each. This says which files lie outside of a
range, as arrays; whatever is not plainly two bounds of whole numbers is left to the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from drawstring.predicates.ranges import IntegerRange
from drawstring.view.metadata_records import StatsColumns

FileKey = tuple[str, str]
"""A partition path and a file name."""
_INTEGERS = (0, 3, 4)
"""What records say of the type of whole numbers; old ones (0) say nothing, and the column's type decides."""


class IntegerBounds:
    """The newest bounds of each file, by its key."""

    def __init__(self, keys: Sequence[FileKey], lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> None:
        self._keys, self._lower, self._upper = keys, lower, upper

    @staticmethod
    def of(column: str, parts: Iterable[tuple[Sequence[str | None], StatsColumns]]) -> IntegerBounds:
        """Gather the bounds of a column from parts, older ones first: partitions, and the records themselves."""
        latest: dict[FileKey, int] = {}
        lowers, uppers, count = [], [], 0
        for partitions, records in parts:
            lower, upper, trusted = _bounds(column, records)
            keys = list(zip(partitions, records.file_names.tolist(), strict=True))
            latest.update(zip(keys, range(count, count + len(keys)), strict=True))  # type: ignore[arg-type]
            for position in np.flatnonzero(~trusted).tolist():
                latest.pop(keys[position], None)
            lowers.append(lower)
            uppers.append(upper)
            count += len(keys)
        chosen = np.fromiter(latest.values(), np.int64, len(latest))
        return IntegerBounds(list(latest), _joined(lowers)[chosen], _joined(uppers)[chosen])

    def outside(self, wanted: IntegerRange) -> set[FileKey]:
        """The files of which no value lies in the range."""
        out = (self._upper < wanted.lower) | (self._lower > wanted.upper)
        return {self._keys[position] for position in np.flatnonzero(out).tolist()}


def _bounds(
    column: str, records: StatsColumns
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Least and greatest values, and where both can be believed, as `column_stats` believes them."""
    (lower, has_lower), (upper, has_upper) = _numbers(records.lower), _numbers(records.upper)
    (values, has_values), (_, has_nulls) = _numbers(records.value_count), _numbers(records.null_count)
    trusted = has_lower & has_upper & has_values & (values != 0) & has_nulls
    trusted &= np.isin(records.type_ordinal, _INTEGERS)
    trusted &= (records.column_names == column) & ~records.is_deleted.astype(bool)
    return lower, upper, trusted


def _numbers(found: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Whole numbers of an array, and where it has some."""
    if found.dtype == np.int64:
        return found, np.ones(len(found), np.bool_)
    listed = found.tolist()
    known = np.fromiter((type(value) is int for value in listed), np.bool_, len(listed))
    if found.dtype != object or not known.any():
        return np.zeros(len(found), np.int64), np.zeros(len(found), np.bool_)
    numbers = np.fromiter((v if type(v) is int else 0 for v in listed), np.int64, len(listed))
    return numbers, known


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
