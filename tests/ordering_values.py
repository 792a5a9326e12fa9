"""Ordering values of every type, ascending as Apache Hudi 1.2 orders them.

`tests/interop/test_who_wins.py` lets Hudi say so; other tests hold drawstring's merges against the lists.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

ASCENDING: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (
        pa.float64(),
        [float("-inf"), -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.7e308, float("inf"), float("nan")],
    ),
    "float": (pa.float32(), [float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan")]),
    # By UTF-8 bytes: the last two are the other way round in UTF-16.
    "string": (pa.string(), ["", "10", "9", "B", "a", "\u00e9", "\uffff", "\U00010000"]),
    "binary": (pa.binary(), [b"", b"\x80", b"\xff", b"\x00", b"\x00\x80", b"\x00\x01", b"\x7f"]),
    "boolean": (pa.bool_(), [False, True]),
    "int": (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
    "decimal(10,2)": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("1.50")]),
    "date": (pa.date32(), [dt.date(1900, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 1, 1)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(y, 1, 1, tzinfo=dt.timezone.utc) for y in (1969, 1970, 2024)],
    ),
}
"""By Spark's name of the type: the Arrow type and its values."""


def pairs(name: str, *, null: bool = False) -> list[tuple[str, Any, Any, str]]:
    """Every pair of values as (key, first, second, which wins); among equals the second does.

    With `null` the lists begin with it: drawstring orders null below everything, where Hudi fails.
    """
    values = ([None] if null else []) + ASCENDING[name][1]
    return [
        (f"{i}_{j}", a, b, "second" if j >= i else "first")
        for i, a in enumerate(values)
        for j, b in enumerate(values)
    ]
