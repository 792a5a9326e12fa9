"""A small expression tree: what scans filter by. Built by `col`, parsed from SQL text, or sent by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """A column by its path: `("a",)` or `("struct", "field")`."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A Python value: None, bool, int, float, str, bytes, Decimal, date, datetime (aware = instant, naive = NTZ)."""

    value: Any


@dataclass(frozen=True)
class Comparison:
    """`op` is one of =, !=, <, <=, >, >=, <=> (null-safe equality)."""

    op: str
    column: Column
    literal: Literal


@dataclass(frozen=True)
class In:
    """Column IN (values); a null among the values never matches."""

    column: Column
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IsNull:
    """Column IS NULL; IS NOT NULL is Not(IsNull)."""

    column: Column


@dataclass(frozen=True)
class StartsWith:
    """Column LIKE 'prefix%'."""

    column: Column
    prefix: str


@dataclass(frozen=True)
class And:
    """Conjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    """Disjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not:
    """Negation, three-valued."""

    part: Predicate


@dataclass(frozen=True)
class Always:
    """A constant: TRUE or FALSE."""

    value: bool


Predicate = Comparison | In | IsNull | StartsWith | And | Or | Not | Always
