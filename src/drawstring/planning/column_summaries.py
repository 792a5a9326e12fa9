"""Facts about columns over all slices of a plan, for cost-based optimisers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from drawstring.storage.base import Storage
from drawstring.view.distinct_values import distinct_values
from drawstring.view.footer_stats import bounds_beside_nan


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
    state = planner.source.state
    keys = frozenset(state.config.record_key_fields)
    told = _Told.of(state.storage, tasks, {name: arrow for name, arrow in types.items() if keys != {name}})
    found = [_summary(name, arrow, facts, told, is_key=keys == {name}) for name, arrow in types.items()]
    return [each for each in found if each is not None]


@dataclass(frozen=True)
class _Told:
    """What base files tell of columns that is good for estimates alone: how many values differ, bounds of floats."""

    distinct: Mapping[str, int]
    bounds: Mapping[str, tuple[Any, Any]]

    @staticmethod
    def of(storage: Storage, tasks: Sequence[ReadTask], types: Mapping[str, pa.DataType]) -> _Told:
        bases = [task.slice.base_file.path for task in tasks if task.slice.base_file and not task.mappings]
        if len(bases) < len(tasks):
            return _Told({}, {})
        floats = [name for name, arrow in types.items() if pa.types.is_floating(arrow)]
        bounds = bounds_beside_nan(storage, bases, floats) if floats and len(bases) <= MAX_FOOTERS else {}
        return _Told(distinct_values(storage, bases, types.keys()), bounds)


def _summary(
    name: str, arrow: pa.DataType, slices: Sequence[SliceFacts], told: _Told, *, is_key: bool
) -> ColumnSummary | None:
    known = [each.column(Column((name,)), arrow) for each in slices]
    facts = [each for each in known if each is not None]
    if not facts or len(facts) < len(known):
        return None
    present = [each for each in facts if not each.all_null]
    lower, upper = told.bounds.get(name, (_least(present), _greatest(present)))
    nulls = _nulls(slices, facts)
    rows = sum(each.rows or 0 for each in slices) if all(each.rows is not None for each in slices) else None
    is_constant = bool(present) and all(
        each.lower is not None and each.lower == each.upper for each in present
    )
    different = len({each.lower for each in present}) if is_constant else told.distinct.get(name)
    distinct = _distinct(lower, upper, different, None if rows is None else rows - (nulls or 0), is_key)
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


def _distinct(lower: Any, upper: Any, told: int | None, rows: int | None, is_key: bool) -> int | None:
    """Keys are unique; of others files tell, and there are no more whole numbers and dates than within their range."""
    if rows is None:
        return None
    if is_key:
        return rows
    known = [each for each in (_width(lower, upper), told) if each is not None]
    return min([rows, *known]) if known else None


def _width(lower: Any, upper: Any) -> int | None:
    if lower is None or upper is None or type(lower) is not type(upper):
        return None
    if isinstance(lower, (bool, int)):
        return int(upper) - int(lower) + 1
    return (upper - lower).days + 1 if type(lower) is date else None
