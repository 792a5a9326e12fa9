"""Rows before and after a commit, compared by key. Columnar."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.meta_columns import COMMIT_SEQNO, COMMIT_TIME, RECORD_KEY

ROW_KIND = "_rowkind"
INSERT, BEFORE, AFTER, DELETE = "+I", "-U", "+U", "-D"
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def with_kind(rows: pa.Table, kind: str | pa.Array) -> pa.Table:
    """The rows with a last column that tells their kind."""
    kinds = pa.repeat(pa.scalar(kind), rows.num_rows) if isinstance(kind, str) else kind
    return rows.append_column(pa.field(ROW_KIND, pa.string()), kinds)


def changed_rows(before: pa.Table, after: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What changed in a file group: the rows that were taken back, and the rows that were put there, with their kinds.

    A row has changed when another commit wrote it, or another record of the same; which file it is in now says nothing.
    A row may also come back as an older commit wrote it, where a later record keeps a delete from counting.
    """
    here = _positions(after, before)
    added = ~_same_version(after, before, here)
    there = _positions(before, after)
    taken = ~_same_version(before, after, there)
    return (
        with_kind(before.filter(pa.array(taken)), _kinds(there[taken] >= 0, BEFORE, DELETE)),
        with_kind(after.filter(pa.array(added)), _kinds(here[added] >= 0, AFTER, INSERT)),
    )


def _kinds(mask: Mask, yes: str, no: str) -> pa.Array:
    return pc.if_else(pa.array(mask, pa.bool_()), yes, no)


def _positions(rows: pa.Table, others: pa.Table) -> Positions:
    """Where the others have the same key, -1 for nowhere."""
    keys: Any = others.column(RECORD_KEY).combine_chunks()
    found = pc.index_in(rows.column(RECORD_KEY), value_set=keys)
    return np.asarray(found.fill_null(-1), dtype=np.int64)


def _same_version(rows: pa.Table, others: pa.Table, positions: Positions) -> Mask:
    """Where the row of the same key is the same version: written by the same commit, under the same number."""
    same: Mask = positions >= 0
    at = pa.array(positions, mask=~same)
    for name in (COMMIT_TIME, COMMIT_SEQNO):
        equal = pc.equal(rows.column(name), others.column(name).take(at))
        same &= np.asarray(equal.fill_null(False), dtype=bool)
    return same


def net_changes(changes: pa.Table, identity: tuple[str, ...]) -> pa.Table:
    """Of all changes of a row the outcome: at most one row before and one row after.

    Args:
        changes: in the order in which they happened.
        identity: the columns that tell rows apart.
    """
    if not changes.num_rows:
        return changes
    ids = _ids(changes, identity)
    order = np.argsort(ids, kind="stable")
    starts = np.flatnonzero(np.diff(ids[order], prepend=-1))
    first, last = order[starts], order[np.append(starts[1:], len(order)) - 1]
    kinds = np.asarray(changes.column(ROW_KIND).to_numpy(zero_copy_only=False), dtype=str)
    was = np.isin(kinds[first], [BEFORE, DELETE])
    now = np.isin(kinds[last], [AFTER, INSERT])
    outcomes = ((first[was & ~now], DELETE), (first[was & now], BEFORE), (last[was & now], AFTER))
    parts = [_kept(changes, rows, kind) for rows, kind in (*outcomes, (last[~was & now], INSERT))]
    return pa.concat_tables(parts)


def _ids(changes: pa.Table, identity: tuple[str, ...]) -> npt.NDArray[np.int64]:
    ids = np.zeros(changes.num_rows, dtype=np.int64)
    for name in identity:
        column = changes.column(name).combine_chunks().fill_null("")
        encoded: Any = column.dictionary_encode()
        ids = ids * (len(encoded.dictionary) + 1) + np.asarray(encoded.indices, dtype=np.int64)
        _, ids = np.unique(ids, return_inverse=True)
    return ids.astype(np.int64)


def _kept(changes: pa.Table, rows: npt.NDArray[np.int64], kind: str) -> pa.Table:
    return with_kind(changes.take(pa.array(np.sort(rows))).drop_columns([ROW_KIND]), kind)
