"""The column that tells what a changed row is."""

from __future__ import annotations

import pyarrow as pa

ROW_KIND = "_rowkind"
INSERT, BEFORE, AFTER, DELETE = "+I", "-U", "+U", "-D"
"""Inserted; before and after an update; deleted."""


def with_kind(rows: pa.Table, kind: str | pa.Array) -> pa.Table:
    """The rows with a last column that tells their kind."""
    kinds = pa.repeat(pa.scalar(kind), rows.num_rows) if isinstance(kind, str) else kind
    return rows.append_column(pa.field(ROW_KIND, pa.string()), kinds)
