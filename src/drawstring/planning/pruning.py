"""Leaves slices that cannot hold a matching row out of plans, each with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from drawstring.model.file_group import FileSlice
from drawstring.predicates.arrow_filter import column_type
from drawstring.predicates.ast import Column, Predicate, columns_of
from drawstring.predicates.evaluate import Facts, decider
from drawstring.predicates.ranges import integer_ranges
from drawstring.storage.base import Storage
from drawstring.view.column_stats import ColumnStats
from drawstring.view.footer_stats import footer_statistics
from drawstring.view.integer_bounds import FileKey
from drawstring.view.statistics import FileStatistics, facts_of_slice

BY_COLUMN_STATS = "column statistics"
BY_PARTITION_STATS = "partition statistics"
BY_FOOTER = "footer"
MAX_FOOTERS = 1024
"""How many footers a plan reads at most; each costs about a millisecond once, and may save reading a file."""

MANY_SLICES = 4096
"""From so many slices on, the bounds of all files are compared at once before single statistics are looked up."""


@dataclass(frozen=True)
class Pruned:
    """Which slices may hold matching rows: for each the reason why it cannot, or None."""

    reasons: tuple[str | None, ...]

    @property
    def is_kept(self) -> tuple[bool, ...]:
        """Which slices are read, one flag for each."""
        return tuple(reason is None for reason in self.reasons)


@dataclass(frozen=True)
class FileSkipping:
    """What file skipping works with.

    - `partition_facts`: what a partition path tells for certain.
    - `reads_newest`: the newest state is read, of which statistics of whole partitions speak.
    - `logs_have_own_files`: each log file has one writer (versions 8 and 9), so that its statistics, which the
      writer stored, speak of all of it.
    """

    storage: Storage
    schema: pa.Schema
    column_stats: ColumnStats | None
    partition_facts: Callable[[str], Facts]
    logs_have_own_files: bool
    reads_newest: bool = False
    max_footers: int = MAX_FOOTERS

    def prune(self, slices: Sequence[FileSlice], predicate: Predicate) -> Pruned:
        """Skip the slices of which no file can hold a row that satisfies the predicate."""
        columns = {".".join(c.path): column_type(c, self.schema) for c in columns_of(predicate)}
        columns = {name: arrow for name, arrow in columns.items() if _has_bounds(arrow)}
        if not columns or not slices or not self._depends_on_files(slices, predicate):
            return Pruned((None,) * len(slices))
        partitions = self._matching_partitions(slices, predicate, columns)
        reasons = [None if each.group.partition_path in partitions else BY_PARTITION_STATS for each in slices]
        self._rule_out_by_ranges(slices, predicate, columns, reasons)
        left = [each for each, reason in zip(slices, reasons, strict=True) if reason is None]
        partitions = frozenset(each.group.partition_path for each in left)
        indexed = self._indexed(partitions, columns, any(each.log_files for each in left))
        decide, by_path = decider(predicate), self._path_facts(predicate)
        if indexed:
            for position, each in enumerate(slices):
                if reasons[position] is None and True not in decide(self._facts(each, by_path, indexed, {})):
                    reasons[position] = BY_COLUMN_STATS
        open_questions = [
            position
            for position, each in enumerate(slices)
            if reasons[position] is None and self._footer_may_tell(each, columns, indexed)
        ]
        if 0 < len(open_questions) <= self.max_footers:
            footers = self._footers([slices[position] for position in open_questions], columns)
            for position in open_questions:
                if True not in decide(self._facts(slices[position], by_path, indexed, footers)):
                    reasons[position] = BY_FOOTER
        return Pruned(tuple(reasons))

    def _depends_on_files(self, slices: Sequence[FileSlice], predicate: Predicate) -> bool:
        """Whether the partition path does not already tell the values of all columns."""
        facts = self.partition_facts(slices[0].group.partition_path)
        return any(facts(column) is None for column in columns_of(predicate))

    def _matching_partitions(
        self, slices: Sequence[FileSlice], predicate: Predicate, columns: Mapping[str, pa.DataType]
    ) -> frozenset[str]:
        partitions = frozenset(each.group.partition_path for each in slices)
        if self.column_stats is None or not self.reads_newest:
            return partitions
        known, decide = self.column_stats.partition_statistics(columns, partitions), decider(predicate)
        ruled_out = {
            path
            for path, statistics in known.items()
            if True not in decide(_first_of(self.partition_facts(path), statistics.facts))
        }
        return partitions - ruled_out

    def _rule_out_by_ranges(
        self,
        slices: Sequence[FileSlice],
        predicate: Predicate,
        columns: Mapping[str, pa.DataType],
        reasons: list[str | None],
    ) -> None:
        """For very many slices, rule out those that are one base file outside of a range."""
        ranges = integer_ranges(predicate, columns)
        if self.column_stats is None or len(slices) < MANY_SLICES or not ranges:
            return
        outside = self.column_stats.outside(ranges)
        for position, each in enumerate(slices):
            base = None if each.log_files or reasons[position] else each.base_file
            if base is not None and (each.group.partition_path, base.name) in outside:
                reasons[position] = BY_COLUMN_STATS

    def _indexed(
        self, partitions: frozenset[str], columns: Mapping[str, pa.DataType], has_logs: bool
    ) -> Mapping[FileKey, FileStatistics]:
        if self.column_stats is None or not partitions:
            return {}
        return self.column_stats.statistics(columns, partitions, find_empty=has_logs)

    def _path_facts(self, predicate: Predicate) -> Callable[[str], Facts | None]:
        """What partition paths tell of the predicate's columns; None if nothing."""
        asked = columns_of(predicate)

        def facts(path: str) -> Facts | None:
            found = self.partition_facts(path)
            return found if any(found(column) is not None for column in asked) else None

        return cache(facts)

    def _facts(
        self,
        found: FileSlice,
        path_facts: Callable[[str], Facts | None],
        indexed: Mapping[FileKey, FileStatistics],
        footers: Mapping[str, FileStatistics],
    ) -> Facts:
        """What is known of a slice: by its partition's path, else by its files."""
        partition = found.group.partition_path
        by_path = path_facts(partition)
        files: list[FileStatistics | None] = []
        if found.base_file is not None:
            from_index = indexed.get((partition, found.base_file.name))
            base = _either(footers.get(found.base_file.path), from_index) if footers else from_index
            if base is not None and not base.is_empty and not found.log_files:
                return _first_of(by_path, base.facts)
            files.append(base)
        for log in found.log_files:
            files.append(indexed.get((partition, log.name)) if self.logs_have_own_files else None)
        return _first_of(by_path, facts_of_slice(files, has_logs=bool(found.log_files)))

    def _footer_may_tell(
        self, found: FileSlice, columns: Mapping[str, pa.DataType], indexed: Mapping[FileKey, FileStatistics]
    ) -> bool:
        """Whether the base file's footer may add to what the index knows."""
        base, partition = found.base_file, found.group.partition_path
        if base is None:
            return False
        known = indexed.get((partition, base.name))
        unknown = columns.keys() if known is None else columns.keys() - known.columns.keys()
        if not unknown or base.extension != "parquet":
            return False
        if any((partition, log.name) not in indexed for log in found.log_files):
            return False
        by_partition = self.partition_facts(partition)
        return any(by_partition(Column((name,))) is None for name in unknown)

    def _footers(
        self, slices: Sequence[FileSlice], columns: Mapping[str, pa.DataType]
    ) -> Mapping[str, FileStatistics]:
        paths = [each.base_file.path for each in slices if each.base_file is not None]
        return footer_statistics(self.storage, paths, columns)


def _first_of(facts: Facts | None, others: Facts) -> Facts:
    return others if facts is None else lambda column: facts(column) or others(column)


def _has_bounds(arrow: pa.DataType) -> bool:
    return not pa.types.is_nested(arrow) and not pa.types.is_null(arrow)


def _either(footer: FileStatistics | None, indexed: FileStatistics | None) -> FileStatistics | None:
    """The statistics of the footer if there are some, else those of the index."""
    if footer is None or indexed is None:
        return footer or indexed
    return FileStatistics({**indexed.columns, **footer.columns}, footer.is_empty)
