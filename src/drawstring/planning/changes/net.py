"""Of all changes of a row the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drawstring.schema.row_kinds import AFTER, BEFORE, DELETE, INSERT, ROW_KIND, with_kind


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
