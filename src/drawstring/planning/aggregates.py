"""COUNT, MIN and MAX from metadata, slice by slice; what cannot be proved is left to whoever reads the rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from drawstring.planning.scan_request import COUNT, MIN, Aggregate, Aggregation
from drawstring.planning.slice_statistics import SliceFacts
from drawstring.predicates.ast import Column

BY_AGGREGATE = "aggregate"
"""The reason of slices that are not read because metadata proves what they contribute."""

Group = tuple[Any, ...]
Values = list[Any]


@dataclass(frozen=True)
class Declined:
    """Why a push-down does not answer."""

    reason: str


@dataclass(frozen=True)
class PartialAnswer:
    """The aggregates over the slices that metadata speaks for, by group, and the positions of the others."""

    groups: Mapping[Group, Values]
    unproved: Mapping[int, str]
    leaves_out_rows: bool = False
    """Whether a filter leaves out some rows of an unproved slice."""


@dataclass(frozen=True)
class MetadataAggregation:
    """Answers one aggregation over slices. `types` are those of its columns, by dotted name."""

    aggregation: Aggregation
    types: Mapping[str, pa.DataType]

    def answer(self, slices: Sequence[SliceFacts], matches: Sequence[bool]) -> PartialAnswer:
        """Aggregate over the slices that are proved; `matches` says of which every row is to be counted."""
        proved: dict[Group, list[Values]] = {} if self.aggregation.group_by else {(): [self.nothing]}
        unproved: dict[int, str] = {}
        for position, (each, all_match) in enumerate(zip(slices, matches, strict=True)):
            found = self._of_slice(each) if all_match else Declined("a filter does not decide whole files")
            if isinstance(found, Declined):
                unproved[position] = f"{found.reason}: {each.task.slice.group.file_id}"
            elif found is not None:
                group, values = found
                proved.setdefault(group, []).append(values)
        groups = {group: self.combined(*values) for group, values in proved.items()}
        return PartialAnswer(groups, unproved, not all(matches))

    @property
    def nothing(self) -> Values:
        """The aggregates over no rows."""
        return [0 if each.function == COUNT else None for each in self.aggregation.aggregates]

    def combined(self, *parts: Values) -> Values:
        """The aggregates over the rows of all parts."""
        columns = zip(self.aggregation.aggregates, zip(*parts, strict=True), strict=True)
        return [_combined(aggregate, values) for aggregate, values in columns]

    def _of_slice(self, each: SliceFacts) -> tuple[Group, Values] | Declined | None:
        if each.rows is None:
            return Declined(
                "logs have to be merged" if each.task.slice.log_files else "the number of rows is unknown"
            )
        if each.rows == 0:
            return None
        values: Values = []
        for aggregate in self.aggregation.aggregates:
            found = self._value(aggregate, each, each.rows)
            if isinstance(found, Declined):
                return found
            values.append(found)
        known = each.task.partition_values
        missing = [name for name in self.aggregation.group_by if name not in known]
        if missing:
            return Declined(f"the partition path does not tell {missing[0]}")
        return tuple(known[name] for name in self.aggregation.group_by), values

    def _value(self, aggregate: Aggregate, each: SliceFacts, rows: int) -> Any:
        column = aggregate.column
        if column is None:
            return rows
        name = ".".join(column.path)
        facts = each.column(column, self.types[name])
        if facts is None:
            return Declined(f"no statistics of {name}")
        if aggregate.function == COUNT:
            return (
                Declined(f"the nulls of {name} are not counted")
                if facts.nulls is None
                else rows - facts.nulls
            )
        if facts.all_null:
            return None
        bound = facts.lower if aggregate.function == MIN else facts.upper
        if bound is None or not facts.is_exact:
            return Declined(f"the bounds of {name} are not exact")
        return bound


def columns_of_aggregation(aggregation: Aggregation) -> tuple[Column, ...]:
    """The columns that are aggregated."""
    return tuple({each.column: None for each in aggregation.aggregates if each.column is not None})


def _combined(aggregate: Aggregate, values: Iterable[Any]) -> Any:
    if aggregate.function == COUNT:
        return sum(values)
    known = [value for value in values if value is not None]
    chosen = min if aggregate.function == MIN else max
    if any(isinstance(value, float) for value in known):
        return chosen(known, key=_nan_last)
    return chosen(known, default=None)


def _nan_last(value: Any) -> tuple[bool, Any]:
    """NaN is greater than every number, as Spark orders them; Python's own comparisons with it are all false."""
    is_nan = value != value
    return is_nan, 0.0 if is_nan else value
