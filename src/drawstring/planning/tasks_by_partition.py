"""The part of a scan source that follows from its tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from drawstring.model.file_group import FileSlice
from drawstring.model.read_task import ReadTask


class TasksByPartition(ABC):
    """A scan source whose tasks are made all at once."""

    @abstractmethod
    def _made(self) -> Iterable[ReadTask]:
        """Make all tasks."""

    @cached_property
    def _by_partition(self) -> dict[str, list[ReadTask]]:
        found: dict[str, list[ReadTask]] = defaultdict(list)
        for task in self._made():
            found[task.slice.group.partition_path].append(task)
        return dict(found)

    def partitions(self) -> Sequence[str]:
        """Partitions that have tasks."""
        return sorted(self._by_partition)

    def slices(self, partition: str) -> list[FileSlice]:
        """The slice of each task; of a comparison the newer one."""
        return [task.slice for task in self.tasks(partition)]

    def tasks(self, partition: str) -> list[ReadTask]:
        """The tasks that read one partition, in the order in which they were made."""
        return self._by_partition.get(partition, [])
