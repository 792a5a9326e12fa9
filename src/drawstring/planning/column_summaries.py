"""Facts about columns over all slices of a plan, for cost-based optimisers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from drawstring.model.read_task import ReadTask
from drawstring.planning.pruning import MAX_FOOTERS
from drawstring.planning.scan_planner import ScanPlanner
from drawstring.planning.slice_statistics import SliceFacts
from drawstring.predicates.ast import Column
from drawstring.predicates.facts import ColumnFacts


@dataclass(frozen=True)
class ColumnSummary:
    """A column over a whole plan; None for what is not known. Bounds hold for all values, NaN aside.

    `distinct` is an estimate, never more than the rows or than the whole numbers between the bounds.
    """

    name: str
    type: pa.DataType
    lower: Any = None
    upper: Any = None
    nulls: int | None = None
    distinct: int | None = None


def column_summaries(planner: ScanPlanner, tasks: Sequence[ReadTask]) -> list[ColumnSummary]:
    """Summarise the columns of the planner's request that are no structs, lists or maps."""
    schema = planner.source.schema
    names = schema.names if planner.request.columns is None else planner.request.columns
    types = {
        name: schema.field(name).type for name in names if not pa.types.is_nested(schema.field(name).type)
    }
    facts = planner.facts(tasks, types, MAX_FOOTERS)
    keys = frozenset(planner.source.state.config.record_key_fields)
    found = [_summary(name, arrow, facts, is_key=keys == {name}) for name, arrow in types.items()]
    return [each for each in found if each is not None]


def _summary(
    name: str, arrow: pa.DataType, slices: Sequence[SliceFacts], *, is_key: bool
) -> ColumnSummary | None:
    known = [each.column(Column((name,)), arrow) for each in slices]
    facts = [each for each in known if each is not None]
    if not facts or len(facts) < len(known):
        return None
    present = [each for each in facts if not each.all_null]
    lower, upper = _least(present), _greatest(present)
    nulls = _nulls(slices, facts)
    rows = sum(each.rows or 0 for each in slices) if all(each.rows is not None for each in slices) else None
    distinct = _distinct(lower, upper, None if rows is None else rows - (nulls or 0), is_key)
    return ColumnSummary(name, arrow, lower, upper, nulls, distinct)


def _least(facts: Sequence[ColumnFacts]) -> Any:
    bounds = [each.lower for each in facts]
    return None if not bounds or None in bounds else min(bounds)


def _greatest(facts: Sequence[ColumnFacts]) -> Any:
    bounds = [each.upper for each in facts]
    return None if not bounds or None in bounds else max(bounds)


def _nulls(slices: Sequence[SliceFacts], facts: Sequence[ColumnFacts]) -> int | None:
    total = 0
    for each, known in zip(slices, facts, strict=True):
        count = each.rows if known.all_null else known.nulls if known.may_be_null else 0
        if count is None:
            return None
        total += count
    return total


def _distinct(lower: Any, upper: Any, rows: int | None, is_key: bool) -> int | None:
    """Keys are unique; whole numbers and dates are taken to fill their range, as keys of dimensions do."""
    if rows is None:
        return None
    if is_key:
        return rows
    width = _width(lower, upper)
    return None if width is None else min(rows, width)


def _width(lower: Any, upper: Any) -> int | None:
    if lower is None or upper is None or type(lower) is not type(upper):
        return None
    if isinstance(lower, (bool, int)):
        return int(upper) - int(lower) + 1
    return (upper - lower).days + 1 if type(lower) is date else None
