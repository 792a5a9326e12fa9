"""Scans, refined by copy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.model.read_task import ReadTask
from drawstring.planning.aggregates import BY_AGGREGATE, MetadataAggregation
from drawstring.planning.row_aggregates import aggregate_rows, sorted_rows
from drawstring.planning.scan_plan import ScanPlan, ScanSource, SkipReport
from drawstring.planning.scan_planner import ScanPlanner, requested_schema
from drawstring.planning.scan_request import COUNT, Aggregate, Aggregation, ScanRequest, SortKey
from drawstring.predicates.arrow_filter import column_type, exact_column, with_exact_names
from drawstring.predicates.ast import Column, Predicate
from drawstring.predicates.parse import parse

__all__ = ["Scan", "ScanPlan", "ScanSource", "SkipReport"]

_AGGREGATE = re.compile(r"\s*(count|min|max)\s*\(\s*(\*|[^()]+?)\s*\)\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Scan:
    """A scan of a snapshot or of a range of commits; refining returns a new scan.

    Example:
        >>> snapshot.scan().select("id", "amount").where("amount > 3").limit(10).to_arrow()
    """

    source: ScanSource
    request: ScanRequest = field(default_factory=ScanRequest)

    def select(self, *columns: str) -> Scan:
        """Read only these columns, in this order. Raises `InvalidInput` for a column that is not there."""
        _check_names(columns)
        known = {name.lower(): name for name in reversed(self.source.schema.names)}
        exact = set(self.source.schema.names)
        missing = [name for name in columns if name not in exact and name.lower() not in known]
        if missing:
            raise InvalidInput(
                f"No column {', '.join(map(repr, missing))} in the table; its columns are "
                f"{', '.join(self.source.schema.names)}.",
                condition="UNKNOWN_COLUMN",
                columns=missing,
            )
        return self._asking(columns=tuple(n if n in exact else known[n.lower()] for n in columns))

    def where(self, condition: str | Predicate) -> Scan:
        """Keep only rows for which the condition is true: SQL text such as `"a > 3"`, or built by `col`."""
        if not isinstance(condition, (str, Predicate)):
            raise InvalidInput(
                f'The condition is {condition!r} ({type(condition).__name__}); expected SQL text such as "a > 3", or '
                'a comparison such as col("a") > 3.',
                condition="INVALID_CONDITION",
                found=repr(condition),
            )
        predicate = parse(condition) if isinstance(condition, str) else condition
        predicate = with_exact_names(predicate, self.source.schema)
        return self._asking(predicates=(*self.request.predicates, predicate))

    def limit(self, rows: int) -> Scan:
        """Read at most so many rows; without an order, which ones is not specified."""
        _check_count(rows, "limit")
        known = self.request.limit
        return self._asking(limit=rows if known is None else min(rows, known))

    def offset(self, rows: int) -> Scan:
        """Leave out the first rows; without an order, which ones is not specified."""
        _check_count(rows, "offset")
        return self._asking(offset=rows)

    def order_by(
        self,
        *columns: str,
        descending: bool = False,
        nulls_first: bool | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Return rows sorted by columns; with a limit, files that cannot hold one of the first are not read.

        As in Spark, nulls come first, or last where `descending`, unless `nulls_first` says otherwise, and NaN is
        greater than every number. `"struct.field"` names a nested column.
        """
        first = not descending if nulls_first is None else nulls_first
        keys = tuple(SortKey(self._column(name), descending, first) for name in columns)
        scan = self._asking(order=(*self.request.order, *keys))
        return scan if limit is None else scan.limit(limit)

    @property
    def requested_schema(self) -> pa.Schema:
        """The schema of the rows that the scan returns."""
        return requested_schema(self.source.schema, self.request)

    def plan(self) -> ScanPlan:
        """Decide what is read; nothing but metadata is touched."""
        return ScanPlanner(self.source, self.request).plan()

    def count(self) -> int:
        """The number of rows; files of which metadata tells it are not read."""
        return int(self.aggregate("count(*)").column(0)[0].as_py())

    def aggregate(self, *functions: str, by: Sequence[str] = ()) -> pa.Table:
        """COUNT, MIN and MAX over the rows, by groups if asked; files of which metadata proves them are not read.

        Args:
            functions: such as `"count(*)"`, `"count(amount)"`, `"max(amount)"`; each names a column of the result.
            by: columns to group by; they come first in the result.
        """
        request = self._aggregating(functions, by)
        aggregation = request.aggregation
        assert aggregation is not None
        plan, answer = ScanPlanner(self.source, request).aggregate()
        unproved = [plan.tasks[position] for position in answer.unproved]
        groups = dict(answer.groups)
        combine = MetadataAggregation(aggregation, {}).combined
        for group, values in self._aggregate_rows(unproved, aggregation).items():
            groups[group] = combine(groups[group], values) if group in groups else values
        return self._table(functions, aggregation, groups)

    def plan_aggregate(self, *functions: str, by: Sequence[str] = ()) -> ScanPlan:
        """What `aggregate` would read: the plan without the slices for which metadata proves all."""
        plan, answer = ScanPlanner(self.source, self._aggregating(functions, by)).aggregate()
        proved = [task.slice for n, task in enumerate(plan.tasks) if n not in answer.unproved]
        skipped = replace(
            plan.skipped, left_out=(*plan.skipped.left_out, *((s, BY_AGGREGATE) for s in proved))
        )
        reasons = sorted(set(answer.unproved.values()))
        unproved = f"{len(answer.unproved)} of {len(plan.tasks)} slices"
        notes = [f"{BY_AGGREGATE}: metadata does not answer for {unproved}: {reasons[0]}"] if reasons else []
        rest = tuple(plan.tasks[position] for position in answer.unproved)
        return replace(plan, tasks=rest, skipped=skipped, notes=(*plan.notes, *notes))

    def _aggregating(self, functions: Sequence[str], by: Sequence[str]) -> ScanRequest:
        self._refuse_aggregates_of_some_rows()
        group_by = self.select(*by).request.columns or ()
        aggregates = tuple(self._aggregate(text) for text in functions)
        return replace(self.request, aggregation=Aggregation(aggregates, group_by))

    def _aggregate_rows(self, tasks: Sequence[ReadTask], aggregation: Aggregation) -> dict[Any, Any]:
        if not tasks:
            return {}
        named = [each.column.path[0] for each in aggregation.aggregates if each.column is not None]
        columns = tuple(dict.fromkeys((*aggregation.group_by, *named))) or self.source.schema.names[:1]
        reader = self._asking(columns=tuple(columns))
        batches = chain.from_iterable(map(reader._read, tasks))
        return aggregate_rows(pa.Table.from_batches(batches, reader.requested_schema), aggregation)

    def _table(self, names: Sequence[str], aggregation: Aggregation, groups: dict[Any, Any]) -> pa.Table:
        schema = self.source.schema
        fields = [schema.field(name) for name in aggregation.group_by]
        for name, each in zip(names, aggregation.aggregates, strict=True):
            is_count = each.function == COUNT or each.column is None
            fields.append(pa.field(name, pa.int64() if is_count else column_type(each.column, schema)))  # type: ignore[arg-type]
        rows = [(*group, *values) for group, values in groups.items()]
        arrays = [pa.array([row[n] for row in rows], each.type) for n, each in enumerate(fields)]
        return pa.Table.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in fields]))

    def _aggregate(self, text: str) -> Aggregate:
        found = _AGGREGATE.fullmatch(text) if isinstance(text, str) else None
        if found is None or (found.group(2) == "*" and found.group(1).lower() != COUNT):
            raise InvalidInput(
                f"The aggregate is {text!r}; expected count(*), count(COLUMN), min(COLUMN) or max(COLUMN).",
                condition="INVALID_AGGREGATE",
                found=repr(text),
            )
        name = found.group(2)
        return Aggregate(found.group(1).lower(), None if name == "*" else self._column(name))

    def _refuse_aggregates_of_some_rows(self) -> None:
        if self.request.limit is not None or self.request.offset:
            raise InvalidInput(
                "Aggregates are taken over all rows of a scan, and this one has a limit or an offset. Leave them "
                "out, or aggregate the rows of to_arrow().",
                condition="AGGREGATE_OF_LIMITED_ROWS",
            )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read, one batch at a time; in order, everything is read before the first batch comes."""
        if self.request.order:
            return iter(self._sorted().to_batches())
        return _cut(chain.from_iterable(map(self._read, self.plan().tasks)), self.request)

    def to_arrow(self) -> pa.Table:
        """Read everything into one table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.requested_schema)

    def _sorted(self) -> pa.Table:
        wanted = self.requested_schema.names
        keys = [key.column.path[0] for key in self.request.order]
        reader = self._asking(columns=tuple(dict.fromkeys((*wanted, *keys))))
        batches = chain.from_iterable(map(reader._read, self.plan().tasks))
        rows = sorted_rows(pa.Table.from_batches(batches, reader.requested_schema), self.request.order)
        return rows.select(wanted).slice(self.request.offset, self.request.limit)

    def _read(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.source.read(
            task,
            storage=self.source.state.storage,
            table_schema=self.source.schema,
            columns=self.requested_schema.names,
            predicate=self.request.predicate,
        )

    def _column(self, name: str) -> Column:
        _check_names([name])
        return exact_column(Column(tuple(name.split("."))), self.source.schema)

    def _asking(self, **changes: Any) -> Scan:
        return replace(self, request=replace(self.request, **changes))


def _cut(batches: Iterator[pa.RecordBatch], request: ScanRequest) -> Iterator[pa.RecordBatch]:
    """The rows after the offset, up to the limit."""
    to_skip, remaining = request.offset, request.limit
    for batch in batches:
        kept = batch.slice(min(to_skip, batch.num_rows))
        to_skip -= batch.num_rows - kept.num_rows
        if remaining is not None:
            kept = kept.slice(0, remaining)
            remaining -= kept.num_rows
        if kept.num_rows:
            yield kept
        if remaining == 0:
            return


def _check_count(rows: object, what: str) -> None:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
        raise InvalidInput(
            f"The {what} is {rows!r}; expected a whole number, 0 or more.",
            condition=f"INVALID_{what.upper()}",
            found=rows,
        )


def _check_names(columns: Sequence[object]) -> None:
    other = next((name for name in columns if not isinstance(name, str)), None)
    if other is not None or None in columns:
        raise InvalidInput(
            f"Selected is {other!r} ({type(other).__name__}); expected names of columns, each an argument of its own: "
            'select("a", "b").',
            condition="UNKNOWN_COLUMN",
            columns=[repr(other)],
        )
