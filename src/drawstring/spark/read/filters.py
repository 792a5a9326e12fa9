"""Predicates as the bridge sends them -> the core's expression tree."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np

from drawstring.errors import BridgeError
from drawstring.predicates.ast import (
    Always,
    And,
    Call,
    Column,
    Comparison,
    Computed,
    Contains,
    EndsWith,
    In,
    IsNull,
    Leaf,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from drawstring.spark.types import arrow_primitive

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">=", "<=>"})
_TEXT_TESTS: Mapping[str, Callable[[Column, str], Leaf]] = {
    "starts_with": StartsWith,
    "ends_with": EndsWith,
    "contains": Contains,
}
_EPOCH = datetime(1970, 1, 1)


def predicate_from_wire(node: Mapping[str, Any]) -> Predicate:
    """Build the predicate that a wire message describes."""
    op = node["op"]
    if op in ("and", "or"):
        parts = tuple(predicate_from_wire(part) for part in node["parts"])
        return And(parts) if op == "and" else Or(parts)
    if op == "not":
        return Not(predicate_from_wire(node["part"]))
    if op in ("true", "false"):
        return Always(op == "true")
    if "of" in node:
        call = _call(node["of"])
        return Computed(call, _on_column(op, call.column, node))
    return _on_column(op, Column(tuple(node["column"])), node)


def known_predicates(nodes: Iterable[Mapping[str, Any]]) -> tuple[Predicate, ...]:
    """Build those of several predicates that can be said here; whoever sent them applies all of them to the rows."""
    found = map(known_predicate, nodes)
    return tuple(predicate for predicate in found if predicate is not None)


def known_predicate(node: Mapping[str, Any]) -> Predicate | None:
    """Build a predicate; None where it names a time before the year 1 or after 9999, which Python cannot say."""
    try:
        return predicate_from_wire(node)
    except OverflowError:
        return None


def literal_from_wire(node: Mapping[str, Any]) -> Any:
    """The Python value of a literal: `{"type": <Spark type>, "value": <Spark's internal value>}`."""
    kind, value = node["type"], node["value"]
    if value is None:
        return None
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=value)
    if kind == "timestamp":
        return _EPOCH.replace(tzinfo=timezone.utc) + timedelta(microseconds=value)
    if kind == "timestamp_ntz":
        return _EPOCH + timedelta(microseconds=value)
    if kind == "binary":
        return base64.b64decode(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind == "float":
        # The text is that of 32 bits: 0.1 stands for 0.10000000149011612, which files and their bounds hold.
        return float(np.float32(value))
    return float(value) if kind == "double" else value


def _call(node: Mapping[str, Any]) -> Call:
    operand = node["operand"]
    return Call(
        node["function"],
        Column(tuple(operand["column"])) if "column" in operand else _call(operand),
        tuple(literal_from_wire(value) for value in node.get("arguments", ())),
        node.get("place", 0),
        arrow_primitive(node["type"]) if "type" in node else None,
        node.get("field", ""),
    )


def _on_column(op: str, column: Column, node: Mapping[str, Any]) -> Leaf:
    if op in _COMPARISONS:
        return Comparison(op, column, Literal(literal_from_wire(node["value"])))
    if op == "in":
        return In(column, tuple(literal_from_wire(value) for value in node["values"]))
    if op == "is_null":
        return IsNull(column)
    if op in _TEXT_TESTS:
        return _TEXT_TESTS[op](column, literal_from_wire(node["value"]))
    raise BridgeError(f"The bridge sent a predicate {op!r} that is not part of the protocol.", predicate=op)
