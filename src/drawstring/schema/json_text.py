"""Rows as JSON text, in the two spellings of Hudi's change data. Columnar: text is put together array by array."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.avro_arrow import decimal_size
from drawstring.schema.java_text import float_text

# More digits than any decimal has: the default rounds to 28.
_WIDE = Context(prec=100)
_CONTROLS = r"[\x00-\x1f\x7f-\x9f]"
_SHORT = (
    ("\\", "\\\\"),
    ('"', '\\"'),
    ("\n", "\\n"),
    ("\r", "\\r"),
    ("\t", "\\t"),
    ("\b", "\\b"),
    ("\f", "\\f"),
)


@dataclass(frozen=True)
class JsonStyle:
    """A spelling: what stands between entries and behind names, whether nulls are named, and types that JSON lacks."""

    comma: str
    colon: str
    names_nulls: bool
    binary: Callable[[bytes], str]
    decimal: Callable[[pa.Array], pa.Array]


def json_rows(rows: pa.Array, style: JsonStyle) -> pa.Array:
    """The text of each struct; null where it is null."""
    return _struct(rows, style)


def _text(values: pa.Array, style: JsonStyle) -> pa.Array:
    """The text of each value; null where it is null."""
    kind = values.type
    if pa.types.is_struct(kind):
        return _struct(values, style)
    if pa.types.is_map(kind):
        return _map(values, style)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(values, style)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(values.cast(pa.string()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        texts = [None if value is None else style.binary(value) for value in values.to_pylist()]
        return _quoted(pa.array(texts, pa.string()))
    if pa.types.is_decimal(kind):
        return style.decimal(values)
    if pa.types.is_floating(kind):
        return _number(float_text(values))
    if pa.types.is_boolean(kind):
        return values.cast(pa.string())
    return _whole(values).cast(pa.string())


def _whole(values: pa.Array) -> pa.Array:
    """Dates as days, times as what they count."""
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_temporal(values.type) else values


def _number(texts: pa.Array) -> pa.Array:
    is_number = pc.match_substring_regex(texts, r"^[-0-9.E]+$")
    return pc.if_else(is_number, texts, _quoted(texts))


def _quoted(texts: pa.Array) -> pa.Array:
    for plain, escaped in _SHORT:
        texts = pc.replace_substring(texts, plain, escaped)
    odd = pc.match_substring_regex(texts, _CONTROLS)
    if pc.any(odd).as_py():
        texts = pa.array([None if t is None else _escaped(t) for t in texts.to_pylist()], pa.string())
    return _joined('"', texts, '"')


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04X}" if c < " " or "\x7f" <= c <= "\x9f" else c for c in text)


def _struct(values: pa.Array, style: JsonStyle) -> pa.Array:
    parts = []
    for field, child in zip(values.type, values.flatten(), strict=True):
        texts = _text(child, style)
        texts = texts.fill_null("null") if style.names_nulls else texts
        name = json.dumps(field.name, ensure_ascii=False)
        parts.append(_joined(f"{style.comma}{name}{style.colon}", texts).fill_null(""))
    # Arrow's own way to skip nulls loses rows in which all are null.
    body = pc.utf8_slice_codeunits(_joined(*parts), start=len(style.comma))
    return _where_valid(_joined("{", body, "}"), values)


def _list(values: pa.Array, style: JsonStyle) -> pa.Array:
    texts = _text(values.flatten(), style).fill_null("null")
    return _where_valid(_joined("[", _gathered(values, texts, style), "]"), values)


def _map(values: pa.Array, style: JsonStyle) -> pa.Array:
    lists = values.cast(
        pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
    )
    names, items = lists.flatten().flatten()
    texts = _text(items, style)
    texts = texts.fill_null("null") if style.names_nulls else texts
    pairs = _joined(_with_colon(_quoted(names.cast(pa.string())), style), texts)
    return _where_valid(_joined("{", _gathered(lists, pairs, style), "}"), values)


def _with_colon(names: pa.Array, style: JsonStyle) -> pa.Array:
    return _joined(names, style.colon)


def _gathered(lists: pa.Array, texts: pa.Array, style: JsonStyle) -> pa.Array:
    """The texts of each list's entries, one behind the other; entries without a text are left out."""
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0), dtype=np.int64)
    present = np.asarray(texts.is_valid(), dtype=np.int64)
    before = np.concatenate([[0], np.cumsum(present)])
    offsets = before[np.concatenate([[0], np.cumsum(lengths)])]
    kept = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts.drop_null())
    return pc.binary_join(kept, style.comma)


def _where_valid(texts: pa.Array, values: pa.Array) -> pa.Array:
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def _joined(*parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _signed_bytes(values: pa.Array) -> pa.Array:
    """Decimals as the bytes of Avro's fixed type, each a signed number."""
    size, scale = decimal_size(values.type.precision), values.type.scale

    def text(value: Any) -> str:
        content = int(value.scaleb(scale, _WIDE)).to_bytes(size, "big", signed=True)
        return json.dumps([byte - 256 if byte > 127 else byte for byte in content])

    return pa.array([None if v is None else text(v) for v in values.to_pylist()], pa.string())


AVRO = JsonStyle(", ", ": ", True, lambda value: value.decode("latin-1"), _signed_bytes)
"""How Avro prints records; so do images that change files hold."""
PLAIN = JsonStyle(
    ",", ":", False, lambda value: base64.b64encode(value).decode(), lambda values: values.cast(pa.string())
)
"""How images look that are taken from data files: without nulls. Hudi 1.2 loses decimals here; they are numbers."""
