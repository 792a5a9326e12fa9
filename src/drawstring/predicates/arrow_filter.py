"""Predicates executed by Arrow as Spark means them: three-valued, NaN equal to itself and the greatest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput
from drawstring.predicates.ast import (
    Always,
    And,
    Column,
    Comparison,
    Computed,
    Contains,
    EndsWith,
    IsNull,
    Leaf,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from drawstring.predicates.literals import coerced, is_nan

_COMPARE: dict[str, Callable[..., Any]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


_BEYOND_DECIMALS = Decimal(10**38)


def filter_batch(batch: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    """Keep the rows that satisfy the predicate."""
    return batch.filter(selection(batch, predicate))


def selection(batch: pa.RecordBatch | pa.Table, predicate: Predicate) -> pa.Array:
    """Return the predicate's outcome for each row: true, false or null."""

    def values(column: Column) -> Any:
        array = batch.column(_resolved(column, batch.schema)[0].name)
        for name in column.path[1:]:
            array = pc.struct_field(array, [_index(array.type, name)])
        return array

    outcome = _Builder(batch.schema, values).build(predicate)
    if isinstance(outcome, pa.Scalar):
        return pa.array([outcome.as_py()] * batch.num_rows, pa.bool_())
    return outcome


def to_expression(predicate: Predicate, schema: pa.Schema) -> pc.Expression:
    """Return the predicate as an Arrow expression over data of `schema`."""

    def values(column: Column) -> pc.Expression:
        return pc.field(*(field.name for field in _resolved(column, schema)))

    return _Builder(schema, values, constant=pc.scalar).build(predicate)


def column_type(column: Column, schema: pa.Schema) -> pa.DataType:
    """Return the type of a column; raises `InvalidInput` when the schema lacks it."""
    return _resolved(column, schema)[-1].type


def with_exact_names(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return the predicate with its columns spelled as in the schema; `InvalidInput` for unknown ones."""
    if isinstance(predicate, And | Or):
        parts = tuple(with_exact_names(part, schema) for part in predicate.parts)
        return replace(predicate, parts=parts)
    if isinstance(predicate, Not):
        return Not(with_exact_names(predicate.part, schema))
    if isinstance(predicate, Always | Computed):
        return predicate
    return replace(predicate, column=exact_column(predicate.column, schema))


def exact_column(column: Column, schema: pa.Schema) -> Column:
    """Return the column spelled as in the schema; `InvalidInput` for an unknown one."""
    return Column(tuple(field.name for field in _resolved(column, schema)))


def _resolved(column: Column, schema: pa.Schema) -> list[pa.Field]:
    fields: list[pa.Field] = []
    available = list(schema)
    for name in column.path:
        field = _named(available, name)
        if field is None:
            raise InvalidInput(
                f"Column {'.'.join(column.path)} is not in the table. "
                f"Existing columns: {', '.join(schema.names)}.",
                condition="UNKNOWN_COLUMN",
                column=".".join(column.path),
            )
        fields.append(field)
        available = list(field.type) if pa.types.is_struct(field.type) else []
    return fields


def _named(fields: list[pa.Field], name: str) -> pa.Field | None:
    exact = [field for field in fields if field.name == name]
    alike = exact or [field for field in fields if field.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _index(struct: pa.DataType, name: str) -> int:
    fields = list(struct)
    found = _named(fields, name)
    return next(i for i, field in enumerate(fields) if field is found)


class _Builder:
    """Builds an outcome from column values, arrays or expressions: Arrow's functions take either."""

    def __init__(
        self,
        schema: pa.Schema,
        values: Callable[[Column], Any],
        *,
        constant: Callable[[pa.Scalar], Any] = lambda scalar: scalar,
    ) -> None:
        self._schema = schema
        self._values = values
        self._constant = constant

    def build(self, predicate: Predicate) -> Any:
        outcome = self._build(predicate)
        return self._constant(outcome) if isinstance(outcome, pa.Scalar) else outcome

    def _build(self, predicate: Predicate) -> Any:
        if isinstance(predicate, And):
            return reduce(pc.and_kleene, map(self.build, predicate.parts))
        if isinstance(predicate, Or):
            return reduce(pc.or_kleene, map(self.build, predicate.parts))
        if isinstance(predicate, Not):
            return pc.invert(self.build(predicate.part))
        if isinstance(predicate, Always):
            return pa.scalar(predicate.value)
        if isinstance(predicate, Computed):
            raise InvalidInput(
                f"Rows are not filtered by functions such as {predicate.call.function} here; Spark does that itself.",
                condition="UNSUPPORTED_CONDITION",
            )
        return self._leaf(predicate)

    def _leaf(self, predicate: Leaf) -> Any:
        arrow = column_type(predicate.column, self._schema)
        values = self._values(predicate.column)
        if isinstance(predicate, IsNull):
            return pc.is_null(values)
        if isinstance(predicate, StartsWith):
            return pc.starts_with(values, predicate.prefix)
        if isinstance(predicate, EndsWith):
            return pc.ends_with(values, predicate.suffix)
        if isinstance(predicate, Contains):
            return pc.match_substring(values, predicate.part)
        if isinstance(predicate, Comparison):
            return _comparison(values, arrow, predicate.op, predicate.literal.value)
        return _membership(values, arrow, predicate.values)


def _comparison(values: Any, arrow: pa.DataType, op: str, literal: Any) -> Any:
    value = coerced(literal, arrow)
    if op == "<=>":
        if value is None:
            return pc.is_null(values)
        return pc.coalesce(_compared(values, arrow, "=", value), pa.scalar(False))
    if value is None:
        return pa.scalar(None, pa.bool_())
    return _compared(values, arrow, op, value)


def _compared(values: Any, arrow: pa.DataType, op: str, value: Any) -> Any:
    if pa.types.is_floating(arrow):
        return _compared_floats(values.cast(pa.float64()), op, float(value))
    if pa.types.is_decimal(arrow) or (pa.types.is_integer(arrow) and not isinstance(value, int)):
        return _compared_decimals(values, arrow, op, value)
    if pa.types.is_integer(arrow) and not -(2**63) <= value < 2**63:
        return _compared_decimals(values, arrow, op, Decimal(value))
    return _COMPARE[op](values, _scalar(value, arrow))


def _scalar(value: Any, arrow: pa.DataType) -> pa.Scalar:
    return pa.scalar(value, pa.int64()) if pa.types.is_integer(arrow) else pa.scalar(value, arrow)


def _compared_floats(values: Any, op: str, value: float) -> Any:
    not_a_number = pc.is_nan(values)
    if not is_nan(value):
        compared = _COMPARE[op](values, pa.scalar(value))
        return pc.or_kleene(compared, not_a_number) if op in (">", ">=") else compared
    if op in ("=", ">="):
        return not_a_number
    if op in ("!=", "<"):
        return pc.invert(not_a_number)
    # Every value is <= NaN and none is > NaN; the combination keeps nulls.
    combine = pc.or_kleene if op == "<=" else pc.and_kleene
    return combine(not_a_number, pc.invert(not_a_number))


def _compared_decimals(values: Any, arrow: pa.DataType, op: str, value: Any) -> Any:
    if isinstance(value, float):
        # Large whole numbers round, as they do in Spark.
        return _compared_floats(values.cast(pa.float64(), safe=False), op, value)
    # Columns have 38 digits at most, so no value reaches the limit.
    number = min(max(Decimal(value), -_BEYOND_DECIMALS), _BEYOND_DECIMALS)
    scale = max(0, -int(number.as_tuple().exponent), arrow.scale if pa.types.is_decimal(arrow) else 0)
    wide = pa.decimal256(76, scale)
    return _COMPARE[op](values.cast(wide), pa.scalar(number, wide))


def _membership(values: Any, arrow: pa.DataType, literals: tuple[Any, ...]) -> Any:
    found = [coerced(literal, arrow) for literal in literals]
    present = [value for value in found if value is not None]
    if not present:
        return pa.scalar(None, pa.bool_())
    matches = _matches_any(values, arrow, present)
    if len(present) < len(found):
        # Neither equal nor different: a null in the list leaves misses undecided.
        return pc.if_else(matches, pa.scalar(True), pa.scalar(None, pa.bool_()))
    return matches


def _matches_any(values: Any, arrow: pa.DataType, present: list[Any]) -> Any:
    simple = pa.types.is_string(arrow) or pa.types.is_date(arrow) or pa.types.is_integer(arrow)
    if not simple or not all(isinstance(value, (str, int)) or pa.types.is_date(arrow) for value in present):
        return reduce(pc.or_kleene, (_compared(values, arrow, "=", value) for value in present))
    if pa.types.is_integer(arrow):
        bits = arrow.bit_width
        present = [value for value in present if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)]
    matches = pc.is_in(values, value_set=pa.array(present, arrow))
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), matches)
