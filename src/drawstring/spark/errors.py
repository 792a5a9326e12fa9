"""Errors across the border: Python -> JSON -> JVM -> JSON -> the same Python error."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from typing import Any

from drawstring.errors import DrawstringError, error_class

JVM_CLASS = "drawstring.bridge.DrawstringBridgeException"


def error_to_wire(error: BaseException) -> dict[str, Any]:
    """Describe an error; one that is not drawstring's own becomes an INTERNAL_ERROR with its traceback."""
    if isinstance(error, DrawstringError):
        return {
            "class": type(error).__name__,
            "condition": error.condition,
            "message": error.message,
            "fields": json.loads(json.dumps(error.fields, default=str)),
        }
    trail = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {
        "class": DrawstringError.__name__,
        "condition": "INTERNAL_ERROR",
        "message": f"{type(error).__name__}: {error}",
        "fields": {"traceback": trail},
    }


def error_from_wire(node: Mapping[str, Any]) -> DrawstringError:
    """Rebuild the error that `error_to_wire` described."""
    fields = {
        key: value for key, value in node.get("fields", {}).items() if key not in ("message", "condition")
    }
    return error_class(node["class"])(node["message"], condition=node["condition"], **fields)


def install_error_conversion() -> None:
    """Make PySpark raise the drawstring error when a JVM exception carries one; harmless when repeated."""
    from pyspark.errors.exceptions import captured

    original = captured.convert_exception
    if getattr(original, "_drawstring", False):
        return

    def convert_exception(e: Any) -> Any:
        found = find_drawstring_error(e)
        return original(e) if found is None else found

    convert_exception._drawstring = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception


def find_drawstring_error(throwable: Any) -> DrawstringError | None:
    """The drawstring error in a JVM exception or among its causes."""
    for _ in range(32):
        if throwable is None:
            return None
        if throwable.getClass().getName() == JVM_CLASS:
            return error_from_wire(json.loads(throwable.wireJson()))
        throwable = throwable.getCause()
    return None
