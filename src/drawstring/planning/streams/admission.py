"""How much the next batch takes: limits over what commits wrote. Pure functions over values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from drawstring.config.stream_options import StreamLimits
from drawstring.model.file_group import FileGroupId
from drawstring.planning.streams.offsets import StreamOffset


@dataclass(frozen=True)
class Amount:
    """How much there is."""

    files: int = 0
    bytes: int = 0
    rows: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.files + other.files, self.bytes + other.bytes, self.rows + other.rows)

    def fits(self, limits: StreamLimits) -> bool:
        """Whether it is within every upper limit."""
        pairs = (
            (self.files, limits.max_files),
            (self.bytes, limits.max_bytes),
            (self.rows, limits.max_rows),
        )
        return all(limit is None or found <= limit for found, limit in pairs)


@dataclass(frozen=True)
class StreamCommit:
    """One completed commit; `groups` are what it wrote by file group, in a fixed order; none for table services."""

    requested_time: str
    time: str
    groups: tuple[tuple[FileGroupId, Amount], ...] = ()

    @cached_property
    def amount(self) -> Amount:
        """What the whole commit wrote."""
        return total(amount for _, amount in self.groups)


def total(amounts: Iterable[Amount]) -> Amount:
    """Their sum."""
    return sum(amounts, Amount())


def remaining(commits: Sequence[StreamCommit], start: StreamOffset) -> Iterator[StreamCommit]:
    """The commits after an offset, in order; of a commit that was begun, the groups that are left."""
    for commit in commits:
        if commit.time <= start.time:
            continue
        begun = commit.requested_time == start.commit
        yield replace(commit, groups=commit.groups[start.done :]) if begun else commit


def next_offset(commits: Sequence[StreamCommit], start: StreamOffset, limits: StreamLimits) -> StreamOffset:
    """Where the next batch ends.

    1. Whole commits are taken, in order, as long as they fit all limits together.
    2. A commit that alone is larger than a limit is divided by file groups, in batches of its own. One group at
       least is taken, however large.
    3. When nothing is left to deliver, the result is `start`: commits of table services make no batch.

    Args:
        commits: the table's commits by completion time, at least those after `start`.
        start: where the batch begins.
        limits: the upper limits.
    """
    taken, took, reached = Amount(), False, start
    for commit in remaining(commits, start):
        if commit.requested_time == start.commit or not (taken + commit.amount).fits(limits):
            return reached if took else _divided(commit, start, reached, limits)
        taken, took, reached = taken + commit.amount, took or bool(commit.groups), StreamOffset(commit.time)
    return reached if took else start


def _divided(
    commit: StreamCommit, start: StreamOffset, reached: StreamOffset, limits: StreamLimits
) -> StreamOffset:
    already = start.done if start.commit == commit.requested_time else 0
    count = count_that_fits([amount for _, amount in commit.groups], limits)
    if count == len(commit.groups):
        return StreamOffset(commit.time)
    return StreamOffset(reached.time, commit=commit.requested_time, done=already + count)


def count_that_fits(amounts: Sequence[Amount], limits: StreamLimits) -> int:
    """How many of the first fit, one at least where there is any."""
    taken = Amount()
    for count, amount in enumerate(amounts):
        taken = taken + amount
        if count and not taken.fits(limits):
            return count
    return len(amounts)


def waits(available: Amount, limits: StreamLimits, *, waited_ms: float) -> bool:
    """Whether a batch is put off until more rows are there."""
    if limits.min_rows is None or limits.max_delay_ms is None:
        return False
    return available.rows < limits.min_rows and waited_ms < limits.max_delay_ms
