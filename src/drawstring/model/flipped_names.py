"""Names in which a bit was flipped, found where the same name is known from elsewhere.

Hudi has no checksum over settings, commits, headers of log blocks and Parquet footers. A key, field or column whose
name changed there would pass for one that was never there: a setting not made, a column null in every row.
"""

from __future__ import annotations

from collections.abc import Collection


def flipped_name(found: Collection[str], told: Collection[str]) -> str | None:
    """The name in `found` that stands for one that is `told` but not found, and differs from it in one character."""
    missing = [name for name in told if name not in found]
    strange = [name for name in found if name not in told] if missing else []
    return next((name for name in strange for other in missing if _differ_in_one(name, other)), None)


def _differ_in_one(name: str, other: str) -> bool:
    return len(name) == len(other) and sum(a != b for a, b in zip(name, other, strict=True)) == 1
