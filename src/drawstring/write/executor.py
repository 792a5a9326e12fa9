"""The protocol between the write pipeline, which decides, and its executors, which move rows to files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId
from drawstring.model.read_task import ReadTask
from drawstring.write.assignment import Assignment
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.bucket_index import BucketRule
from drawstring.write.index import LookUp
from drawstring.write.merge_group import MergeRules
from drawstring.write.plan import WritePlan


@dataclass(frozen=True)
class Counts:
    """How many rows there are: of known keys by file group, of new keys by partition path.

    A row that moves from one partition to another counts in both.
    """

    updates: Mapping[FileGroupId, int] = field(default_factory=dict)
    inserts: Mapping[str, int] = field(default_factory=dict)


class Executor(Protocol):
    """The rows of one write, evaluated once however often the write is tried, and the tasks that write them.

    Calls come in this order: `prepare`, then `append`, or `count_rows`, `locate` (`count_buckets` for a bucket index)
    and `write_groups`; from `prepare` on once more for every try.
    """

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows as they come."""
        ...

    def prepare(self, plan: WritePlan, requested_time: str) -> None:
        """Give the rows their record keys and partition paths."""
        ...

    def count_rows(self) -> Mapping[str, int]:
        """Count rows by partition path; raises `InvalidInput` with an example when a row has no key."""
        ...

    def locate(self, lookup: LookUp) -> Counts:
        """Find out which slices hold keys of the rows; without slices all keys are new."""
        ...

    def count_buckets(self, rule: BucketRule) -> Mapping[tuple[str, int], int]:
        """Count rows by partition path and bucket number; all of them count as new keys then."""
        ...

    def write_groups(
        self, context: WriteContext, assignment: Assignment, rules: MergeRules
    ) -> list[WriteStat]:
        """Bring each file group's rows to its task, and run the tasks. Deletes of unknown keys go nowhere."""
        ...

    def append(self, context: WriteContext) -> list[WriteStat]:
        """Write the rows into new file groups, as they come or in the order that the options ask for."""
        ...

    def compact(
        self, context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]
    ) -> list[WriteStat]:
        """Write the new base file of each slice that a compaction after the write merges."""
        ...

    def can_repeat(self) -> bool:
        """Whether the rows are still there for another try."""
        ...

    def close(self) -> None:
        """Let go of what was kept."""
        ...
