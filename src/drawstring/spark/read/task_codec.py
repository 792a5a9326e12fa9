"""Read tasks as JSON: what all slices of a scan share once, as a context, and the rest per slice."""

from __future__ import annotations

import base64
import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from drawstring.model.read_task import ReadTask

_PER_SLICE = frozenset(
    {"slice", "partition_values", "mappings", "file_schema_known_equal", "row_count", "change"}
)


def context_to_wire(task: ReadTask) -> dict[str, Any]:
    """What a task has in common with the others of its scan."""
    return {name: encode(getattr(task, name)) for name in _hints(ReadTask) if name not in _PER_SLICE}


def task_to_wire(task: ReadTask) -> dict[str, Any]:
    """What is the task's own; written out by hand, because plans have many tasks."""
    found = task.slice
    return {
        "slice": {
            "group": _flat(found.group),
            "base_instant": found.base_instant,
            "base_file": _flat(found.base_file) if found.base_file else None,
            "log_files": [_flat(log) for log in found.log_files],
        },
        "partition_values": encode(task.partition_values),
        "mappings": encode(task.mappings),
        "file_schema_known_equal": task.file_schema_known_equal,
        "row_count": task.row_count,
        "change": encode(task.change),
    }


def task_from_wire(context: Mapping[str, Any], own: Mapping[str, Any]) -> ReadTask:
    """Put a task together again."""
    hints = _hints(ReadTask)
    return ReadTask(**{name: decode(hints[name], value) for name, value in {**context, **own}.items()})


def encode(value: Any) -> Any:
    """A value as JSON; values that JSON lacks become `{"$kind": text}`, mappings and sets lists in a fixed order."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (frozenset, set)):
        return sorted(encode(item) for item in value)
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return _tagged(value)


def decode(kind: Any, node: Any) -> Any:
    """The value of type `kind` that `encode` wrote."""
    if node is None:
        return None
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        return kind(**{name: decode(hints[name], item) for name, item in node.items()})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return decode(next(a for a in arguments if a is not type(None)), node)
    if origin is tuple:
        return tuple(decode(arguments[0], item) for item in node)
    if origin is frozenset:
        return frozenset(decode(arguments[0], item) for item in node)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: decode(arguments[1], item) for key, item in node.items()}
    return _untagged(node) if isinstance(node, dict) else node


def _tagged(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, Decimal):
        return {"$decimal": str(value)}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise TypeError(f"a {type(value).__name__} cannot be part of a read task")


def _untagged(node: dict[str, str]) -> Any:
    ((tag, text),) = node.items()
    readers: dict[str, Any] = {
        "$datetime": datetime.fromisoformat,
        "$date": date.fromisoformat,
        "$decimal": Decimal,
        "$bytes": base64.b64decode,
    }
    return readers[tag](text)


def _flat(value: Any) -> dict[str, Any]:
    """A dataclass of plain values."""
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _hints(kind)}


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)
