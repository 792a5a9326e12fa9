"""Rows of a file before and after it was rewritten, compared place by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.meta_columns import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY

Batches = list[pa.RecordBatch]


@dataclass(frozen=True)
class Differing:
    """Rows of two sights of a file group, before and after, but for those that are the same versions.

    `updated` has as many rows on both sides, of the same keys in the same order; `others` have to be compared by key,
    and some of them may be the same versions after all.
    """

    others: tuple[Batches, Batches]
    updated: tuple[Batches, Batches] = field(default_factory=lambda: ([], []))


def differing_rows(before: Iterator[pa.RecordBatch], after: Iterator[pa.RecordBatch]) -> Differing:
    """Compare rows place by place, as long as keys are at the same places; from there on they are `others`.

    Who rewrites a file keeps the order of its rows: updated ones take the place of what they were, and new ones come
    last.
    """
    old: Batches = []
    new: Batches = []
    left, right = next(before, None), next(after, None)
    while left is not None and right is not None:
        count = min(left.num_rows, right.num_rows)
        here, there = left.slice(0, count), right.slice(0, count)
        if not pc.all(same_values(here, there, RECORD_KEY), min_count=0).as_py():
            break
        same = pc.and_(same_values(here, there, COMMIT_TIME), same_values(here, there, COMMIT_SEQNO))
        old.append(here.filter(pc.invert(same)))
        new.append(there.filter(pc.invert(same)))
        left = left.slice(count) if left.num_rows > count else next(before, None)
        right = right.slice(count) if right.num_rows > count else next(after, None)
    return Differing(([*_all(left, before)], [*_all(right, after)]), (old, new))


def same_values(rows: pa.RecordBatch, others: pa.RecordBatch, name: str) -> pa.Array:
    """Where a column is equal in both; null is not."""
    return pc.fill_null(pc.equal(rows.column(name), others.column(name)), False)


def _all(first: pa.RecordBatch | None, others: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from others
