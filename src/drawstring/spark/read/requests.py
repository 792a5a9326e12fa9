"""Scan requests as the bridge sends them -> the core's; values of answers as Spark keeps them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from drawstring.planning.scan_request import Aggregate, Aggregation, ScanRequest, SortKey
from drawstring.predicates.ast import Column
from drawstring.spark import wire
from drawstring.spark.read.filters import known_predicates

_FIRST_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)


def request_from_wire(message: wire.ScanRequest) -> ScanRequest:
    """Build the request that a message describes."""
    return ScanRequest(
        columns=None if message.columns is None else tuple(message.columns),
        predicates=known_predicates(message.filters),
        limit=message.limit,
        offset=message.offset,
        order=tuple(_sort_key(key) for key in message.order),
        aggregation=None if message.aggregation is None else _aggregation(message.aggregation),
        runtime_filters=known_predicates(message.runtime_filters),
        hidden_columns=tuple(message.hidden_columns),
        grouped=message.grouped,
    )


def value_to_wire(value: Any) -> Any:
    """A value as Spark keeps it, in JSON: days, microseconds, and text where JSON's numbers would round."""
    if isinstance(value, dt.datetime):
        moment = value.astimezone(dt.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        return (moment - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - _FIRST_DAY).days
    if isinstance(value, float):
        return _float_text(value)
    return str(value) if isinstance(value, Decimal) else value


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else repr(value)


def _sort_key(key: wire.SortKey) -> SortKey:
    return SortKey(Column(tuple(key.column)), key.descending, key.nulls_first)


def _aggregation(message: wire.Aggregation) -> Aggregation:
    found = (
        Aggregate(a.function, None if a.column is None else Column(tuple(a.column)))
        for a in message.aggregates
    )
    return Aggregation(tuple(found), tuple(message.group_by))
