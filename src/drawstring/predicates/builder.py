"""Predicates in Python syntax: `(col("day") == "2026-08-22") & col("amount").is_not_null()`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drawstring.predicates.ast import (
    Column,
    Comparison,
    Contains,
    EndsWith,
    In,
    IsNull,
    Literal,
    Not,
    StartsWith,
)


class ColumnExpression:
    """A column to compare; comparisons give predicates, which compose with `&`, `|` and `~`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *path: str) -> None:
        self._column = Column(path)

    def __eq__(self, other: object) -> Comparison:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Comparison:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Comparison:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Comparison:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Comparison:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Comparison:
        return self._compare(">=", other)

    def __repr__(self) -> str:
        return f"col({', '.join(map(repr, self._column.path))})"

    def equals_null_safe(self, other: Any) -> Comparison:
        """Equality for which null equals null."""
        return self._compare("<=>", other)

    def is_in(self, values: Iterable[Any]) -> In:
        """Whether the column has one of the values."""
        return In(self._column, tuple(values))

    def is_null(self) -> IsNull:
        """Whether the column is null."""
        return IsNull(self._column)

    def is_not_null(self) -> Not:
        """Whether the column is not null."""
        return Not(IsNull(self._column))

    def starts_with(self, prefix: str) -> StartsWith:
        """Whether the text begins with `prefix`."""
        return StartsWith(self._column, prefix)

    def ends_with(self, suffix: str) -> EndsWith:
        """Whether the text ends with `suffix`."""
        return EndsWith(self._column, suffix)

    def contains(self, part: str) -> Contains:
        """Whether the text holds `part` anywhere."""
        return Contains(self._column, part)

    def _compare(self, op: str, value: Any) -> Comparison:
        return Comparison(op, self._column, Literal(value))


def col(*path: str) -> ColumnExpression:
    """Name a column: `col("a")`, or `col("struct", "field")` for a nested one."""
    return ColumnExpression(*path)
