"""What a scan is asked for, as one value: from Spark through the wire, or from Python by refining a scan."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.predicates.ast import And, Column, Predicate

COUNT, MIN, MAX = "count", "min", "max"


@dataclass(frozen=True)
class SortKey:
    """One column of an ORDER BY."""

    column: Column
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Aggregate:
    """COUNT, MIN or MAX of a column; COUNT of no column counts rows."""

    function: str
    column: Column | None = None

    @property
    def name(self) -> str:
        """How results call it: `count`, `min_price`."""
        return self.function if self.column is None else "_".join((self.function, *self.column.path))


@dataclass(frozen=True)
class Aggregation:
    """Aggregates over all rows, or over the rows of each combination of values of some columns."""

    aggregates: tuple[Aggregate, ...]
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScanRequest:
    """All that a scan may be asked for.

    - `columns`: None for all.
    - `predicates` must all be true for a row; `runtime_filters` too, but they became known while the query ran,
      and whoever asked applies them again.
    - `limit` rows are wanted after the first `offset`, in the `order` if there is one.
    - `hidden_columns`: what is asked of slices beside their rows; `grouped`: by what each keeps rows together too.
    """

    columns: tuple[str, ...] | None = None
    predicates: tuple[Predicate, ...] = ()
    limit: int | None = None
    offset: int = 0
    order: tuple[SortKey, ...] = ()
    aggregation: Aggregation | None = None
    runtime_filters: tuple[Predicate, ...] = ()
    hidden_columns: tuple[str, ...] = ()
    grouped: bool = False

    @property
    def predicate(self) -> Predicate | None:
        """The predicates as one."""
        return conjunction(self.predicates)

    @property
    def rows_needed(self) -> int | None:
        """How many rows must be among those that are read, at least; None for all."""
        return None if self.limit is None else self.limit + self.offset


def conjunction(predicates: tuple[Predicate, ...]) -> Predicate | None:
    """One predicate that is true where all are; None for none."""
    return And(predicates) if len(predicates) > 1 else next(iter(predicates), None)
