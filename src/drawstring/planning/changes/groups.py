"""Which file groups commits touched, and among which of them rows may have moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Instant

Write = tuple[Instant, CommitMetadata]


def touched_groups(metadata: CommitMetadata) -> list[FileGroupId]:
    """The file groups that a commit wrote to or replaced, in a fixed order."""
    written = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats}
    return sorted(written | set(_replaced(metadata)), key=lambda group: (group.partition_path, group.file_id))


def net_groups(all_writes: Iterable[Write], changing: Iterable[Write]) -> list[list[FileGroupId]]:
    """The file groups that a range changed; those of a partition together between which rows may have moved.

    1. Where groups of a partition were replaced, the replaced ones and those that were written.
    2. A key that was deleted from one group may be inserted again into another: groups that lost rows, and groups
       that got new ones.

    Args:
        all_writes: every write of the range; services move rows to other groups.
        changing: those that may have changed rows.
    """
    metadata_of_changes = [metadata for _, metadata in changing]
    touched = {group for metadata in metadata_of_changes for group in touched_groups(metadata)}
    replacing = [metadata for _, metadata in all_writes if metadata.replaced]
    moved = {group for metadata in replacing for group in touched_groups(metadata)}
    partitions = {group.partition_path for group in moved}
    moved |= _deleted_and_inserted(metadata_of_changes)
    found: dict[tuple[str, str], set[FileGroupId]] = defaultdict(set)
    for group in touched | moved:
        together = group.partition_path in partitions or group in moved
        found[group.partition_path, "" if together else group.file_id].add(group)
    wanted: Sequence[set[FileGroupId]] = [groups for _, groups in sorted(found.items()) if groups & touched]
    return [sorted(groups, key=lambda group: group.file_id) for groups in wanted]


def _deleted_and_inserted(writes: Iterable[CommitMetadata]) -> set[FileGroupId]:
    """The groups that lost or got rows, of partitions where both happened."""
    stats = [stat for metadata in writes for stat in metadata.stats]
    lost = {FileGroupId(stat.partition_path, stat.file_id) for stat in stats if stat.num_deletes}
    got = {FileGroupId(stat.partition_path, stat.file_id) for stat in stats if stat.num_inserts}
    both = {group.partition_path for group in lost} & {group.partition_path for group in got}
    return {group for group in lost | got if group.partition_path in both}


def _replaced(metadata: CommitMetadata) -> Iterable[FileGroupId]:
    return (FileGroupId(partition, i) for partition, ids in metadata.replaced.items() for i in ids)
