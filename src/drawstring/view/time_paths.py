"""What partition paths of formatted times tell of the columns that they were made of."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from drawstring.config.table_config import TableConfig
from drawstring.errors import DrawstringError
from drawstring.predicates.ast import Always, And, Column, Comparison, Computed, In, Leaf, Not, Or, Predicate
from drawstring.predicates.facts import ColumnFacts
from drawstring.schema.time_partitions import TimePartition
from drawstring.view.partitions import partition_texts

_EPOCH = dt.datetime(1970, 1, 1)
_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")
_NULL = 1
"""The number that stands in for null when a path is made."""


def time_of(config: TableConfig) -> TimePartition | None:
    """How a table makes paths of times; None where it does not, or does not say how, or shows the path's text."""
    if config.drop_partition_columns or not any(field.is_time for field in config.partitioning):
        return None
    try:
        return TimePartition.of(config.time_settings)
    except DrawstringError:
        # Tables of custom generators that Hudi made do not keep the settings.
        return None


def facts_of_times(
    config: TableConfig, time: TimePartition, path: str, types: Mapping[str, pa.DataType]
) -> dict[Column, ColumnFacts]:
    """What a path tells of time columns: between which values they lie, and whether nulls lie there too.

    Of columns that are shown as texts it tells the numbers that they are, and the text of the path.
    """
    texts = partition_texts(config, path) or {}
    found = {}
    for field in config.partitioning:
        text, arrow = texts.get(field.name), types.get(field.name, pa.null())
        if text is None or not field.is_time:
            continue
        if pa.types.is_string(arrow):
            # Nulls lie in the path of a time that stands in for them.
            found[_as_path(field.name)] = ColumnFacts(pa.string(), text, text)
            column, arrow = _as_number(field.name), pa.int64()
        else:
            column = Column((field.name,))
        if (facts := _between(time.numbers(text), arrow)) is not None:
            found[column] = facts
    return found


def _between(numbers: tuple[int, int] | None, arrow: pa.DataType) -> ColumnFacts | None:
    if numbers is None:
        return None
    lower, upper = (_value(number, arrow) for number in numbers)
    if lower is None or upper is None:
        return None
    return ColumnFacts(arrow, lower, upper, may_be_null=numbers[0] <= _NULL <= numbers[1])


def _as_number(name: str) -> Column:
    """What a text column of times is as a number; no column of a table has such a path."""
    return Column((name, "", "number"))


def _as_path(name: str) -> Column:
    """The text that stands in the path for the column."""
    return Column((name, "", "path"))


@dataclass(frozen=True)
class TimeConditions:
    """Says of time columns that are `shown` as texts what conditions on them mean for their numbers and paths."""

    time: TimePartition
    shown: frozenset[str]

    def narrowed(self, predicate: Predicate) -> Predicate:
        """A condition that is true for the same rows."""
        if isinstance(predicate, (And, Or)):
            return replace(predicate, parts=tuple(map(self.narrowed, predicate.parts)))
        if isinstance(predicate, Not):
            return Not(self.narrowed(predicate.part))
        if isinstance(predicate, Always) or predicate.column.path[0] not in self.shown:
            return predicate
        implied = self._of_number(predicate) if self.time.unit is not None else self._of_path(predicate)
        return predicate if implied is None else And((implied, predicate))

    def _of_number(self, leaf: Leaf | Computed) -> Predicate | None:
        number = _as_number(leaf.column.path[0])
        if isinstance(leaf, Computed):
            is_number = leaf.call.function == "cast" and leaf.call.type in (pa.int64(), pa.float64())
            is_plain = isinstance(leaf.call.operand, Column)
            return replace(leaf.test, column=number) if is_number and is_plain else None
        values = _values(leaf)
        if values is None or not all(map(_NUMBER.fullmatch, values)):
            return None
        return In(number, tuple(map(int, values)))

    def _of_path(self, leaf: Leaf | Computed) -> Predicate | None:
        values = _values(leaf)
        if values is None:
            return None
        try:
            texts = self.time.texts(pa.array(values, pa.string()), leaf.column.path[0])
        except DrawstringError:
            return None
        return In(_as_path(leaf.column.path[0]), tuple(texts.to_pylist()))


def _values(leaf: Leaf | Computed) -> tuple[str, ...] | None:
    """The texts of which a row must have one; None where the condition names none."""
    named: tuple[Any, ...] = leaf.values if isinstance(leaf, In) else ()
    if isinstance(leaf, Comparison) and leaf.op == "=":
        named = (leaf.literal.value,)
    return tuple(named) if named and all(isinstance(value, str) for value in named) else None


def _value(number: int, arrow: pa.DataType) -> Any:
    """The value that has this number; None where there is none, or several have it."""
    try:
        if pa.types.is_integer(arrow):
            return number
        if pa.types.is_date32(arrow):
            return _EPOCH.date() + dt.timedelta(days=number)
        if pa.types.is_timestamp(arrow) and arrow.unit == "us":
            moment = _EPOCH + dt.timedelta(microseconds=number)
            return moment.replace(tzinfo=dt.timezone.utc) if arrow.tz else moment
    except OverflowError:
        return None
    return None
