"""What a predicate may say of rows of which only facts are known: a partition's value, a file's bounds.

A predicate's outcome for one row is true, false or null. Here it is evaluated to the *set* of outcomes that
rows with these facts can have; whatever is unknown widens the set. Rows can be skipped when true is not in
it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.predicates.ast import (
    Always,
    And,
    Column,
    Comparison,
    Computed,
    Contains,
    EndsWith,
    In,
    IsNull,
    Leaf,
    Not,
    Or,
    Predicate,
)
from drawstring.predicates.facts import ColumnFacts
from drawstring.predicates.functions import facts_of_call
from drawstring.predicates.literals import coerced, is_nan

Outcomes = frozenset[bool | None]
ANYTHING: Outcomes = frozenset({True, False, None})
_ONLY_NULL: Outcomes = frozenset({None})
_MANY_VALUES = 16


Facts = Callable[[Column], ColumnFacts | None]
Decide = Callable[[Facts], Outcomes]


def may_match(predicate: Predicate, facts: Facts) -> bool:
    """Whether some row with these facts may satisfy the predicate; True when in doubt."""
    return True in possible_outcomes(predicate, facts)


def must_match(predicate: Predicate, facts: Facts) -> bool:
    """Whether every row with these facts satisfies the predicate; False when in doubt."""
    return possible_outcomes(predicate, facts) == {True}


def facts_of_values(values: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> Facts:
    """Return facts for columns with known values, such as partition columns; others are unknown."""
    known = {name: ColumnFacts.of_value(values[name], types[name]) for name in values if name in types}
    return lambda column: known.get(column.path[0]) if len(column.path) == 1 else None


def possible_outcomes(predicate: Predicate, facts: Facts) -> Outcomes:
    """Return the outcomes that rows with these facts can have; never fewer than they do have."""
    return decider(predicate)(facts)


def decider(predicate: Predicate) -> Decide:
    """Return `possible_outcomes` of one predicate for many facts: what only depends on it is worked out once."""
    if isinstance(predicate, And):
        return _combined(predicate.parts, _and)
    if isinstance(predicate, Or):
        return _combined(predicate.parts, _or)
    if isinstance(predicate, Not):
        part = decider(predicate.part)
        return lambda facts: _NEGATED[part(facts)]
    if isinstance(predicate, Always):
        constant: Outcomes = frozenset({predicate.value})
        return lambda _: constant
    if isinstance(predicate, Computed):
        return _on_call(predicate)
    return _on_column(predicate)


def _on_call(predicate: Computed) -> Decide:
    """What a function makes of a column is looked at like a column."""
    call, test = predicate.call, _on_column(predicate.test)

    def decide(facts: Facts) -> Outcomes:
        known = facts(call.column)
        image = None if known is None else facts_of_call(call, known)
        return ANYTHING if image is None else test(lambda _: image)

    return decide


def _combined(
    parts: tuple[Predicate, ...], combine: Callable[[bool | None, bool | None], bool | None]
) -> Decide:
    first, *others = map(decider, parts)
    known: dict[tuple[Outcomes, Outcomes], Outcomes] = {}
    settled: Outcomes = frozenset({combine is _or})

    def decide(facts: Facts) -> Outcomes:
        outcomes = first(facts)
        for other in others:
            if outcomes == settled:
                break
            pair = (outcomes, other(facts))
            if pair not in known:
                known[pair] = frozenset(combine(left, right) for left, right in product(*pair))
            outcomes = known[pair]
        return outcomes

    return decide


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: bool | None, right: bool | None) -> bool | None:
    return _not(_and(_not(left), _not(right)))


def _not(outcome: bool | None) -> bool | None:
    return None if outcome is None else not outcome


_SETS: tuple[Outcomes, ...] = tuple(
    frozenset(outcome for outcome, is_in in zip((True, False, None), flags, strict=True) if is_in)
    for flags in product((True, False), repeat=3)
)
_NEGATED: dict[Outcomes, Outcomes] = {outcomes: frozenset(map(_not, outcomes)) for outcomes in _SETS}
_BY_ABILITY: dict[tuple[bool, bool, bool], Outcomes] = {
    (True in outcomes, False in outcomes, None in outcomes): outcomes for outcomes in _SETS
}


def _on_column(predicate: Leaf) -> Decide:
    column = predicate.column
    by_type: dict[int, tuple[pa.DataType, Callable[[ColumnFacts], Outcomes]]] = {}

    def decide(facts: Facts) -> Outcomes:
        known = facts(column)
        if known is None:
            return ANYTHING
        # Types are told apart by identity, which costs nothing; the entry keeps the type alive.
        found = by_type.get(id(known.type))
        if found is None:
            found = by_type[id(known.type)] = (known.type, _leaf(predicate, known.type))
        try:
            return found[1](known)
        except (TypeError, ArithmeticError):
            return ANYTHING

    return decide


def _leaf(predicate: Leaf, arrow: pa.DataType) -> Callable[[ColumnFacts], Outcomes]:
    if isinstance(predicate, IsNull):
        return _null_outcomes
    try:
        if isinstance(predicate, Comparison):
            return _comparison(predicate, coerced(predicate.literal.value, arrow))
        if isinstance(predicate, In):
            return _membership([coerced(value, arrow) for value in predicate.values])
        if isinstance(predicate, EndsWith):
            suffix = predicate.suffix
            return _of_single_value(lambda value: value.endswith(suffix))
        if isinstance(predicate, Contains):
            part = predicate.part
            return _of_single_value(lambda value: part in value)
        return _prefix(predicate.prefix)
    except (InvalidInput, TypeError, ArithmeticError):
        # A literal that does not compare with the bounds says nothing about the rows.
        return lambda _: ANYTHING


def _null_outcomes(known: ColumnFacts) -> Outcomes:
    if known.all_null:
        return frozenset({True})
    return frozenset({True, False}) if known.may_be_null else frozenset({False})


def _comparison(predicate: Comparison, literal: Any) -> Callable[[ColumnFacts], Outcomes]:
    op = predicate.op
    if literal is None:
        return _null_outcomes if op == "<=>" else lambda _: _ONLY_NULL
    if op == "<=>":
        equal = _ability("=", literal)
        return lambda known: frozenset(map(bool, _with_nulls(known, *equal(known))))
    positive = {"!=": "=", ">": "<=", ">=": "<"}.get(op)
    can_be = _ability(positive or op, literal)
    if positive is not None:
        return lambda known: _NEGATED[_with_nulls(known, *can_be(known))]
    return lambda known: _with_nulls(known, *can_be(known))


Ability = Callable[[ColumnFacts], tuple[bool, bool]]
"""Whether a value within the bounds can compare true, and whether it can compare false."""


def _ability(op: str, literal: Any) -> Ability:
    if is_nan(literal) or not orders_alike(literal):
        return lambda _: (True, True)
    compare = {"=": _can_equal, "<": _can_be_less}.get(op, _can_be_at_most)
    if isinstance(literal, float):
        return lambda known: compare(literal, *_bounds_for(literal, known))
    return lambda known: compare(literal, known.lower, known.upper)


def _can_equal(literal: Any, lower: Any, upper: Any) -> tuple[bool, bool]:
    outside = (lower is not None and literal < lower) or (upper is not None and literal > upper)
    only_it = lower is not None and upper is not None and lower == literal == upper
    return not outside, not only_it


def _can_be_less(literal: Any, lower: Any, upper: Any) -> tuple[bool, bool]:
    return lower is None or not lower >= literal, upper is None or not upper < literal


def _can_be_at_most(literal: Any, lower: Any, upper: Any) -> tuple[bool, bool]:
    return lower is None or not lower > literal, upper is None or not upper <= literal


def _bounds_for(literal: Any, known: ColumnFacts) -> tuple[Any, Any]:
    """The bounds as they compare with the literal: where it is a float, values become floats first.

    That rounds them, by one step at most, so the bounds are widened by one.
    """
    if not isinstance(literal, float) or pa.types.is_floating(known.type):
        return known.lower, known.upper
    return (
        None if known.lower is None else math.nextafter(float(known.lower), -math.inf),
        None if known.upper is None else math.nextafter(float(known.upper), math.inf),
    )


def orders_alike(literal: Any) -> bool:
    """Whether a text sorts alike by UTF-8 bytes, by which readers compare, and by UTF-16 units, as Java does.

    Bounds made by Java follow the second order. A text below the surrogates compares with any other text
    alike in both, so that bounds can be trusted; another one may not.
    """
    return not isinstance(literal, str) or all(character < "\ud800" for character in literal)


def _membership(values: list[Any]) -> Callable[[ColumnFacts], Outcomes]:
    present = [value for value in values if value is not None]
    if len(present) > _MANY_VALUES and _are_alike(present):
        equals = [_ability_of_many(sorted(present))]
    else:
        equals = [_ability("=", value) for value in present]

    def decide(known: ColumnFacts) -> Outcomes:
        abilities = [equal(known) for equal in equals]
        can_miss = all(able for _, able in abilities)
        outcomes = _with_nulls(known, any(able for able, _ in abilities), can_miss)
        if len(present) == len(values):
            return outcomes
        return frozenset(None if outcome is False else outcome for outcome in outcomes)

    return decide


def _are_alike(values: list[Any]) -> bool:
    """Whether the values sort among each other, and by the order of the bounds."""
    kind = type(values[0])
    return kind is not float and all(type(value) is kind and orders_alike(value) for value in values)


def _ability_of_many(ordered: list[Any]) -> Ability:
    """`_ability` of equality with one of many values, in a few steps instead of one for each."""

    def ability(known: ColumnFacts) -> tuple[bool, bool]:
        lower, upper = known.lower, known.upper
        first = 0 if lower is None else bisect_left(ordered, lower)
        last = len(ordered) if upper is None else bisect_right(ordered, upper)
        only_it = lower is not None and lower == upper and first < last
        return first < last, not only_it

    return ability


def _prefix(prefix: str) -> Callable[[ColumnFacts], Outcomes]:
    if not orders_alike(prefix):
        return lambda known: _with_nulls(known, True, True)

    def decide(known: ColumnFacts) -> Outcomes:
        lower, upper = known.lower, known.upper
        below = upper is not None and upper < prefix
        above = lower is not None and lower[: len(prefix)] > prefix
        both = lower is not None and upper is not None
        within = both and lower.startswith(prefix) and upper.startswith(prefix)
        return _with_nulls(known, not (below or above), not within)

    return decide


def _of_single_value(holds: Callable[[str], bool]) -> Callable[[ColumnFacts], Outcomes]:
    """Bounds tell nothing of a text's middle and end, unless they leave one value, such as a partition's."""

    def decide(known: ColumnFacts) -> Outcomes:
        if known.lower is None or not isinstance(known.lower, str) or known.lower != known.upper:
            return _with_nulls(known, True, True)
        fits = holds(known.lower)
        return _with_nulls(known, fits, not fits)

    return decide


def _with_nulls(known: ColumnFacts, can_be_true: bool, can_be_false: bool) -> Outcomes:
    if known.all_null:
        return _ONLY_NULL
    return _BY_ABILITY[can_be_true, can_be_false, known.may_be_null]
