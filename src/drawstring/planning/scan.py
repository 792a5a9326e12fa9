"""Scans, refined by copy, and the plans they make."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.model.file_group import FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.planning.pruning import FileSkipping, Pruned
from drawstring.planning.table_state import TableState
from drawstring.predicates.arrow_filter import with_exact_names
from drawstring.predicates.ast import And, Predicate
from drawstring.predicates.evaluate import Facts, decider, facts_of_values
from drawstring.predicates.parse import parse
from drawstring.view.partitions import partition_values

if TYPE_CHECKING:
    from drawstring.planning.snapshot import ReadFunction


BY_PARTITION = "partition"
"""The reason of slices whose partition cannot hold a matching row."""


class ScanSource(Protocol):
    """What a scan reads from: a snapshot, or a range of commits."""

    @property
    def state(self) -> TableState:
        """The pinned table."""
        ...

    @property
    def read(self) -> ReadFunction:
        """Reads one task."""
        ...

    @property
    def reads_newest(self) -> bool:
        """Whether the newest state is read, logs merged."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        ...

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        ...

    def partitions(self) -> Iterable[str]:
        """Partitions that may hold rows."""
        ...

    def slices(self, partition: str) -> Iterable[FileSlice]:
        """Slices to read of one partition."""
        ...

    def tasks(self, partition: str) -> Sequence[ReadTask]:
        """The tasks that read the slices of one partition."""
        ...


@dataclass(frozen=True)
class SkipReport:
    """What a plan leaves out: each slice with the reason."""

    partitions: int = 0
    partitions_skipped: int = 0
    left_out: tuple[tuple[FileSlice, str], ...] = ()

    @property
    def slices_skipped(self) -> int:
        """Number of slices that are not read."""
        return len(self.left_out)

    @property
    def bytes_skipped(self) -> int:
        """Bytes of their files."""
        return sum(found.size for found, _ in self.left_out)

    @property
    def reasons(self) -> dict[str, int]:
        """Number of slices for each reason."""
        return Counter(reason for _, reason in self.left_out)


@dataclass(frozen=True)
class ScanPlan:
    """What a scan reads: tasks as plain values, in no particular order."""

    tasks: tuple[ReadTask, ...]
    schema: pa.Schema
    snapshot_id: str
    skipped: SkipReport = field(default_factory=SkipReport)

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the files that are read."""
        return sum(task.slice.size for task in self.tasks)

    @property
    def row_count(self) -> int | None:
        """Rows of the tasks when all are known exactly, before any filter; else None."""
        counts = [task.row_count for task in self.tasks]
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(frozen=True)
class Scan:
    """A scan of a snapshot or of a range of commits; refining returns a new scan.

    Example:
        >>> snapshot.scan().select("id", "amount").where("amount > 3").limit(10).to_arrow()
    """

    source: ScanSource
    columns: tuple[str, ...] | None = None
    predicate: Predicate | None = None
    row_limit: int | None = None

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
        return replace(self, columns=tuple(n if n in exact else known[n.lower()] for n in columns))

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
        parts = predicate if self.predicate is None else And((self.predicate, predicate))
        return replace(self, predicate=parts)

    def limit(self, rows: int) -> Scan:
        """Read at most so many rows; which ones is not specified."""
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
            raise InvalidInput(
                f"The limit is {rows!r}; expected a whole number, 0 or more.",
                condition="INVALID_LIMIT",
                found=rows,
            )
        return replace(self, row_limit=rows if self.row_limit is None else min(rows, self.row_limit))

    @property
    def requested_schema(self) -> pa.Schema:
        """The schema of the rows that the scan returns."""
        schema = self.source.schema
        if self.columns is None:
            return schema
        return pa.schema([schema.field(name) for name in self.columns])

    def plan(self) -> ScanPlan:
        """Decide what is read; nothing but metadata is touched."""
        with _collector_paused():
            return self._plan()

    def _plan(self) -> ScanPlan:
        partitions = list(self.source.partitions())
        kept = set(self._matching(partitions))
        tasks = [
            task for partition in partitions if partition in kept for task in self.source.tasks(partition)
        ]
        outside = [found for p in partitions if p not in kept for found in self.source.slices(p)]
        judged = list(zip(tasks, self._prune(tasks).reasons, strict=True))
        left_out = [(found, BY_PARTITION) for found in outside]
        left_out += [(task.slice, reason) for task, reason in judged if reason is not None]
        return ScanPlan(
            tasks=tuple(task for task, reason in judged if reason is None),
            schema=self.requested_schema,
            snapshot_id=self.source.snapshot_id,
            skipped=SkipReport(
                partitions=len(partitions),
                partitions_skipped=len(partitions) - len(kept),
                left_out=tuple(left_out),
            ),
        )

    def _matching(self, partitions: Iterable[str]) -> Iterable[str]:
        """The partitions whose path does not rule the condition out."""
        config = self.source.state.config
        if self.predicate is None or not config.partitioning:
            return partitions
        decide, facts = decider(self.predicate), self._partition_facts()
        return [path for path in partitions if True in decide(facts(path))]

    def _partition_facts(self) -> Callable[[str], Facts]:
        config = self.source.state.config
        types = {field.name: field.type for field in self.source.schema}
        return cache(lambda path: facts_of_values(partition_values(config, path, types), types))

    def _prune(self, tasks: Sequence[ReadTask]) -> Pruned:
        """Find the tasks whose files cannot hold a matching row."""
        state = self.source.state
        if self.predicate is None or not state.data_skipping or any(task.mappings for task in tasks):
            # With schema-on-read, statistics go by names that columns had when the files were written.
            return Pruned((None,) * len(tasks))
        skipping = FileSkipping(
            storage=state.storage,
            schema=self.source.schema,
            column_stats=state.column_stats,
            partition_facts=self._partition_facts(),
            reads_newest=self.source.reads_newest,
            logs_have_own_files=state.config.layout >= 2 and not state.config.was_upgraded_from_v6,
        )
        return skipping.prune([task.slice for task in tasks], self.predicate)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read, one batch at a time."""
        remaining = self.row_limit
        for task in self.plan().tasks:
            for batch in self._read(task):
                if remaining is not None:
                    batch = batch.slice(0, remaining)
                    remaining -= batch.num_rows
                if batch.num_rows:
                    yield batch
                if remaining == 0:
                    return

    def to_arrow(self) -> pa.Table:
        """Read everything into one table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.requested_schema)

    def _read(self, task: ReadTask) -> Iterator[pa.RecordBatch]:
        return self.source.read(
            task,
            storage=self.source.state.storage,
            table_schema=self.source.schema,
            columns=self.requested_schema.names,
            predicate=self.predicate,
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


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Planning makes many values that live on and no cycles: collecting meanwhile only looks at them again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
