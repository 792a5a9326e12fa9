"""What a write touches, declared for the validation that decides whether it may be committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId


@dataclass(frozen=True)
class WriteSet:
    """What one write read and wrote.

    - `groups`: file groups that it rewrote or replaced, as they were when it began.
    - `partitions`: partitions that it replaced whole, whatever is in them.
    - `checks_new_keys`: keys that were new when it began must still be new (upsert; inserts may repeat keys).
    - `schema_at_start`, `schema_written`: Avro schemas, empty where there is none.
    """

    groups: frozenset[FileGroupId] = frozenset()
    partitions: frozenset[str] = frozenset()
    checks_new_keys: bool = False
    schema_at_start: str = ""
    schema_written: str = ""


def groups_of(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the file groups that a commit wrote to or took out."""
    written = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats}
    return frozenset(written | set(replaced_groups(metadata)))


def replaced_groups(metadata: CommitMetadata) -> Iterable[FileGroupId]:
    """Yield the file groups that a commit took out."""
    return (FileGroupId(path, file_id) for path, ids in metadata.replaced.items() for file_id in ids)


def existing_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """Return the groups of a commit that were there before it: rewritten or taken out."""
    rewritten = {
        FileGroupId(stat.partition_path, stat.file_id)
        for stat in metadata.stats
        if stat.prev_commit != "null"
    }
    return frozenset(rewritten | set(replaced_groups(metadata)))
