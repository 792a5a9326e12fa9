"""The range of values that rows must have to satisfy a condition, where the condition says one plainly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.predicates.ast import Comparison, In, Predicate, conjuncts
from drawstring.predicates.literals import coerced

LEAST, GREATEST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class IntegerRange:
    """From `lower` to `upper`, both included; nothing where `lower` is the greater one."""

    lower: int = LEAST
    upper: int = GREATEST

    def within(self, other: IntegerRange) -> IntegerRange:
        """What lies in both."""
        return IntegerRange(max(self.lower, other.lower), min(self.upper, other.upper))


def integer_ranges(predicate: Predicate, types: Mapping[str, pa.DataType]) -> dict[str, IntegerRange]:
    """Return, by name, the ranges outside of which no value of an integer column satisfies the predicate.

    Only conditions that must all hold are looked at; what else the predicate says narrows the rows further.
    """
    found: dict[str, IntegerRange] = {}
    for part in conjuncts(predicate):
        if not isinstance(part, (Comparison, In)):
            continue
        name = ".".join(part.column.path)
        if name in types and pa.types.is_integer(types[name]):
            one = _range(part, types[name])
            found[name] = one.within(found.get(name, IntegerRange()))
    return {name: one for name, one in found.items() if one != IntegerRange()}


def _range(part: Comparison | In, arrow: pa.DataType) -> IntegerRange:
    values = part.values if isinstance(part, In) else (part.literal.value,)
    try:
        numbers = [coerced(value, arrow) for value in values if value is not None]
    except InvalidInput:
        return IntegerRange()
    if not numbers or any(type(number) is not int for number in numbers):
        return IntegerRange()
    return _bounded("=" if isinstance(part, In) else part.op, min(numbers), max(numbers))


def _bounded(op: str, lower: int, upper: int) -> IntegerRange:
    everything = IntegerRange()
    by_op = {
        "=": IntegerRange(lower, upper),
        "<=>": IntegerRange(lower, upper),
        "<": IntegerRange(upper=upper - 1),
        "<=": IntegerRange(upper=upper),
        ">": IntegerRange(lower=lower + 1),
        ">=": IntegerRange(lower=lower),
    }
    return by_op.get(op, everything).within(everything)
