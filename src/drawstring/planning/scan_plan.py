"""What scans read from, and the plans that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from drawstring.model.file_group import FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.planning.table_state import TableState

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
        """An id of what is read."""
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
    """The slices that a plan skips, each with the reason."""

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
    """What a scan reads: tasks as plain values, in no particular order.

    `notes` say which push-downs were declined, and why.
    """

    tasks: tuple[ReadTask, ...]
    schema: pa.Schema
    snapshot_id: str
    skipped: SkipReport = field(default_factory=SkipReport)
    notes: tuple[str, ...] = ()

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the files that are read."""
        return sum(task.slice.size for task in self.tasks)

    @property
    def row_count(self) -> int | None:
        """Rows of the tasks when all are known exactly, before any filter; else None."""
        counts = [task.row_count for task in self.tasks]
        return None if None in counts else sum(count or 0 for count in counts)
