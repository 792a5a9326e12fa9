"""Where incoming rows go: into the file groups that hold their keys, into small files, into new files.

Copy-on-write tables rewrite the base files of groups. Merge-on-read tables append log files to them; new keys still go
into base files, as Hudi does it, unless the index in use knows the keys of logs.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from drawstring.config.file_options import FileOptions
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.model.file_names import bucket_of_file_id, file_id_prefix
from drawstring.model.read_task import ReadTask
from drawstring.write.bucket_index import BucketRule, bucket_file_id, shared_bucket_file_id

HASH_RANGE = 1 << 20
"""Rows of new keys are spread over buckets by a hash of their key in this range."""
MOST_INSERTS = 1 << 20
"""Rows of new keys that one bucket takes at most: a task holds them in memory."""


class Layout(Enum):
    """What a write does with a table's file groups, by the table's type and the index in use."""

    COPY_ON_WRITE = "every change rewrites a base file"
    LOGS_FOR_KNOWN_KEYS = "changes of known keys are appended as logs, new keys go into base files"
    LOGS = "everything is appended as logs"


class Way(Enum):
    """How a group's file is written."""

    CREATE = "a base file in a new group"
    REWRITE = "its base file, with the rows merged in"
    APPEND = "a log file beside what is there, which may be nothing"


@dataclass(frozen=True)
class Bucket:
    """One file group to write: what it holds now, None for a new one, and how it is written.

    `reads` says how to read the slice where its files alone do not tell, as with columns that were renamed.
    """

    number: int
    group: FileGroupId
    slice: FileSlice | None = None
    way: Way = Way.CREATE
    reads: ReadTask | None = None

    @property
    def base_file(self) -> BaseFile | None:
        """The base file that is there now."""
        return self.slice.base_file if self.slice is not None else None


@dataclass(frozen=True)
class InsertRange:
    """Rows of new keys of a partition whose hash lies in [low, high) go to one bucket."""

    partition_path: str
    low: int
    high: int
    bucket: int


@dataclass(frozen=True)
class Assignment:
    """Buckets for all incoming rows; `by_group` finds the bucket of a key that exists.

    With a `rule` no key was looked up: the place of a row is its number by Hudi's bucket index, not a hash in
    `HASH_RANGE`, and rows whose number has no range go nowhere.
    """

    buckets: tuple[Bucket, ...]
    ranges: tuple[InsertRange, ...]
    rule: BucketRule | None = None

    @property
    def by_group(self) -> dict[FileGroupId, int]:
        """Numbers of the buckets that write to a file group that is there."""
        return {bucket.group: bucket.number for bucket in self.buckets if bucket.slice is not None}


def assign(
    updates: Iterable[FileGroupId],
    inserts: Mapping[str, int],
    slices: Sequence[FileSlice],
    *,
    files: FileOptions,
    record_size: float | None,
    layout: Layout = Layout.COPY_ON_WRITE,
    closed: Container[FileGroupId] = frozenset(),
) -> Assignment:
    """Assign rows to file groups.

    `updates` are the groups that hold incoming keys, `inserts` the rows of new keys by partition path,
    `slices` what those partitions hold now, of which `closed` groups take no new keys. Small groups take inserts until
    they reach the target size; the rest goes evenly to new groups.
    """
    builder = _Builder(files, record_size or files.record_size_estimate, layout)
    by_group = {each.group: each for each in slices}
    for group in sorted(set(updates), key=lambda g: (g.partition_path, g.file_id)):
        builder.update(by_group[group])
    for path in sorted(inserts):
        if inserts[path]:
            found = [s for s in slices if s.group.partition_path == path and s.group not in closed]
            builder.place(path, inserts[path], found)
    return Assignment(tuple(builder.buckets.values()), tuple(builder.ranges))


def assign_buckets(
    numbers: Iterable[tuple[str, int]],
    slices: Sequence[FileSlice],
    rule: BucketRule,
    *,
    layout: Layout = Layout.COPY_ON_WRITE,
    only_existing: bool = False,
    shared: bool = False,
    taken: Container[FileGroupId] = frozenset(),
) -> Assignment:
    """Assign the buckets of a bucket index, given by path and number, to their groups, or to new ones.

    With `only_existing`, for deletes, buckets without a group are left out. With `shared`, new groups are those that
    other writers would make too, unless they are `taken`: what was taken out of a table stays out.
    """
    change, new = (Way.APPEND, Way.APPEND) if layout is Layout.LOGS else (Way.REWRITE, Way.CREATE)
    known = {(s.group.partition_path, bucket_of_file_id(s.group.file_id)): s for s in slices}
    buckets: list[Bucket] = []
    ranges: list[InsertRange] = []
    for path, number in sorted(numbers):
        found = known.get((path, number))
        if found is None and only_existing:
            continue
        group = found.group if found is not None else _new_group(path, number, shared=shared, taken=taken)
        ranges.append(InsertRange(path, number, number + 1, len(buckets)))
        buckets.append(Bucket(len(buckets), group, found, new if found is None else change))
    return Assignment(tuple(buckets), tuple(ranges), rule)


def _new_group(path: str, number: int, *, shared: bool, taken: Container[FileGroupId]) -> FileGroupId:
    group = FileGroupId(path, shared_bucket_file_id(number))
    return group if shared and group not in taken else FileGroupId(path, bucket_file_id(number))


class _Builder:
    def __init__(self, files: FileOptions, record_size: float, layout: Layout) -> None:
        self._files, self._record_size, self._layout = files, record_size, layout
        self.buckets: dict[FileGroupId, Bucket] = {}
        self.ranges: list[InsertRange] = []

    def update(self, found: FileSlice) -> int:
        rewrites = self._layout is Layout.COPY_ON_WRITE
        return self._bucket(found.group, found, Way.REWRITE if rewrites else Way.APPEND)

    def _insert(self, found: FileSlice) -> int:
        return self._bucket(found.group, found, Way.APPEND if self._layout is Layout.LOGS else Way.REWRITE)

    def _bucket(self, group: FileGroupId, found: FileSlice | None, way: Way) -> int:
        bucket = self.buckets.get(group) or Bucket(len(self.buckets), group, found, way)
        # Updates go along where new keys make it necessary to rewrite.
        self.buckets[group] = replace(bucket, way=way) if way is Way.REWRITE else bucket
        return bucket.number

    def place(self, path: str, rows: int, slices: Sequence[FileSlice]) -> None:
        shares: list[tuple[int, int]] = []
        left = rows
        for found in self._small(slices):
            room = int((self._files.max_file_size - self._size(found)) / self._record_size)
            taken = min(left, room, MOST_INSERTS)
            if taken > 0:
                shares.append((self._insert(found), taken))
                left -= taken
        shares += self._new_files(path, left)
        self._spread(path, shares, rows)

    def _small(self, slices: Sequence[FileSlice]) -> list[FileSlice]:
        """Return the groups that take new keys, the smallest first."""
        limit = self._files.small_file_limit
        if self._layout is Layout.LOGS:
            found = [s for s in slices if self._size(s) < self._files.max_file_size]
        else:
            # What has logs cannot be rewritten without a compaction.
            found = [s for s in slices if s.base_file and not s.log_files and s.base_file.size < limit]
        found.sort(key=self._size)
        return found[: self._files.logs.small_groups] if self._layout is Layout.LOGS_FOR_KNOWN_KEYS else found

    def _size(self, found: FileSlice) -> int:
        """Return about how many bytes the base file has, or would have after a compaction."""
        base = found.base_file.size if found.base_file else 0
        return base + int(sum(log.size for log in found.log_files) * self._files.logs.parquet_ratio)

    def _new_files(self, path: str, rows: int) -> list[tuple[int, int]]:
        if rows <= 0:
            return []
        per_file = min(max(1, int(self._files.max_file_size / self._record_size)), MOST_INSERTS)
        count = math.ceil(rows / per_file)
        groups = [FileGroupId(path, new_file_id()) for _ in range(count)]
        way = Way.APPEND if self._layout is Layout.LOGS else Way.CREATE
        return [(self._bucket(group, None, way), rows // count + 1) for group in groups]

    def _spread(self, path: str, shares: list[tuple[int, int]], rows: int) -> None:
        total, used, low = sum(share for _, share in shares), 0, 0
        for position, (bucket, share) in enumerate(shares):
            used += share
            high = HASH_RANGE if position == len(shares) - 1 else round(HASH_RANGE * used / total)
            self.ranges.append(InsertRange(path, low, high, bucket))
            low = high


def new_file_id() -> str:
    """Return the id of a new file group."""
    return f"{file_id_prefix(uuid.uuid4())}-0"
