"""Conditions, orders and aggregates worked out row by row in plain Python: what the fast ways must agree with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from drawstring.predicates.ast import (
    Always,
    And,
    Comparison,
    Contains,
    EndsWith,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)

Row = dict[str, Any]


def sort_key(value: Any) -> tuple[int, Any]:
    """A key by which NaN is equal to itself and greater than every number."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def outcome(predicate: Predicate, row: Row) -> bool | None:
    """SQL's three-valued logic, spelled out."""
    if isinstance(predicate, And):
        outcomes = [outcome(part, row) for part in predicate.parts]
        return False if False in outcomes else None if None in outcomes else True
    if isinstance(predicate, Or):
        outcomes = [outcome(part, row) for part in predicate.parts]
        return True if True in outcomes else None if None in outcomes else False
    if isinstance(predicate, Not):
        found = outcome(predicate.part, row)
        return None if found is None else not found
    if isinstance(predicate, Always):
        return predicate.value
    return _on_value(predicate, value_of(row, predicate.column.path))


def value_of(row: Row, path: Sequence[str]) -> Any:
    """The value at a path; null below a null."""
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value


def _on_value(predicate: Any, value: Any) -> bool | None:
    if isinstance(predicate, IsNull):
        return value is None
    if isinstance(predicate, Comparison) and predicate.op == "<=>":
        return _null_safe_equal(value, predicate.literal.value)
    if value is None:
        return None
    if isinstance(predicate, In):
        return _is_among(value, predicate.values)
    if isinstance(predicate, StartsWith):
        return bool(value.startswith(predicate.prefix))
    if isinstance(predicate, EndsWith):
        return bool(value.endswith(predicate.suffix))
    if isinstance(predicate, Contains):
        return predicate.part in value
    return _compared(predicate.op, value, predicate.literal.value)


def _null_safe_equal(value: Any, literal: Any) -> bool:
    if value is None or literal is None:
        return value is literal
    return sort_key(value) == sort_key(literal)


def _is_among(value: Any, literals: Sequence[Any]) -> bool | None:
    if any(literal is not None and sort_key(literal) == sort_key(value) for literal in literals):
        return True
    return None if None in literals else False


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compared(op: str, value: Any, literal: Any) -> bool | None:
    return None if literal is None else _COMPARE[op](sort_key(value), sort_key(literal))


def matching(rows: Iterable[Row], predicate: Predicate | None) -> list[Row]:
    """The rows for which the condition is true."""
    return [row for row in rows if predicate is None or outcome(predicate, row) is True]


def ordered(values: Iterable[Any], *, descending: bool, nulls_first: bool) -> list[Any]:
    """Values in the order of a sort."""
    found = list(values)
    present = sorted((v for v in found if v is not None), key=sort_key, reverse=descending)
    nulls = [None] * (len(found) - len(present))
    return nulls + present if nulls_first else present + nulls


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """COUNT, MIN or MAX of a column's values."""
    present = [value for value in values if value is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    return (min if function == "min" else max)(present, key=sort_key)
