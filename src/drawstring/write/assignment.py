"""Where incoming rows go: into the file groups that hold their keys, into small files, into new files."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from drawstring.config.write_options import FileOptions
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice

HASH_RANGE = 1 << 20
"""Rows of new keys are spread over buckets by a hash of their key in this range."""
MOST_INSERTS = 1 << 20
"""Rows of new keys that one bucket takes at most: a task holds them in memory."""


@dataclass(frozen=True)
class Bucket:
    """One file group to write: a rewrite of `base_file`, or a new group without one."""

    number: int
    group: FileGroupId
    base_file: BaseFile | None = None


@dataclass(frozen=True)
class InsertRange:
    """Rows of new keys of a partition whose hash lies in [low, high) go to one bucket."""

    partition_path: str
    low: int
    high: int
    bucket: int


@dataclass(frozen=True)
class Assignment:
    """Buckets for all incoming rows; `by_group` finds the bucket of a key that exists."""

    buckets: tuple[Bucket, ...]
    ranges: tuple[InsertRange, ...]

    @property
    def by_group(self) -> dict[FileGroupId, int]:
        """Numbers of the buckets that rewrite a file group."""
        return {bucket.group: bucket.number for bucket in self.buckets if bucket.base_file is not None}


def assign(
    updates: Iterable[FileGroupId],
    inserts: Mapping[str, int],
    slices: Sequence[FileSlice],
    *,
    files: FileOptions,
    record_size: float | None,
) -> Assignment:
    """Assign rows to file groups.

    `updates` are the groups that hold incoming keys, `inserts` the rows of new keys by partition path,
    `slices` what those partitions hold now. Base files under the small-file limit take inserts until they
    reach the target size; the rest goes evenly to new groups.
    """
    builder = _Builder(files, record_size or files.record_size_estimate)
    by_group = {found.group: found.base_file for found in slices}
    for group in sorted(set(updates), key=lambda g: (g.partition_path, g.file_id)):
        builder.bucket_of(group, by_group[group])
    for path in sorted(inserts):
        if inserts[path]:
            builder.place(path, inserts[path], [s for s in slices if s.group.partition_path == path])
    return Assignment(tuple(builder.buckets.values()), tuple(builder.ranges))


class _Builder:
    def __init__(self, files: FileOptions, record_size: float) -> None:
        self._files, self._record_size = files, record_size
        self.buckets: dict[FileGroupId, Bucket] = {}
        self.ranges: list[InsertRange] = []

    def bucket_of(self, group: FileGroupId, base_file: BaseFile | None) -> int:
        bucket = self.buckets.setdefault(group, Bucket(len(self.buckets), group, base_file))
        return bucket.number

    def place(self, path: str, rows: int, slices: Sequence[FileSlice]) -> None:
        shares: list[tuple[int, int]] = []
        left = rows
        for base_file in self._small_files(slices):
            room = int((self._files.max_file_size - base_file.size) / self._record_size)
            taken = min(left, room, MOST_INSERTS)
            if taken > 0:
                shares.append((self.bucket_of(FileGroupId(path, base_file.file_id), base_file), taken))
                left -= taken
        shares += self._new_files(path, left)
        self._spread(path, shares, rows)

    def _small_files(self, slices: Sequence[FileSlice]) -> list[BaseFile]:
        limit = self._files.small_file_limit
        bases = [found.base_file for found in slices if found.base_file is not None]
        return sorted((base for base in bases if base.size < limit), key=lambda base: base.size)

    def _new_files(self, path: str, rows: int) -> list[tuple[int, int]]:
        if rows <= 0:
            return []
        per_file = min(max(1, int(self._files.max_file_size / self._record_size)), MOST_INSERTS)
        count = math.ceil(rows / per_file)
        groups = [FileGroupId(path, new_file_id()) for _ in range(count)]
        return [(self.bucket_of(group, None), rows // count + 1) for group in groups]

    def _spread(self, path: str, shares: list[tuple[int, int]], rows: int) -> None:
        total, used, low = sum(share for _, share in shares), 0, 0
        for position, (bucket, share) in enumerate(shares):
            used += share
            high = HASH_RANGE if position == len(shares) - 1 else round(HASH_RANGE * used / total)
            self.ranges.append(InsertRange(path, low, high, bucket))
            low = high


def new_file_id() -> str:
    """Return the id of a new file group."""
    return f"{uuid.uuid4()}-0"
