"""Rows before and after a commit, compared by key. Columnar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.read_task import ChangeSpec, ReadTask
from drawstring.reading.same_places import Batches
from drawstring.reading.slice_rows import SliceReader
from drawstring.schema.meta_columns import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY
from drawstring.schema.row_kinds import AFTER, BEFORE, DELETE, INSERT, with_kind

COMPARED = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY)
"""The columns by which rows are compared."""

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def read_changes(change: ChangeSpec, reader: SliceReader, *, columns: Sequence[str]) -> pa.Table:
    """What changed between two sights of file groups, with the kind of each row; what was taken back comes first.

    Args:
        change: the groups before and after.
        reader: reads their rows.
        columns: the columns to return; those that the comparison needs are among them.
    """
    schema = pa.schema([reader.table_schema.field(name) for name in columns])
    parts = [reader.differing(then, now, columns) for then, now in _by_group(change)]

    def joined(sides: Iterable[Batches]) -> pa.Table:
        return pa.Table.from_batches([batch for side in sides for batch in side], schema=schema)

    old, new = (joined(part.updated[side] for part in parts) for side in (0, 1))
    taken, added = changed_rows(*(joined(part.others[side] for part in parts) for side in (0, 1)))
    return pa.concat_tables([with_kind(old, BEFORE), taken, with_kind(new, AFTER), added])


def _by_group(change: ChangeSpec) -> Iterator[tuple[ReadTask | None, ReadTask | None]]:
    """Each file group as it was before and after; None where it had no rows."""
    then = {task.slice.group: task for task in change.before}
    now = {task.slice.group: task for task in change.after}
    for group in dict.fromkeys([*then, *now]):
        yield then.get(group), now.get(group)


def changed_rows(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What changed in a file group: the rows that were taken back, and the rows that were put there, with their kinds.

    A row has changed when another commit wrote it, or another record of the same; which file it is in now says nothing.
    A row may also come back as an older commit wrote it, where a later record keeps a delete from counting.
    """
    old, new = _unsettled(before, after)
    before, after = before.filter(pa.array(old)), after.filter(pa.array(new))
    if _has_twice(before) or _has_twice(after):
        return _changed_versions(before, after)
    here = _positions(after, before)
    added = ~_same_version(after, before, here)
    there = _positions(before, after)
    taken = ~_same_version(before, after, there)
    return (
        with_kind(before.filter(pa.array(taken)), _kinds(_are(added, there[taken]), BEFORE, DELETE)),
        with_kind(after.filter(pa.array(added)), _kinds(_are(taken, here[added]), AFTER, INSERT)),
    )


def _has_twice(rows: pa.Table) -> bool:
    return bool(pc.count_distinct(rows.column(RECORD_KEY)).as_py() < rows.num_rows)


def _changed_versions(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The same where a key is there twice, for it was inserted again: a row that stays is no version of another one."""
    old, new = _versions(before), _versions(after)
    taken = before.filter(pc.invert(pc.is_in(old, value_set=new)))
    added = after.filter(pc.invert(pc.is_in(new, value_set=old)))
    back, fresh = (rows.column(RECORD_KEY).combine_chunks() for rows in (taken, added))
    return (
        with_kind(taken, pc.if_else(pc.is_in(back, value_set=fresh), BEFORE, DELETE)),
        with_kind(added, pc.if_else(pc.is_in(fresh, value_set=back), AFTER, INSERT)),
    )


def _versions(rows: pa.Table) -> pa.Array:
    """One text for each row that no other version of a row has."""
    parts = [pc.fill_null(rows.column(name), "").combine_chunks() for name in COMPARED]
    return pc.binary_join_element_wise(*parts, "\0")


def _unsettled(before: pa.Table, after: pa.Table) -> tuple[Mask, Mask]:
    """The rows of both sides that have to be compared by key: most were carried over, and lie in the same order.

    1. Rows of commits that the older side does not know are new; the rows of their keys are not carried over.
    2. Where rows are left without counterpart, those of keys that are gone were deleted.
    3. Of the others, those that are the same versions from the first on, and from the last back, are no changes.
    """
    known = pc.is_in(after.column(COMMIT_TIME), value_set=pc.unique(before.column(COMMIT_TIME)))
    keys = after.select([RECORD_KEY])
    fresh = _keys(keys.filter(pc.invert(known)))
    kept = pc.invert(pc.is_in(before.column(RECORD_KEY), value_set=fresh))
    if pc.sum(kept).as_py() != pc.sum(known).as_py():
        stayed = _keys(keys.filter(known))
        kept = pc.and_(kept, pc.is_in(before.column(RECORD_KEY), value_set=stayed))
    first, last = _carried_over(before.select(COMPARED).filter(kept), after.select(COMPARED).filter(known))
    return _middle(kept, first, last), _middle(known, first, last)


def _carried_over(before: pa.Table, after: pa.Table) -> tuple[int, int]:
    """How many rows are equal from the first on, and how many of the others from the last back."""
    count = min(before.num_rows, after.num_rows)
    first = _equal_rows(before.slice(0, count), after.slice(0, count))
    changed = np.flatnonzero(~first)
    if not len(changed):
        return count, 0
    last = _equal_rows(before.slice(before.num_rows - count), after.slice(after.num_rows - count))
    back = count - 1 - int(np.flatnonzero(~last)[-1]) if not last.all() else count
    return int(changed[0]), min(back, count - int(changed[0]))


def _keys(rows: pa.Table) -> Any:
    return rows.column(RECORD_KEY).combine_chunks()


def _equal_rows(rows: pa.Table, others: pa.Table) -> Mask:
    equal: Mask = np.ones(rows.num_rows, dtype=bool)
    for name in rows.column_names:
        same = pc.equal(rows.column(name), others.column(name)).fill_null(False)
        equal &= np.asarray(same, dtype=bool)
    return equal


def _middle(chosen: pa.ChunkedArray, first: int, last: int) -> Mask:
    """All rows but the first and last of those that are chosen."""
    found = np.ones(len(chosen), dtype=bool)
    places = np.flatnonzero(np.asarray(chosen, dtype=bool))
    found[places[:first]] = False
    found[places[len(places) - last :]] = False
    return found


def _are(mask: Mask, positions: Positions) -> Mask:
    """Whether the mask holds at positions; not where there is none."""
    found: Mask = positions >= 0
    found[found] = mask[positions[found]]
    return found


def _kinds(mask: Mask, yes: str, no: str) -> pa.Array:
    return pc.if_else(pa.array(mask, pa.bool_()), yes, no)


def _positions(rows: pa.Table, others: pa.Table) -> Positions:
    """Where the others have the same key, -1 for nowhere."""
    found = pc.index_in(rows.column(RECORD_KEY), value_set=_keys(others))
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def _same_version(rows: pa.Table, others: pa.Table, positions: Positions) -> Mask:
    """Where the row of the same key is the same version: written by the same commit, under the same number."""
    same: Mask = positions >= 0
    at = pa.array(positions, mask=~same)
    for name in (COMMIT_TIME, COMMIT_SEQNO):
        equal = pc.equal(rows.column(name), others.column(name).take(at))
        same &= np.asarray(equal.fill_null(False), dtype=bool)
    return same
