"""Facts about the columns of single files, put together to facts about slices.

A file's statistics speak of its own schema. They become facts about the table's column only where the two types
order values alike; everything else, and everything that is known to be corrupt in some tables, is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.predicates.ast import Column
from drawstring.predicates.evaluate import Facts
from drawstring.predicates.facts import ColumnFacts


# Not frozen, as `ColumnFacts`.
@dataclass(slots=True)
class FileStatistics:
    """What is known of one file: facts by column name (dotted for struct fields); `is_empty` if it has no rows.

    `rows` is how many it has, where the file itself was asked.
    """

    columns: Mapping[str, ColumnFacts]
    is_empty: bool = False
    rows: int | None = None

    def facts(self, column: Column) -> ColumnFacts | None:
        """Return the facts of a column, None when nothing is known."""
        path = column.path
        return self.columns.get(path[0] if len(path) == 1 else ".".join(path))


def comparable_bounds(
    lower: Any, upper: Any, found: pa.DataType, wanted: pa.DataType, *, cover_nan: bool = False
) -> tuple[Any, Any]:
    """Return bounds of a file's column as bounds of the table's column; None for what cannot be told.

    `cover_nan`: the writer leaves no bounds where a value is NaN, so that there is none where there are bounds.
    """
    types = pa.types
    if types.is_floating(wanted):
        return _bounds_of_floats(lower, upper, found, wanted, cover_nan)
    whole = types.is_integer(wanted) or types.is_decimal(wanted)
    if whole and (types.is_integer(found) or types.is_decimal(found)):
        return lower, upper
    alike = (types.is_string, types.is_date, types.is_boolean)
    if any(is_kind(wanted) and is_kind(found) for is_kind in alike):
        return lower, upper
    if types.is_timestamp(wanted) and types.is_timestamp(found) and (wanted.tz is None) == (found.tz is None):
        return lower, upper
    return None, None


def are_exact(lower: Any, upper: Any, found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether bounds that a file gives are values that its column has, as the table's type shows them.

    Long texts may have been cut short; a zero among the bounds of floats stands for either zero.
    """
    if found != wanted or pa.types.is_string(wanted) or pa.types.is_binary(wanted):
        return False
    return not pa.types.is_floating(wanted) or 0.0 not in (lower, upper)


def _bounds_of_floats(
    lower: Any, upper: Any, found: pa.DataType, wanted: pa.DataType, cover_nan: bool
) -> tuple[Any, Any]:
    if pa.types.is_integer(found):
        # Integers round when they become floats, and rounding keeps order.
        single = pa.types.is_float32(wanted)
        return tuple(
            None if x is None else float(np.float32(x)) if single else float(x) for x in (lower, upper)
        )  # type: ignore[return-value]
    if found != wanted or lower is None or lower != lower:
        return None, None
    # Else the greatest value may be NaN, which the statistics of some writers leave out.
    return lower, upper if cover_nan and upper == upper else None


def facts_of_slice(files: Iterable[FileStatistics | None], *, has_logs: bool) -> Facts:
    """Return the facts that hold for all rows of a slice made of these files (None: nothing is known).

    Merging may take some columns of a row from one file and some from another, and may leave a column null that
    no file has null. So columns are looked at one by one across the files, and with logs any may be null.
    """
    known = [file for file in files if file is None or not file.is_empty]

    def facts(column: Column) -> ColumnFacts | None:
        found = [None if file is None else file.facts(column) for file in known]
        present = [each for each in found if each is not None]
        if not present or len(present) < len(found):
            return None
        merged = present[0]
        for other in present[1:]:
            merged = _union(merged, other)
        return replace(merged, may_be_null=True, nulls=None, is_exact=False) if has_logs else merged

    return facts


def _union(left: ColumnFacts, right: ColumnFacts) -> ColumnFacts:
    if left.all_null or right.all_null:
        other = right if left.all_null else left
        return replace(other, may_be_null=True)
    lowers, uppers = (left.lower, right.lower), (left.upper, right.upper)
    return ColumnFacts(
        left.type,
        lower=None if None in lowers else min(lowers),
        upper=None if None in uppers else max(uppers),
        may_be_null=left.may_be_null or right.may_be_null,
    )
