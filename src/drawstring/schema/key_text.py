"""Values as the text that Hudi writes into record keys and partition paths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.key_names import EMPTY_KEY_PART, NULL_KEY_PART
from drawstring.schema.java_text import float_text

_HEX = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)


def is_key_type(arrow: pa.DataType) -> bool:
    """Whether values of the type can stand in a key or a path."""
    types = pa.types
    return bool(
        _is_text(arrow)
        or _is_binary(arrow)
        or types.is_boolean(arrow)
        or types.is_signed_integer(arrow)
        or types.is_float32(arrow)
        or types.is_float64(arrow)
        or types.is_decimal(arrow)
        or types.is_date32(arrow)
        or types.is_timestamp(arrow)
    )


def key_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return values as text: numbers as Java writes them, timestamps as microseconds, binary as hex digits."""
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_floating(kind):
        return float_text(values)
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if _is_binary(kind):
        return _hex_text(values.cast(pa.large_binary())).cast(pa.string())
    # Arrow writes decimals as Java's BigDecimal does, small ones with an exponent.
    return values.cast(pa.string())


def composite_key(names: Sequence[str], texts: Sequence[pa.Array]) -> pa.Array:
    """Return keys of several fields: `name:value,…`, with markers for null and empty values."""
    parts = [
        pc.binary_join_element_wise(f"{name}:", marked(text), "")
        for name, text in zip(names, texts, strict=True)
    ]
    return reduce(lambda left, right: pc.binary_join_element_wise(left, right, ","), parts)


def marked(text: pa.Array) -> pa.Array:
    """Return texts with the markers of keys in place of null and empty ones."""
    filled = pc.fill_null(text, NULL_KEY_PART)
    return pc.if_else(pc.equal(filled, ""), EMPTY_KEY_PART, filled)


def field_values(batch: pa.RecordBatch | pa.Table, path: str) -> Any:
    """Return a column by its name, or a field of a struct by its dotted path; case decides last."""
    name = _spelled(batch.schema.names, path)
    if name is not None:
        return batch.column(name)
    head, *rest = path.split(".")
    found = batch.column(_spelled(batch.schema.names, head) or head)
    for part in rest:
        names = [found.type.field(index).name for index in range(found.type.num_fields)]
        found = pc.struct_field(found, _spelled(names, part) or part)
    return found


def field_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    """Return the type of a column or of a dotted field; None when there is none."""
    try:
        arrow: pa.DataType = field_values(schema.empty_table(), path).type
    except (KeyError, pa.ArrowException):
        return None
    return arrow


def _spelled(names: Sequence[str], wanted: str) -> str | None:
    if wanted in names:
        return wanted
    return next((name for name in names if name.lower() == wanted.lower()), None)


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))


def _is_binary(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow))


def _hex_text(values: pa.Array) -> pa.Array:
    """Return large binary values as lower-case hex digits."""
    validity, offsets, data = values.buffers()
    digits = (
        _HEX[np.frombuffer(data, dtype=np.uint8)] if data is not None and data.size else np.empty(0, "u2")
    )
    doubled = np.frombuffer(offsets, dtype=np.int64) * 2
    buffers = [validity, pa.py_buffer(doubled), pa.py_buffer(digits)]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers, offset=values.offset)
