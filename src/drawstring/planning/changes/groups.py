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
    """The file groups that a range changed, those of a partition together where groups of it were replaced.

    Args:
        all_writes: every write of the range; services move rows to other groups.
        changing: those that may have changed rows.
    """
    touched = {group for _, metadata in changing for group in touched_groups(metadata)}
    moved: set[FileGroupId] = set()
    for _, metadata in all_writes:
        if metadata.replaced:
            moved.update(touched_groups(metadata))
    together = {group.partition_path for group in moved}
    found: dict[tuple[str, str], set[FileGroupId]] = defaultdict(set)
    for group in touched | moved:
        alone = group.partition_path not in together
        found[group.partition_path, group.file_id if alone else ""].add(group)
    wanted: Sequence[set[FileGroupId]] = [groups for _, groups in sorted(found.items()) if groups & touched]
    return [sorted(groups, key=lambda group: group.file_id) for groups in wanted]


def _replaced(metadata: CommitMetadata) -> Iterable[FileGroupId]:
    return (FileGroupId(partition, i) for partition, ids in metadata.replaced.items() for i in ids)
