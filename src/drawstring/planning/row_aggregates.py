"""COUNT, MIN and MAX over rows, and the order of rows, as Spark has them: NaN is greater than every number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput
from drawstring.planning.aggregates import Group, Values
from drawstring.planning.scan_request import COUNT, MAX, Aggregate, Aggregation, SortKey
from drawstring.predicates.ast import Column


def aggregate_rows(rows: pa.Table, aggregation: Aggregation) -> dict[Group, Values]:
    """The aggregates over rows, by group."""
    keys = list(aggregation.group_by)
    columns = {f"k{n}": rows[name] for n, name in enumerate(keys)}
    wanted: list[tuple[Any, str]] = []
    for number, each in enumerate(aggregation.aggregates):
        wanted += _add_columns(columns, f"a{number}", each, rows)
    prepared = pa.table(columns) if columns else rows.select([])
    by = [f"k{n}" for n in range(len(keys))]
    if not columns:
        return {(): [rows.num_rows for _ in aggregation.aggregates]}
    found = _python_rows(prepared.group_by(by).aggregate(wanted))
    return {
        tuple(row[key] for key in by): [
            _result(row, f"a{number}", each) for number, each in enumerate(aggregation.aggregates)
        ]
        for row in found
    }


def _python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = rows.to_pylist()
        return found
    except (OverflowError, ValueError):
        raise InvalidInput(
            "An aggregate is a time before the year 1 or after 9999, which Python's datetime cannot hold. Read the "
            "rows with to_arrow() and aggregate them with pyarrow.",
            condition="TIME_OUT_OF_RANGE",
        ) from None


def _add_columns(
    columns: dict[str, Any], name: str, each: Aggregate, rows: pa.Table
) -> list[tuple[Any, str]]:
    if each.column is None:
        columns[name] = pa.chunked_array([pa.repeat(True, rows.num_rows)])
        return [(name, "count")]
    values = column_values(rows, each.column)
    columns[name] = values
    if each.function == COUNT:
        return [(name, "count")]
    if not pa.types.is_floating(values.type):
        return [(name, each.function)]
    is_nan = pc.is_nan(values)
    columns[name] = pc.if_else(is_nan, pa.scalar(None, values.type), values)
    columns[f"{name}_nan"] = is_nan
    return [(name, each.function), (f"{name}_nan", "max")]


def _result(row: dict[str, Any], name: str, each: Aggregate) -> Any:
    if each.column is None or each.function == COUNT:
        return row[f"{name}_count"]
    value = row[f"{name}_{each.function}"]
    if row.get(f"{name}_nan_max") and (value is None or each.function == MAX):
        return math.nan
    return value


def sorted_rows(rows: pa.Table, order: Sequence[SortKey]) -> pa.Table:
    """The rows in order, nulls where each key puts them."""
    columns: dict[str, Any] = {}
    keys: list[tuple[str, str]] = []
    for number, key in enumerate(order):
        values = column_values(rows, key.column)
        direction = "descending" if key.descending else "ascending"
        columns[f"n{number}"] = pc.is_null(values)
        keys.append((f"n{number}", "descending" if key.nulls_first else "ascending"))
        if pa.types.is_floating(values.type):
            columns[f"x{number}"] = pc.is_nan(values)
            keys.append((f"x{number}", direction))
        columns[f"v{number}"] = values
        keys.append((f"v{number}", direction))
    return rows.take(pc.sort_indices(pa.table(columns), sort_keys=keys))


def column_values(rows: pa.Table, column: Column) -> pa.ChunkedArray:
    """A column, or a field inside one."""
    values = rows[column.path[0]]
    return pc.struct_field(values, list(column.path[1:])) if len(column.path) > 1 else values
