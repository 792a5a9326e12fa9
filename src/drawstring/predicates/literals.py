"""Literals made comparable with a column's type."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timezone
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from drawstring.errors import InvalidInput


def coerced(value: Any, arrow: pa.DataType) -> Any:
    """Return a literal as a Python value that compares with values of the column type.

    Numbers become floats where the column is one, as in Spark; else they stay what they are. Text is read as
    the column's type. Raises `InvalidInput` when the two cannot be compared.
    """
    if value is None:
        return None
    try:
        return _coerced(value, arrow)
    except (ValueError, TypeError, InvalidOperation):
        raise InvalidInput(
            f"Cannot compare {value!r} with a column of type {arrow}. Compare it with a value of that type.",
            condition="INCOMPARABLE_LITERAL",
            value=repr(value),
            type=str(arrow),
        ) from None


def is_nan(value: Any) -> bool:
    """Whether a literal is not a number."""
    return isinstance(value, float) and math.isnan(value)


def _coerced(value: Any, arrow: pa.DataType) -> Any:
    types = pa.types
    if types.is_boolean(arrow):
        return _boolean(value)
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return _number(value, arrow)
    if types.is_date(arrow):
        return _date(value)
    if types.is_timestamp(arrow):
        return _timestamp(value, arrow.tz is not None)
    if types.is_string(arrow) or types.is_large_string(arrow):
        return _only(value, str)
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return value.encode() if isinstance(value, str) else _only(value, bytes)
    if types.is_time(arrow):
        return time.fromisoformat(value) if isinstance(value, str) else _only(value, time)
    raise TypeError(arrow)


def _only(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        return ("false", "true").index(value.strip().lower()) == 1
    return bool(_only(value, bool))


def _number(value: Any, arrow: pa.DataType) -> Any:
    if isinstance(value, bool):
        raise TypeError(value)
    if isinstance(value, str):
        text = value.strip()
        return float(text) if pa.types.is_floating(arrow) else _whole(Decimal(text))
    if isinstance(value, (int, float, Decimal)):
        return _double(value) if pa.types.is_floating(arrow) else value
    raise TypeError(value)


def _double(value: int | float | Decimal) -> float:
    """What the literal is once it meets a double: bounds of files must be compared with the same number."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _whole(number: Decimal) -> int | Decimal:
    return int(number) if number == number.to_integral_value() else number


def _date(value: Any) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value.strip())
    if isinstance(value, datetime):
        # Only midnight is a date; another time of day lies between two dates and equals none.
        if value.time() != time():
            raise ValueError(value)
        return value.date()
    return date.fromordinal(_only(value, date).toordinal())


def _timestamp(value: Any, is_instant: bool) -> datetime:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    moment: datetime = _only(value, datetime)
    if is_instant:
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return moment.astimezone(timezone.utc).replace(tzinfo=None) if moment.tzinfo else moment
