"""Hudi's change data as columns, and how much of a change its files hold."""

from __future__ import annotations

import pyarrow as pa

BOTH, BEFORE_ONLY, KEYS_ONLY = "DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY"
"""The supplemental logging modes: both images, the one before, or none."""
CHANGE_DATA = pa.schema([(name, pa.string()) for name in ("op", "ts_ms", "before", "after")])
"""What a change data query returns."""
