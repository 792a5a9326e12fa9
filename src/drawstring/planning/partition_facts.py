"""What partition paths tell of columns: the values of partition columns, and bounds of columns that paths were made of.

Times that are numbers are shown as texts, as in Hudi. What conditions on them mean for the number, or for the path that
the generator would make, is said beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.planning.table_state import TableState
from drawstring.predicates.ast import Predicate
from drawstring.predicates.evaluate import Facts, facts_of_values
from drawstring.schema.time_partitions import TimePartition
from drawstring.view.partitions import partition_values
from drawstring.view.time_paths import TimeConditions, facts_of_times, time_of

_RECORD_INDEX = "record_index"


@dataclass(frozen=True)
class PartitionFacts:
    """Facts by path, for one table. `types` are those of its columns, by name."""

    state: TableState
    types: Mapping[str, pa.DataType]

    def values(self, path: str) -> Facts:
        """What the path tells exactly: rows of the partition have these values."""
        found = self._values.get(path)
        if found is None:
            told = partition_values(self.state.config, path, self.types)
            found = self._values[path] = facts_of_values(told, self.types)
        return found

    def all(self, path: str) -> Facts:
        """The same, and bounds of time columns of which the path was made; files may know narrower ones."""
        time = self._time
        if time is None:
            return self.values(path)
        values, times = self.values(path), facts_of_times(self.state.config, time, path, self.types)
        return lambda column: values(column) or times.get(column)

    def narrowed(self, predicate: Predicate) -> Predicate:
        """The same condition for rows, that says more to paths: of which numbers and in which paths its values are."""
        time = self._time
        shown = {name for name in self.bounded if pa.types.is_string(self.types.get(name, pa.null()))}
        return (
            predicate
            if time is None or not shown
            else TimeConditions(time, frozenset(shown)).narrowed(predicate)
        )

    @property
    def bounded(self) -> frozenset[str]:
        """The time columns of which paths tell bounds."""
        fields = self.state.config.partitioning
        return (
            frozenset() if self._time is None else frozenset(field.name for field in fields if field.is_time)
        )

    @cached_property
    def _time(self) -> TimePartition | None:
        """How paths are made of times.

        A record index leaves rows in their partitions when their times change, so that paths tell nothing.
        """
        time, metadata = time_of(self.state.config), self.state.metadata_table
        if time is None or (metadata is not None and _RECORD_INDEX in metadata.indexes):
            return None
        return time

    @cached_property
    def _values(self) -> dict[str, Facts]:
        return {}
