"""Functions of columns: from what is known of a column to what is known of what a function makes of it.

Values are computed as Spark computes them, whatever the session's settings; where that depends on them, or where Python
and Java may differ, nothing is known. All functions make null of null.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from drawstring.predicates.ast import Call, Column
from drawstring.predicates.facts import ColumnFacts

Function = Callable[[Call, ColumnFacts], ColumnFacts | None]

_ZONES = dt.timedelta(hours=19)
"""More than any zone is away from UTC, `+18:00` is the farthest: what depends on the session's is widened by it."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TEXT = pa.string()
_MIDNIGHT = dt.time()
_UTC = dt.timezone.utc


def facts_of_call(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    """What is known of a function's results, given what is known of its column; None for nothing."""
    operand = known if isinstance(call.operand, Column) else facts_of_call(call.operand, known)
    if operand is None or call.function not in _FUNCTIONS:
        return None
    try:
        return _FUNCTIONS[call.function](call, operand)
    except (TypeError, ValueError, ArithmeticError):
        return None


def _of_text(compute: Callable[..., str | int], result: pa.DataType = _TEXT) -> Function:
    """A function that tells nothing of texts between two others."""

    def facts(call: Call, known: ColumnFacts) -> ColumnFacts | None:
        # In TRIM(column FROM 'text') the column says what is cut off: only concatenations know such places.
        if not _is_text(known.type) or (call.place > 0 and call.function != "concat"):
            return None
        if known.all_null:
            return ColumnFacts(result, all_null=True)
        if known.lower is None or known.lower != known.upper:
            return None
        value = compute(known.lower, *_placed(call))
        return _image(known, result, value, value)

    return facts


def _placed(call: Call) -> tuple[Any, ...]:
    """The arguments; for concatenations those before the column, and those after it."""
    if call.function != "concat":
        return call.arguments
    return "".join(call.arguments[: call.place]), "".join(call.arguments[call.place :])


def _in_ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    def changed(text: str) -> str:
        if not text.isascii():
            raise ValueError(text)
        return change(text)

    return changed


def _trimmed(strip: Callable[[str, str], str]) -> Callable[..., str]:
    return lambda text, characters=" ": strip(text, characters)


def _substring(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    """The beginning of a text orders as the text does; another part does not."""
    start, length = (*call.arguments, None)[:2]
    if not _is_text(known.type) or start is None or start < 0 or (length is not None and length < 0):
        return None
    first = max(start, 1) - 1
    last = None if length is None else first + length

    def part(text: str | None) -> str | None:
        return None if text is None else text[first:last]

    is_single = known.lower is not None and known.lower == known.upper
    if not known.all_null and not is_single and (first > 0 or last is None):
        return None
    return _image(known, pa.string(), part(known.lower), part(known.upper))


def _trunc(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    levels: dict[str, Callable[[dt.date], dt.date]] = {
        "YEAR": lambda day: day.replace(month=1, day=1),
        "QUARTER": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "MONTH": lambda day: day.replace(day=1),
        "WEEK": lambda day: day - dt.timedelta(days=day.weekday()),
    }
    spelled = {"YYYY": "YEAR", "YY": "YEAR", "MM": "MONTH", "MON": "MONTH"}
    text = str(call.arguments[0]).upper()
    cut = levels.get(spelled.get(text, text))
    if cut is None or known.type != pa.date32():
        return None
    return _mapped(known, pa.date32(), cut)


def _date_add(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    days = dt.timedelta(days=call.arguments[0])
    return _mapped(known, pa.date32(), lambda day: day + days) if known.type == pa.date32() else None


def _extract(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    """A field rises with the time only while the fields above it stay as they are."""
    if known.all_null:
        return ColumnFacts(pa.int32(), all_null=True)
    has_time = pa.types.is_timestamp(known.type) and known.type.tz is None
    fields = _FIELDS if known.type == pa.date32() else _FIELDS_OF_TIMES if has_time else {}
    if call.field not in fields:
        return None
    above, compute = fields[call.field]
    if call.field != "YEAR" and not _are_equal_in(above, known):
        return None
    return _mapped(known, pa.int32(), compute)


def _are_equal_in(fields: Callable[[Any], Any], known: ColumnFacts) -> bool:
    if known.lower is None or known.upper is None:
        return False
    return bool(fields(known.lower) == fields(known.upper))


_Field = tuple[Callable[[Any], Any], Callable[[Any], int]]
_FIELDS: dict[str, _Field] = {
    "YEAR": (lambda day: (), lambda day: day.year),
    "QUARTER": (lambda day: day.year, lambda day: (day.month + 2) // 3),
    "MONTH": (lambda day: day.year, lambda day: day.month),
    "DAY": (lambda day: (day.year, day.month), lambda day: day.day),
    "DAY_OF_YEAR": (lambda day: day.year, lambda day: day.timetuple().tm_yday),
    "DAY_OF_WEEK": (lambda day: day.isocalendar()[:2], lambda day: day.isocalendar()[2]),
    "WEEK": (lambda day: day.isocalendar()[0], lambda day: day.isocalendar()[1]),
    "YEAR_OF_WEEK": (lambda day: day.isocalendar()[0], lambda day: day.isocalendar()[0]),
}
_FIELDS_OF_TIMES: dict[str, _Field] = {
    "HOUR": (lambda time: time.date(), lambda time: time.hour),
    "MINUTE": (lambda time: (time.date(), time.hour), lambda time: time.minute),
}


def _cast(call: Call, known: ColumnFacts) -> ColumnFacts | None:
    found, wanted = known.type, call.type
    assert wanted is not None
    if known.all_null:
        return ColumnFacts(wanted, all_null=True)
    if found == wanted:
        return known
    for (is_found, is_wanted), cast in _CASTS.items():
        if is_found(found) and is_wanted(wanted):
            return cast(known, wanted)
    return None


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow))


def _is_zoned(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow) and arrow.tz is not None)


def _is_local(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow) and arrow.tz is None)


def _to_integer(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    """Where both bounds fit, what lies between them does."""
    if known.lower is None or known.upper is None:
        return None
    most = 2 ** (wanted.bit_width - 1)
    fits = -most <= int(known.lower) and int(known.upper) < most
    return _mapped(known, wanted, int) if fits else None


def _to_float(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _mapped(known, wanted, float)


def _to_decimal(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    if known.lower is None or known.upper is None:
        return None
    step = Decimal(1).scaleb(-wanted.scale)
    context = Context(prec=80)

    def rounded(value: Any) -> Decimal:
        number = Decimal(value).quantize(step, ROUND_HALF_UP, context)
        if abs(number.scaleb(wanted.scale, context)) >= 10**wanted.precision:
            raise ValueError(value)
        return number

    return _mapped(known, wanted, rounded)


def _date_to_text(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    """Texts of days sort as the days do from the year 0 to 9999, others begin with a sign."""
    if known.lower is None or known.upper is None:
        return None
    return _mapped(known, wanted, dt.date.isoformat)


def _boolean_to_text(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _mapped(known, wanted, lambda value: "true" if value else "false")


def _integer_to_text(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _mapped(known, wanted, str) if known.lower == known.upper else None


def _text_to_integer(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    if known.lower is None or known.lower != known.upper or not _WHOLE.fullmatch(known.lower):
        return None
    return _to_integer(_mapped(known, pa.int64(), int), wanted)


def _text_to_date(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    if known.lower is None or known.lower != known.upper or not _DATE.fullmatch(known.lower):
        return None
    return _mapped(known, wanted, dt.date.fromisoformat)


def _date_to_local(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _mapped(known, wanted, lambda day: dt.datetime.combine(day, _MIDNIGHT))


def _date_to_zoned(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _widened(
        _mapped(known, wanted, lambda day: dt.datetime.combine(day, _MIDNIGHT, _UTC)), lambda moment: moment
    )


def _local_to_date(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _mapped(known, wanted, dt.datetime.date)


def _zoned_to_date(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    found = _mapped(known, wanted, lambda moment: moment.astimezone(_UTC).replace(tzinfo=None))
    return _widened(found, dt.datetime.date)


def _zoned_to_local(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    found = _mapped(known, wanted, lambda moment: moment.astimezone(_UTC).replace(tzinfo=None))
    return _widened(found, lambda moment: moment)


def _local_to_zoned(known: ColumnFacts, wanted: pa.DataType) -> ColumnFacts | None:
    return _widened(_mapped(known, wanted, lambda moment: moment.replace(tzinfo=_UTC)), lambda moment: moment)


def _mapped(known: ColumnFacts, result: pa.DataType, compute: Callable[[Any], Any]) -> ColumnFacts:
    """Facts of the results of a function that never falls where its operand rises."""
    lower, upper = (None if bound is None else compute(bound) for bound in (known.lower, known.upper))
    return _image(known, result, lower, upper)


def _widened(known: ColumnFacts, compute: Callable[[Any], Any]) -> ColumnFacts:
    lower = None if known.lower is None else compute(known.lower - _ZONES)
    upper = None if known.upper is None else compute(known.upper + _ZONES)
    return _image(known, known.type, lower, upper)


def _image(known: ColumnFacts, result: pa.DataType, lower: Any, upper: Any) -> ColumnFacts:
    return ColumnFacts(result, lower, upper, may_be_null=known.may_be_null, all_null=known.all_null)


_types = pa.types
_CASTS: dict[
    tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], bool]],
    Callable[[ColumnFacts, pa.DataType], ColumnFacts | None],
] = {
    (_types.is_integer, _types.is_integer): _to_integer,
    (_types.is_boolean, _types.is_integer): _to_integer,
    (_types.is_integer, _types.is_float64): _to_float,
    (_types.is_float32, _types.is_float64): _to_float,
    (_types.is_decimal, _types.is_float64): _to_float,
    (_types.is_integer, _types.is_decimal): _to_decimal,
    (_types.is_decimal, _types.is_decimal): _to_decimal,
    (_types.is_date32, _is_text): _date_to_text,
    (_types.is_boolean, _is_text): _boolean_to_text,
    (_types.is_integer, _is_text): _integer_to_text,
    (_is_text, _types.is_integer): _text_to_integer,
    (_is_text, _types.is_date32): _text_to_date,
    (_types.is_date32, _is_local): _date_to_local,
    (_types.is_date32, _is_zoned): _date_to_zoned,
    (_is_local, _types.is_date32): _local_to_date,
    (_is_zoned, _types.is_date32): _zoned_to_date,
    (_is_zoned, _is_local): _zoned_to_local,
    (_is_local, _is_zoned): _local_to_zoned,
}
_FUNCTIONS: dict[str, Function] = {
    "cast": _cast,
    "extract": _extract,
    "trunc": _trunc,
    "date_add": _date_add,
    "substring": _substring,
    "upper": _of_text(_in_ascii(str.upper)),
    "lower": _of_text(_in_ascii(str.lower)),
    "trim": _of_text(_trimmed(str.strip)),
    "ltrim": _of_text(_trimmed(str.lstrip)),
    "rtrim": _of_text(_trimmed(str.rstrip)),
    "concat": _of_text(lambda text, before, after: f"{before}{text}{after}"),
    "char_length": _of_text(len, pa.int32()),
}
