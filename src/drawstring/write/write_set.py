"""What a write read and wrote, for the validation that decides whether it may be committed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.sink_batch import SinkBatch


@dataclass(frozen=True)
class WriteSet:
    """What one write read and wrote.

    - `groups`: file groups that it rewrote or replaced, as they were when it began.
    - `appended`: those of them that only got log files.
    - `overwritten`: those of them in whose place an overwrite puts new groups.
    - `partitions`: partitions that it replaced whole, whatever is in them.
    - `patterns`: of the paths of partitions that it took out whole, also those that others make meanwhile.
    - `buckets`: partition and number of the buckets that it wrote, with a bucket index: another write may have made
      another group of the same bucket.
    - `searched`: partitions whose file groups it looked at, for keys or for groups to take out.
    - `checks_new_keys`: keys that were new when it began must still be new (upsert; inserts may repeat keys).
    - `keys_are_global`: a key that is in another partition is not new either (global indexes).
    - `schema_at_start`, `schema_written`: Avro schemas, empty where there is none.
    - `non_blocking`: what it appended stands beside what others appended to the same groups meanwhile.
    - `sink_batch`: the batch of a streaming query that it is.
    """

    groups: frozenset[FileGroupId] = frozenset()
    partitions: frozenset[str] = frozenset()
    checks_new_keys: bool = False
    schema_at_start: str = ""
    schema_written: str = ""
    appended: frozenset[FileGroupId] = frozenset()
    sink_batch: SinkBatch | None = None
    buckets: frozenset[tuple[str, int]] = frozenset()
    keys_are_global: bool = False
    non_blocking: bool = False
    searched: frozenset[str] = frozenset()
    overwritten: frozenset[FileGroupId] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    def replaces(self, partition_path: str) -> bool:
        """Whether it takes out whatever is in a partition."""
        return partition_path in self.partitions or any(p.fullmatch(partition_path) for p in self.patterns)


def groups_of(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the file groups that a commit wrote to or took out."""
    written = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats}
    return frozenset(written | set(replaced_groups(metadata)))


def replaced_groups(metadata: CommitMetadata) -> Iterable[FileGroupId]:
    """Yield the file groups that a commit took out."""
    return (FileGroupId(path, file_id) for path, ids in metadata.replaced.items() for file_id in ids)


def appended_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the groups to which a commit only appended log files."""
    logs = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats if stat.log_files}
    return frozenset(logs - set(replaced_groups(metadata)))


def existing_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the groups of a commit that were there before it: rewritten or taken out."""
    rewritten = {
        FileGroupId(stat.partition_path, stat.file_id)
        for stat in metadata.stats
        if stat.prev_commit != "null"
    }
    return frozenset(rewritten | set(replaced_groups(metadata)))
