"""A small expression tree: what scans filter by. Built by `col`, parsed from SQL text, or sent by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


class Composable:
    """Predicates compose with `&`, `|` and `~`."""

    def __and__(self, other: Predicate) -> And:
        return And((self, other))  # type: ignore[arg-type]

    def __or__(self, other: Predicate) -> Or:
        return Or((self, other))  # type: ignore[arg-type]

    def __invert__(self) -> Not:
        return Not(self)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Column:
    """A column by its path: `("a",)` or `("struct", "field")`."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """A Python value: None, bool, int, float, str, bytes, Decimal, date, datetime (aware = instant)."""

    value: Any


@dataclass(frozen=True)
class Comparison(Composable):
    """`op` is one of =, !=, <, <=, >, >=, <=> (null-safe equality)."""

    op: str
    column: Column
    literal: Literal


@dataclass(frozen=True)
class In(Composable):
    """Column IN (values); a null among the values never matches."""

    column: Column
    values: tuple[Any, ...]


@dataclass(frozen=True)
class IsNull(Composable):
    """Column IS NULL; IS NOT NULL is Not(IsNull)."""

    column: Column


@dataclass(frozen=True)
class StartsWith(Composable):
    """Column LIKE 'prefix%'."""

    column: Column
    prefix: str


@dataclass(frozen=True)
class EndsWith(Composable):
    """Column LIKE '%suffix'."""

    column: Column
    suffix: str


@dataclass(frozen=True)
class Contains(Composable):
    """Column LIKE '%part%'."""

    column: Column
    part: str


@dataclass(frozen=True)
class And(Composable):
    """Conjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or(Composable):
    """Disjunction."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not(Composable):
    """Negation, three-valued."""

    part: Predicate


@dataclass(frozen=True)
class Always(Composable):
    """A constant: TRUE or FALSE."""

    value: bool


Leaf = Comparison | In | IsNull | StartsWith | EndsWith | Contains
"""A condition on one column."""


@dataclass(frozen=True)
class Call:
    """A function of a column, or of what another function makes of one.

    `arguments` are the literals beside it, `place` how many of them come before; `type` is that of a cast, `field` the
    one that is extracted of a time.
    """

    function: str
    operand: Column | Call
    arguments: tuple[Any, ...] = ()
    place: int = 0
    type: pa.DataType | None = None
    field: str = ""

    @property
    def column(self) -> Column:
        """The column below all functions."""
        return self.operand if isinstance(self.operand, Column) else self.operand.column


@dataclass(frozen=True)
class Computed(Composable):
    """What `call` makes of its column satisfies `test`, which is a condition on that column; Spark sends them."""

    call: Call
    test: Leaf

    @property
    def column(self) -> Column:
        """The column."""
        return self.call.column


Predicate = Leaf | Computed | And | Or | Not | Always


def columns_of(predicate: Predicate) -> frozenset[Column]:
    """Return the columns that a predicate names."""
    if isinstance(predicate, (And, Or)):
        return frozenset().union(*(columns_of(part) for part in predicate.parts))
    if isinstance(predicate, Not):
        return columns_of(predicate.part)
    return frozenset() if isinstance(predicate, Always) else frozenset({predicate.column})


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the parts that must all hold."""
    if not isinstance(predicate, And):
        return (predicate,)
    return tuple(part for inner in predicate.parts for part in conjuncts(inner))
