"""What is known of a column's values in some rows: a partition's value, a file's bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from drawstring.predicates.literals import is_nan


# Nobody changes facts; but one is made per file and column, and a frozen one takes five times as long to make.
@dataclass(slots=True)
class ColumnFacts:
    """What is known of a column's values in some rows.

    1. `lower` and `upper` bound all values that are not null (NaN counts as the greatest); None is unknown.
    2. `may_be_null` is False only if no value is null; `all_null` is True only if every value is.
    3. `nulls` is how many values are null, where that is known.
    4. `is_exact` says that the bounds are the least and the greatest value, not merely beyond them.
    """

    type: pa.DataType
    lower: Any = None
    upper: Any = None
    may_be_null: bool = True
    all_null: bool = False
    nulls: int | None = None
    is_exact: bool = False

    @staticmethod
    def of_value(value: Any, arrow: pa.DataType) -> ColumnFacts:
        """Return the facts of a column that has one value everywhere."""
        if value is None or is_nan(value):
            return ColumnFacts(arrow, may_be_null=value is None, all_null=value is None)
        return ColumnFacts(arrow, value, value, may_be_null=False)
