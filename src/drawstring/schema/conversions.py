"""Conversions of one Arrow array to a wider type, as Hudi widens columns. All of them keep nulls."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.avro_arrow import is_string_type
from drawstring.schema.java_text import double_of_float, float_text, java_float_text

Convert = Callable[[pa.Array, pa.DataType], pa.Array]

CAST = "cast"
FLOAT_TO_DOUBLE = "float_to_double"
FLOAT_TO_TEXT = "float_to_text"
NUMBER_TO_TEXT = "number_to_text"
INTEGER_TO_DECIMAL = "integer_to_decimal"
FLOAT_TO_DECIMAL = "float_to_decimal"
DECIMAL_TO_DECIMAL = "decimal_to_decimal"
TEXT_TO_DATE = "text_to_date"
TEXT_TO_DECIMAL = "text_to_decimal"
DATE_TO_TEXT = "date_to_text"
TIMESTAMP_TO_TEXT = "timestamp_to_text"
TEXT_TO_BYTES = "text_to_bytes"
BYTES_TO_TEXT = "bytes_to_text"
TIMESTAMP = "timestamp"


def conversion_kind(found: pa.DataType, wanted: pa.DataType) -> str | None:
    """Return the kind of conversion from one primitive type to another, or None when there is none."""
    if found == pa.null():
        return CAST
    if found == pa.float32() and wanted == pa.float64():
        return FLOAT_TO_DOUBLE
    for matches, kind in _RULES:
        if matches(found, wanted):
            return kind
    return None


def convert(array: pa.Array, wanted: pa.DataType, kind: str) -> pa.Array:
    """Convert an array to `wanted` by the kind that `conversion_kind` gave."""
    return _CONVERTERS[kind](array, wanted)


def _is_bytes(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow))


def _widens_number(found: pa.DataType, wanted: pa.DataType) -> bool:
    order = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
    return found in order and wanted in order and order.index(found) < order.index(wanted)


def _widens_decimal(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_decimal(found) and pa.types.is_decimal(wanted)):
        return False
    digits_before_point = found.precision - found.scale
    return bool(wanted.scale >= found.scale and wanted.precision - wanted.scale >= digits_before_point)


def _is_same_but_encoded_otherwise(found: pa.DataType, wanted: pa.DataType) -> bool:
    both_text = is_string_type(found) and is_string_type(wanted)
    both_bytes = _is_bytes(found) and _is_bytes(wanted)
    both_dates = pa.types.is_date(found) and pa.types.is_date(wanted)
    both_times = pa.types.is_time(found) and pa.types.is_time(wanted)
    return both_text or both_bytes or both_dates or both_times


def _is_timestamp_change(found: pa.DataType, wanted: pa.DataType) -> bool:
    # Old writers dropped the annotation of local timestamps, so a plain long may stand for one.
    return bool(pa.types.is_timestamp(wanted) and (pa.types.is_timestamp(found) or pa.types.is_int64(found)))


_RULES: tuple[tuple[Callable[[pa.DataType, pa.DataType], bool], str], ...] = (
    (_widens_number, CAST),
    (_is_same_but_encoded_otherwise, CAST),
    (_widens_decimal, DECIMAL_TO_DECIMAL),
    (_is_timestamp_change, TIMESTAMP),
    (lambda f, w: pa.types.is_floating(f) and is_string_type(w), FLOAT_TO_TEXT),
    (lambda f, w: (pa.types.is_integer(f) or pa.types.is_decimal(f)) and is_string_type(w), NUMBER_TO_TEXT),
    (lambda f, w: pa.types.is_date(f) and is_string_type(w), DATE_TO_TEXT),
    (lambda f, w: pa.types.is_timestamp(f) and is_string_type(w), TIMESTAMP_TO_TEXT),
    (lambda f, w: pa.types.is_integer(f) and pa.types.is_decimal(w), INTEGER_TO_DECIMAL),
    (lambda f, w: pa.types.is_floating(f) and pa.types.is_decimal(w), FLOAT_TO_DECIMAL),
    (lambda f, w: is_string_type(f) and pa.types.is_decimal(w), TEXT_TO_DECIMAL),
    (lambda f, w: is_string_type(f) and pa.types.is_date(w), TEXT_TO_DATE),
    (lambda f, w: is_string_type(f) and _is_bytes(w), TEXT_TO_BYTES),
    (lambda f, w: _is_bytes(f) and is_string_type(w), BYTES_TO_TEXT),
)


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    # Unsafe, because large integers may round when they become floats.
    return pc.cast(array, wanted, safe=False)


def _timestamp(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    found = array.type
    if not pa.types.is_timestamp(found):
        return array.view(wanted)
    in_unit = pc.cast(array, pa.timestamp(wanted.unit, tz=found.tz), safe=False)
    return in_unit.view(wanted)


def _timestamp_to_text(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    # As Spark writes it in UTC: no fraction for whole seconds, else without the zeros at its end.
    text = pc.strftime(pc.cast(array, pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S")
    text = pc.replace_substring_regex(text, r"\.0+$", "")
    return pc.cast(pc.replace_substring_regex(text, r"(\.\d*[1-9])0+$", r"\1"), wanted)


def _integer_to_decimal(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    limit = 10 ** (wanted.precision - wanted.scale)
    if limit < 2**63:
        # What does not fit becomes null, as in Spark.
        fits = pc.and_(pc.less(array, limit), pc.greater(array, -limit))
        array = pc.if_else(fits, array, None)
    return pc.cast(pc.cast(array, pa.decimal256(76, wanted.scale)), wanted)


def _per_value(parse: Callable[[Any, pa.DataType], Any]) -> Convert:
    """Lift a parser of single values; each distinct value is parsed once, what does not parse is null."""

    def converter(array: pa.Array, wanted: pa.DataType) -> pa.Array:
        encoded = pc.dictionary_encode(array)
        parsed = pa.array([parse(value, wanted) for value in encoded.dictionary.to_pylist()], wanted)
        return pc.take(parsed, encoded.indices)

    return converter


def _strict_or_lenient(strict: Convert, lenient: Convert) -> Convert:
    """Try the vectorised conversion; when some value is odd, take the one that makes odd values null."""

    def converter(array: pa.Array, wanted: pa.DataType) -> pa.Array:
        try:
            return strict(array, wanted)
        except pa.ArrowInvalid:
            return lenient(array, wanted)

    return converter


def _rounded(number: Decimal, wanted: pa.DataType) -> Decimal | None:
    if not number.is_finite():
        return None
    fitted = number.quantize(Decimal(1).scaleb(-wanted.scale), rounding=ROUND_HALF_UP, context=_WIDE)
    return fitted if fitted == 0 or fitted.adjusted() < wanted.precision - wanted.scale else None


def _decimal_of_text(text: str | None, wanted: pa.DataType) -> Decimal | None:
    if text is None:
        return None
    try:
        return _rounded(Decimal(text.strip()), wanted)
    except InvalidOperation:
        return None


def _date_of_text(text: str | None, wanted: pa.DataType) -> date | None:
    if text is None:
        return None
    try:
        year, month, day = [*re.split("[T ]", text.strip())[0].split("-"), "1", "1"][:3]
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def _decimal_of_float(single: bool) -> Convert:
    return _per_value(
        lambda x, wanted: None if x is None else _decimal_of_text(java_float_text(x, single=single), wanted)
    )


def _float_to_decimal(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return _decimal_of_float(array.type == pa.float32())(array, wanted)


def _bytes_of_fixed(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    return pc.cast(pc.cast(array, pa.binary()), wanted)


_WIDE = Context(prec=200)
_CONVERTERS: dict[str, Convert] = {
    CAST: _cast,
    FLOAT_TO_DOUBLE: lambda array, wanted: double_of_float(array),
    FLOAT_TO_TEXT: lambda array, wanted: pc.cast(float_text(array), wanted),
    NUMBER_TO_TEXT: _cast,
    INTEGER_TO_DECIMAL: _integer_to_decimal,
    FLOAT_TO_DECIMAL: _float_to_decimal,
    DECIMAL_TO_DECIMAL: lambda array, wanted: pc.cast(array, wanted),
    TEXT_TO_DATE: _strict_or_lenient(lambda array, wanted: pc.cast(array, wanted), _per_value(_date_of_text)),
    TEXT_TO_DECIMAL: _per_value(_decimal_of_text),
    DATE_TO_TEXT: lambda array, wanted: pc.cast(pc.cast(array, pa.date32()), wanted),
    TIMESTAMP_TO_TEXT: _timestamp_to_text,
    TEXT_TO_BYTES: _cast,
    BYTES_TO_TEXT: _strict_or_lenient(
        _bytes_of_fixed,
        _per_value(lambda raw, _: None if raw is None else raw.decode("utf-8", errors="replace")),
    ),
    TIMESTAMP: _timestamp,
}
