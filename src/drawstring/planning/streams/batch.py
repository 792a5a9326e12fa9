"""One batch of a stream as something that scans read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import group_of_file
from drawstring.model.read_task import ReadTask
from drawstring.planning.changes.change_data import ChangeData
from drawstring.planning.changes.changelog import Changelog
from drawstring.planning.changes.past import NOW, PastSlices
from drawstring.planning.incremental import IncrementalRead
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_state import TableState
from drawstring.planning.tasks_by_partition import TasksByPartition


@dataclass(frozen=True)
class SnapshotRead(TasksByPartition):
    """Some file groups as they were at a time, in the schema of the stream; `shown` makes tasks what the stream is of.

    With `skips_lost` a group whose files are gone is read as it is now, and counted.
    """

    past: PastSlices
    time: str
    groups: tuple[FileGroupId, ...]
    shown: Callable[[ReadTask], ReadTask] = lambda task: task
    skips_lost: bool = False

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        groups = ",".join(f"{group.partition_path}/{group.file_id}" for group in self.groups)
        return f"{self.past.state.timeline.fingerprint}:then:{self.time}:{groups}"

    @cached_property
    def cleaned(self) -> list[str]:
        """Files that were gone when tasks were made."""
        return []

    def _made(self) -> Iterable[ReadTask]:
        found = map(self._task, self.groups)
        return (self.shown(task) for task in found if task is not None)

    def _task(self, group: FileGroupId) -> ReadTask | None:
        try:
            return self.past.task(group, until=self.time, inclusive=True)
        except InvalidInput as error:
            if not self.skips_lost or error.condition != "CHANGES_WERE_CLEANED":
                raise
            self.cleaned.append(error.fields["path"])
            return self.past.task(group, until=NOW, inclusive=True)


@dataclass(frozen=True)
class Part:
    """A range of commits, or a snapshot; with `groups` only these file groups of it, or all `without` some."""

    source: IncrementalRead | Changelog | ChangeData | SnapshotRead
    groups: frozenset[FileGroupId] | None = None
    without: frozenset[FileGroupId] = frozenset()

    def partitions(self) -> Iterable[str]:
        """Partitions that may hold rows."""
        if self.groups is not None:
            return {group.partition_path for group in self.groups}
        return [found for found in self.source.partitions() if not self.without or self.slices(found)]

    def slices(self, partition: str) -> list[FileSlice]:
        """The slices to read of one partition."""
        return [found for found in self.source.slices(partition) if self.takes(found.group)]

    def tasks(self, partition: str) -> list[ReadTask]:
        """The tasks that read them."""
        return [task for task in self.source.tasks(partition) if self.takes(task.slice.group)]

    def takes(self, group: FileGroupId) -> bool:
        """Whether it returns what a file group holds of its source."""
        return group not in self.without and (self.groups is None or group in self.groups)

    @property
    def name(self) -> str:
        """Names what is seen."""
        groups = sorted(f"{g.partition_path}/{g.file_id}" for g in self.groups or self.without)
        return f"{self.source.snapshot_id}:{'without ' * bool(self.without)}{','.join(groups)}"


@dataclass(frozen=True)
class StreamBatch:
    """The rows of one batch."""

    state: TableState
    read: ReadFunction
    parts: tuple[Part, ...]
    schema: pa.Schema
    """That which the query began with."""

    def scan(self) -> Scan:
        """Start a scan of all columns and rows, to be refined."""
        return Scan(self)

    @property
    def reads_newest(self) -> bool:
        """A batch reads files that may since have been replaced."""
        return False

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        return "+".join(part.name for part in self.parts) or f"{self.state.timeline.fingerprint}:nothing"

    @property
    def lost_files(self) -> int:
        """How many files that the batch should read are gone."""
        return sum(_lost(part) for part in self.parts)

    def partitions(self) -> Iterable[str]:
        """Partitions that may hold rows."""
        return sorted({partition for part in self.parts for partition in part.partitions()})

    def slices(self, partition: str) -> Iterable[FileSlice]:
        """The slices to read of one partition."""
        return [found for part in self.parts for found in part.slices(partition)]

    def tasks(self, partition: str) -> Sequence[ReadTask]:
        """The tasks that read them."""
        return [task for part in self.parts for task in part.tasks(partition)]


def _lost(part: Part) -> int:
    if isinstance(part.source, IncrementalRead):
        return _lost_of_range(part, part.source.gone_files)
    for partition in part.source.partitions():
        part.source.tasks(partition)
    return len(part.source.cleaned)


def _lost_of_range(part: Part, gone: frozenset[str]) -> int:
    """The files of its own that a part misses; each counts in one part only.

    A file that is there counts too if others of the commit are gone and its rows were moved: the newest files, which
    are read then, hold them in a group that only the first piece takes.
    """
    own = [group for group in map(group_of_file, gone) if part.takes(group)]
    if not gone or part.groups is None:
        return len(own)
    seen = {found.group for partition in part.partitions() for found in part.slices(partition)}
    return len(own) + len(part.groups - seen - set(own))
