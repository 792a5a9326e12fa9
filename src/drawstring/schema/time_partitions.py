"""Partition paths made of times: the timestamp-based key generator, as Hudi configures it.

Settings are `hoodie.keygen.timebased.*` without that prefix. A zone that is not configured is the machine's own,
as in Hudi: tables that are written from several places should name one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.schema.joda_patterns import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Longs,
    Parsed,
    Pattern,
    format_local,
    parse,
    to_local,
    to_moments,
    zone_offset,
)

PREFIX = "hoodie.keygen.timebased."
_TYPE, _UNIT = "timestamp.type", "timestamp.scalar.time.unit"
_INPUT, _DELIMITER = "input.dateformat", "input.dateformat.list.delimiter.regex"
_OUTPUT = "output.dateformat"
_TEXT_TYPES = ("DATE_STRING", "MIXED")
_UNIT_OF_TYPE = {
    "UNIX_TIMESTAMP": "SECONDS",
    "EPOCHMILLISECONDS": "MILLISECONDS",
    "EPOCHMICROSECONDS": "MICROSECONDS",
}
_MILLIS = {"MILLISECONDS": 1, "SECONDS": SECOND, "MINUTES": MINUTE, "HOURS": HOUR, "DAYS": DAY}
_PER_MILLI = {"MICROSECONDS": 1000, "NANOSECONDS": 1_000_000}
_LONGEST = 2**63 - 1
_ANY_ZONE = 16 * HOUR
"""More than any zone is away from UTC."""
_LETTERS = "yYMdHmsS"
_SUCCESSIVE = {
    "y": "year",
    "yM": "month",
    "yMd": "day",
    "yMdH": "hour",
    "yMdHm": "minute",
    "yMdHms": "second",
}
"""Patterns whose texts stand for one stretch of time each: all fields from the year down to the one that it lasts."""


@dataclass(frozen=True)
class TimePartition:
    """How the values of a time column become paths.

    `unit` is that of numbers, None where texts are expected; zones are None where not configured.
    """

    kind: str
    unit: str | None
    input_formats: tuple[str, ...]
    output_format: str
    input_zone: str | None
    output_zone: str | None
    local_zone: str

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> TimePartition:
        """Read the settings; raises `InvalidOption` for what is missing, unknown or malformed."""
        kind = _required(settings, _TYPE).upper()
        known = (*_UNIT_OF_TYPE, "SCALAR", *_TEXT_TYPES)
        if kind not in known:
            raise _bad_setting(_TYPE, kind, f"expected one of {', '.join(known)}")
        unit = settings.get(_UNIT, "SECONDS").strip().upper() if kind == "SCALAR" else _UNIT_OF_TYPE.get(kind)
        if unit is not None and unit not in (*_MILLIS, *_PER_MILLI):
            raise _bad_setting(_UNIT, unit, f"expected one of {', '.join((*_MILLIS, *_PER_MILLI))}")
        both = settings.get("timezone")
        found = cls(
            kind,
            unit,
            _input_formats(settings) if kind in _TEXT_TYPES else (),
            _required(settings, _OUTPUT),
            _zone("timezone", both) if both else _zone("input.timezone", settings.get("input.timezone")),
            _zone("timezone", both) if both else _zone("output.timezone", settings.get("output.timezone")),
            _machine_zone(),
        )
        found.check()
        return found

    def check(self) -> None:
        """Take the patterns apart; raises `InvalidOption` for letters that are not known."""
        for key, patterns in ((_INPUT, lambda: self._inputs), (_OUTPUT, lambda: self._output)):
            try:
                patterns()
            except ValueError as error:
                raise _bad_setting(key, str(error), "expected a pattern of Joda-Time") from None

    @cached_property
    def _inputs(self) -> list[Pattern]:
        return [Pattern.of(text, for_parsing=True) for text in self.input_formats]

    @cached_property
    def _output(self) -> Pattern:
        return Pattern.of(self.output_format)

    @property
    def null_value(self) -> int | str:
        """What stands in for null: one of the unit, or the first millisecond by the first input format."""
        if self.unit is not None:
            return 1
        zone = self.input_zone or self.output_zone or "UTC"
        local = to_local(np.array([1], dtype=np.int64), zone)
        pattern = Pattern.of(self.input_formats[0])
        return format_local(local, pattern, int(local[0]) - 1)[0]

    def texts(self, values: pa.Array, name: str) -> pa.DictionaryArray:
        """Return the formatted times of a column; raises `InvalidInput` for values that are none."""
        local, offsets = self._local_times(values, name)
        if not self._output.has_offset:
            # Times that read alike are formatted once.
            times = pa.array(local // self._output.finest * self._output.finest).dictionary_encode()
            texts = format_local(np.asarray(times.dictionary), self._output)
            return pa.DictionaryArray.from_arrays(times.indices, pa.array(texts, pa.string()))
        by_offset = np.empty(len(local), dtype=object)
        for offset in np.unique(offsets).tolist():
            rows = np.flatnonzero(offsets == offset)
            times = pa.array(local[rows] // self._output.finest * self._output.finest).dictionary_encode()
            texts = format_local(np.asarray(times.dictionary), self._output, offset)
            by_offset[rows] = np.array(texts, dtype=object)[np.asarray(times.indices)]
        return pa.array(by_offset, pa.string()).dictionary_encode()

    def numbers(self, text: str) -> tuple[int, int] | None:
        """Return the least and the greatest number, in the column's unit, whose time is formatted so; None if unknown.

        Where the writer's zone is not configured, or summers are shifted in it, the range is wider than it need be.
        """
        local = self._local_range(text)
        if self.unit is None or local is None:
            return None
        first, last = self._moments(*local)
        if self.unit in _PER_MILLI:
            # The numbers were divided towards zero.
            per = _PER_MILLI[self.unit]
            return first * per - (per - 1 if first <= 0 else 0), last * per + (per - 1 if last >= 0 else 0)
        factor = _MILLIS[self.unit]
        return -(-first // factor), last // factor

    def _local_range(self, text: str) -> tuple[int, int] | None:
        """Return the first and the last local millisecond that reads like a text."""
        letters = "".join(token.letter for token in self._output.tokens if token.letter)
        units = _SUCCESSIVE.get("".join(sorted(letters, key=_LETTERS.find)))
        if units is None:
            return None
        found = parse(pa.array([text]), Pattern.of(self.output_format, for_parsing=True))
        if not found.matched[0] or format_local(found.local, self._output) != [text]:
            return None
        first = int(found.local[0])
        return first, first + _length(first, units) - 1

    def _moments(self, first: int, last: int) -> tuple[int, int]:
        if self.output_zone is None:
            return first - _ANY_ZONE, last + _ANY_ZONE
        near = np.array([first - DAY, first + DAY, last - DAY, last + DAY], dtype=np.int64)
        offsets = to_local(near, self.output_zone) - near
        return first - int(offsets.max()), last - int(offsets.min())

    def _local_times(self, values: pa.Array, name: str) -> tuple[Longs, Longs]:
        """Return local times as paths show them, and their offsets from UTC."""
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            return self._of_texts(values, name)
        millis = self._of_numbers(values, name)
        local = to_local(millis, self.output_zone or self.local_zone)
        return local, local - millis

    def _of_numbers(self, values: pa.Array, name: str) -> Longs:
        numbers = _whole_numbers(values)
        if numbers is None or self.unit is None:
            raise InvalidInput(
                f"The partition column {name!r} has the type {values.type}, which {PREFIX}{_TYPE}={self.kind} does "
                "not take. Correct the setting or the column. Nothing was written.",
                condition="KEY_TYPE_NOT_SUPPORTED",
                column=name,
            )
        filled = np.asarray(pc.fill_null(numbers, 1))
        if self.unit in _PER_MILLI:
            # Java's division: towards zero.
            divisor = _PER_MILLI[self.unit]
            return np.where(filled < 0, -(-filled // divisor), filled // divisor)
        factor = _MILLIS[self.unit]
        millis: Longs = np.clip(filled, -_LONGEST // factor, _LONGEST // factor) * factor
        return millis

    def _of_texts(self, values: pa.Array, name: str) -> tuple[Longs, Longs]:
        if self.unit is not None:
            raise InvalidInput(
                f"The partition column {name!r} holds texts, but {PREFIX}{_TYPE} is {self.kind}, which takes "
                f"numbers. Set it to DATE_STRING, with {PREFIX}{_INPUT}. Nothing was written.",
                condition="KEY_TYPE_NOT_SUPPORTED",
                column=name,
            )
        encoded = pc.fill_null(values.cast(pa.string()), self.null_value).dictionary_encode()
        moments, local = self._parsed(encoded.dictionary, name)
        rows = np.asarray(encoded.indices)
        if self.output_zone is not None:
            local = to_local(moments, self.output_zone)
        return local[rows], (local - moments)[rows]

    def _parsed(self, texts: pa.Array, name: str) -> tuple[Longs, Longs]:
        """Return the moment of each text, and the local time that it shows by itself."""
        moments, local = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
        left = np.ones(len(texts), dtype=bool)
        for pattern in self._inputs:
            rows = np.flatnonzero(left)
            found = parse(texts.take(pa.array(rows)), pattern)
            hits = rows[found.matched]
            moments[hits], local[hits] = self._placed(found, texts, name)
            left[hits] = False
        if left.any():
            raise _no_time(texts[int(np.flatnonzero(left)[0])].as_py(), name, self.input_formats)
        return moments, local

    def _placed(self, found: Parsed, texts: pa.Array, name: str) -> tuple[Longs, Longs]:
        local = found.local[found.matched]
        if found.has_offset:
            moments = local - found.offsets[found.matched]
            return moments, to_local(moments, self.input_zone) if self.input_zone else local
        try:
            return to_moments(local, self.input_zone or self.local_zone), local
        except (ValueError, pa.ArrowException) as error:
            raise _no_time(str(error), name, self.input_formats) from None


def _length(local: int, unit: str) -> int:
    """How long the stretch of time lasts that begins then, in milliseconds."""
    lengths = {"day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}
    if unit in lengths:
        return lengths[unit]
    day = np.datetime64(local, "ms").astype("datetime64[M]" if unit == "month" else "datetime64[Y]")
    return int(((day + 1).astype("datetime64[ms]") - day.astype("datetime64[ms]")).astype(np.int64))


def _whole_numbers(values: pa.Array) -> pa.Array | None:
    """Return numbers as Java's `longValue` does; dates as days, timestamps as microseconds. None for others."""
    kind = values.type
    if pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_date32(kind):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(kind):
        return values.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if pa.types.is_decimal(kind):
        return pc.trunc(values).cast(pa.int64(), safe=False)
    if pa.types.is_floating(kind):
        doubles = np.nan_to_num(np.asarray(pc.fill_null(values.cast(pa.float64()), 1.0)), nan=0.0)
        whole = np.clip(doubles, -(2.0**63), 2.0**63 - 1024).astype(np.int64)
        return pa.array(whole, mask=np.asarray(values.is_null()))
    return None


def _input_formats(settings: Mapping[str, str]) -> tuple[str, ...]:
    formats = re.split(settings.get(_DELIMITER) or ",", _required(settings, _INPUT))
    return tuple(text.strip() for text in formats)


def _required(settings: Mapping[str, str], key: str) -> str:
    found = settings.get(key, "").strip()
    if not found:
        raise InvalidOption(
            f"A partition path of times needs {PREFIX}{key}: set it with the write. Tables of the custom key "
            "generator that Apache Hudi made do not keep it.",
            condition="TIME_SETTING_MISSING",
            key=PREFIX + key,
        )
    return found


def _zone(key: str, zone: str | None) -> str | None:
    zone = (zone or "").strip()
    if not zone:
        return None
    if zone_offset(zone) is None:
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):
            raise _bad_setting(key, zone, "expected a name such as Europe/Berlin, UTC, or GMT+8:00") from None
    return zone


def _machine_zone() -> str:
    """Return the zone of this machine by name, as Java would find it; UTC where it has none."""
    named = os.environ.get("TZ", "").lstrip(":")
    if not named:
        named = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    try:
        return _zone("timezone", named) or "UTC"
    except InvalidOption:
        return "UTC"


def _bad_setting(key: str, value: Any, what: str) -> InvalidOption:
    return InvalidOption(
        f"{PREFIX}{key} is {value!r}; {what}.",
        condition="INVALID_OPTION_VALUE",
        key=PREFIX + key,
        value=str(value),
    )


def _no_time(text: str | None, name: str, formats: tuple[str, ...]) -> InvalidInput:
    return InvalidInput(
        f"The partition column {name!r} holds {str(text)[:100]!r}, which is no time by {PREFIX}{_INPUT}="
        f"{','.join(formats)}. Correct the value or the setting. Nothing was written.",
        condition="INVALID_PARTITION_TIME",
        column=name,
        value=str(text)[:100],
    )
