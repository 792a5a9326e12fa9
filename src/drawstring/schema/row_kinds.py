"""The columns that tell what a changed row is, and by which commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.read_task import ChangeCommit

ROW_KIND = "_rowkind"
INSERT, BEFORE, AFTER, DELETE = "+I", "-U", "+U", "-D"
"""Inserted; before and after an update; deleted."""

CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
"""What Spark's CHANGES clause calls the kind of a row, and its commit."""
_CHANGE_TYPES = {INSERT: "insert", BEFORE: "update_preimage", AFTER: "update_postimage", DELETE: "delete"}
_BY_KIND = (pa.field(ROW_KIND, pa.string()),)
_BY_COMMIT = (
    pa.field(CHANGE_TYPE, pa.string(), nullable=False),
    pa.field(COMMIT_VERSION, pa.string(), nullable=False),
    pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", tz="UTC")),
)


def change_columns(*, commits: bool) -> tuple[pa.Field, ...]:
    """The columns of a changelog beside the table's: the kind of a row, or Spark's three, which name its commit."""
    return _BY_COMMIT if commits else _BY_KIND


def with_kind(rows: pa.Table, kind: str | pa.Array) -> pa.Table:
    """The rows with a last column that tells their kind."""
    kinds = pa.repeat(pa.scalar(kind), rows.num_rows) if isinstance(kind, str) else kind
    return rows.append_column(pa.field(ROW_KIND, pa.string()), kinds)


def with_commit(rows: pa.Table, commit: ChangeCommit) -> pa.Table:
    """Rows whose last column is their kind, shown as Spark's CHANGES clause shows them."""
    last = rows.num_columns - 1
    kinds = rows.column(last).combine_chunks()
    types = pa.array(_CHANGE_TYPES.values()).take(
        pc.index_in(kinds, value_set=pa.array(_CHANGE_TYPES.keys()))
    )
    values = (types, pa.repeat(commit.version, len(rows)), _repeated(commit.micros, len(rows)))
    found = rows.remove_column(last)
    for field, value in zip(_BY_COMMIT, values, strict=True):
        found = found.append_column(field, value)
    return found


def is_taken_back(rows: pa.Table, *, commits: bool) -> pa.ChunkedArray:
    """Which rows of a changelog are no longer there after their commit; `commits` as in `change_columns`."""
    name, taken = change_columns(commits=commits)[0].name, (BEFORE, DELETE)
    return pc.is_in(
        rows.column(name), value_set=pa.array([_CHANGE_TYPES[kind] if commits else kind for kind in taken])
    )


def _repeated(micros: int | None, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(micros, _BY_COMMIT[-1].type), count)
