"""Row counts and column facts of the slices of a plan, for the push-downs that answer or choose by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_
from typing import Any

import pyarrow as pa

from drawstring.model.read_task import ReadTask
from drawstring.predicates.ast import Column
from drawstring.predicates.facts import ColumnFacts
from drawstring.storage.base import Storage
from drawstring.view.column_stats import ColumnStats
from drawstring.view.footer_stats import footer_statistics
from drawstring.view.integer_bounds import FileKey
from drawstring.view.statistics import FileStatistics, facts_of_slice

_KEPT_ANSWERS = 4


# Not frozen, as `ColumnFacts`.
@dataclass(slots=True)
class SliceFacts:
    """What is known of one slice as it is read: `rows` exactly or not at all, and facts by column."""

    task: ReadTask
    rows: int | None
    files: FileStatistics | None

    def column(self, column: Column, arrow: pa.DataType) -> ColumnFacts | None:
        """The facts of a column as rows show it; None when nothing is known."""
        name = column.path[0]
        if len(column.path) == 1 and name in self.task.partition_values:
            return self._constant(self.task.partition_values[name], arrow)
        return None if self.files is None else self.files.facts(column)

    def _constant(self, value: object, arrow: pa.DataType) -> ColumnFacts:
        nulls = self.rows if value is None else 0
        return replace(ColumnFacts.of_value(value, arrow), nulls=nulls, is_exact=True)


class KeptFacts:
    """The facts of the last questions about one state of a table, in which what they derive from does not change.

    Of a state the same tasks are planned again and again: they are compared by identity, which costs next to nothing.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[tuple[ReadTask, ...], tuple[SliceFacts, ...]]] = {}

    def of(
        self, sources: SliceStatistics, tasks: Sequence[ReadTask], columns: Mapping[str, pa.DataType]
    ) -> tuple[SliceFacts, ...]:
        """The facts of each task, looked up unless they are known."""
        key = (frozenset(columns.items()), sources.max_footers)
        known, facts = self._kept.get(key, ((), ()))
        if len(known) != len(tasks) or not all(map(is_, known, tasks)):
            facts = tuple(sources.of(tasks, columns))
            self._kept[key] = (tuple(tasks), facts)
            while len(self._kept) > _KEPT_ANSWERS:
                self._kept.pop(next(iter(self._kept)), None)
        return facts


@dataclass(frozen=True)
class SliceStatistics:
    """Looks facts up: in the column statistics of the metadata table, then in footers.

    `logs_have_own_files`: see `FileSkipping`.
    """

    storage: Storage
    column_stats: ColumnStats | None
    logs_have_own_files: bool
    max_footers: int

    def of(self, tasks: Sequence[ReadTask], columns: Mapping[str, pa.DataType]) -> list[SliceFacts]:
        """The facts of each task. `columns` are those asked for, by name (dotted for struct fields)."""
        lookup = _Lookup(self, tasks, columns)
        return [lookup.facts(task) for task in tasks]


@dataclass(frozen=True)
class _Lookup:
    sources: SliceStatistics
    tasks: Sequence[ReadTask]
    columns: Mapping[str, pa.DataType]

    def facts(self, task: ReadTask) -> SliceFacts:
        base = task.slice.base_file
        footer = self._footers.get(base.path) if self._footers and base is not None else None
        rows = task.row_count
        if rows is None and footer is not None and _is_whole(task):
            rows = footer.rows
        return SliceFacts(task, rows, self._statistics(task, footer))

    def _statistics(self, task: ReadTask, footer: FileStatistics | None) -> FileStatistics | None:
        if task.mappings and not task.keeps_names(tuple(name.split(".")) for name in self.columns):
            # With schema-on-read, statistics go by names that columns had when the file was written.
            return None
        base = _merged(self._indexed_base(task), footer)
        if _is_whole(task):
            return base
        found: list[FileStatistics | None] = [] if task.slice.base_file is None else [base]
        found += [self._indexed_log(task, log.name) for log in task.slice.log_files]
        facts = facts_of_slice(found, has_logs=True)
        known = {name: facts(Column(tuple(name.split(".")))) for name in self.columns}
        return FileStatistics({name: each for name, each in known.items() if each is not None})

    def _indexed_base(self, task: ReadTask) -> FileStatistics | None:
        base = task.slice.base_file
        return None if base is None else self._indexed.get((task.slice.group.partition_path, base.name))

    def _indexed_log(self, task: ReadTask, name: str) -> FileStatistics | None:
        if not self.sources.logs_have_own_files:
            return None
        return self._indexed.get((task.slice.group.partition_path, name))

    @cached_property
    def _indexed(self) -> Mapping[FileKey, FileStatistics]:
        partitions = {task.slice.group.partition_path for task in self.tasks}
        if self.sources.column_stats is None or not partitions or not self.columns:
            return {}
        has_logs = any(task.slice.log_files for task in self.tasks)
        return self.sources.column_stats.statistics(self.columns, partitions, find_empty=has_logs)

    @cached_property
    def _footers(self) -> Mapping[str, FileStatistics]:
        asked = [
            base.path for task in self.tasks if (base := task.slice.base_file) and self._asks_footer(task)
        ]
        if len(asked) > self.sources.max_footers:
            return {}
        return footer_statistics(self.sources.storage, asked, self.columns)

    def _asks_footer(self, task: ReadTask) -> bool:
        if task.row_count is None and _is_whole(task):
            return True
        indexed = self._indexed_base(task)
        if indexed is not None and self.columns.keys() <= indexed.columns.keys():
            return False
        unknown = self.columns.keys() - indexed.columns.keys() if indexed else self.columns.keys()
        return any(name not in task.partition_values for name in unknown)


def _is_whole(task: ReadTask) -> bool:
    """Whether the rows of the slice are those of its base file, all of them."""
    return task.slice.base_file is not None and not task.slice.log_files and task.keep_commit_times is None


def _merged(indexed: FileStatistics | None, footer: FileStatistics | None) -> FileStatistics | None:
    """The footer's facts where it was asked, else the index's."""
    if footer is None or indexed is None:
        return footer or indexed
    return FileStatistics({**indexed.columns, **footer.columns}, footer.is_empty, footer.rows)
