"""Patterns of Joda-Time, in which Hudi's timestamp-based key generators are configured.

Parsing and formatting work on whole Arrow columns: texts are taken apart by one regular expression per pattern,
and local times are put together and taken apart by integer arithmetic.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]

DAY, HOUR, MINUTE, SECOND = 86_400_000, 3_600_000, 60_000, 1000
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MOST_DIGITS = {"D": 3} | dict.fromkeys("MdHhKkms", 2)
_FORMATTED = frozenset("GCYyxwedDEaKhHkmsSMZ")
_PARSED = frozenset("YyMdDHhKkmsSaEZ")
_NUMERIC = frozenset("CYyxwedDhHmsSkK")
_FINEST = (("S", 1), ("s", SECOND), ("m", MINUTE), ("HhKka", HOUR))


@dataclass(frozen=True)
class Token:
    """A run of one pattern letter, or a literal text (`letter` is empty)."""

    letter: str
    count: int = 0
    text: str = ""

    @property
    def is_numeric(self) -> bool:
        """Whether only digits stand for it."""
        return self.letter in _NUMERIC or (self.letter == "M" and self.count <= 2)


@dataclass(frozen=True)
class Pattern:
    """A pattern, taken apart; raises ValueError for letters that are not known."""

    text: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, text: str, *, for_parsing: bool = False) -> Pattern:
        """Take a pattern apart."""
        tokens = tuple(_tokens(text))
        known = _PARSED if for_parsing else _FORMATTED
        unknown = sorted({t.letter for t in tokens if t.letter and t.letter not in known})
        if any(t.letter == "Z" and t.count > 2 for t in tokens):
            unknown.append("ZZZ")
        if unknown:
            raise ValueError(f"the pattern {text!r} has letters that drawstring does not know: {unknown}")
        return cls(text, tokens)

    @property
    def has_offset(self) -> bool:
        """Whether the pattern holds the offset from UTC."""
        return any(token.letter == "Z" for token in self.tokens)

    @cached_property
    def regex(self) -> str:
        """A regular expression for texts of the pattern, with a group named for each letter."""
        pieces, seen = [], set()
        for token, following in zip(self.tokens, (*self.tokens[1:], None), strict=True):
            piece = _piece(token, following)
            if token.letter and token.letter not in seen:
                piece = f"(?P<{token.letter}>{piece})"
                seen.add(token.letter)
            pieces.append(piece)
        return "(?i)^" + "".join(pieces) + "$"

    @property
    def finest(self) -> int:
        """The shortest time in milliseconds that texts of the pattern tell apart."""
        letters = {token.letter for token in self.tokens}
        return next((unit for used, unit in _FINEST if letters & set(used)), DAY)


def _tokens(pattern: str) -> list[Token]:
    tokens: list[Token] = []
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", pattern):
        quoted, letter = match.group(1), match.group(2)
        if letter:
            tokens.append(Token(letter, len(match.group())))
        else:
            text = match.group() if quoted is None else quoted.replace("''", "'") or "'"
            tokens.append(Token("", text=text))
    return tokens


def _piece(token: Token, following: Token | None) -> str:
    letter, count = token.letter, token.count
    if not letter:
        return re.escape(token.text)
    if letter in "Yy":
        if count == 2:
            return r"\d{2}" if following is not None and following.is_numeric else r"[+-]?\d{1,9}"
        return rf"[+-]?\d{{1,{count if following is not None and following.is_numeric else 9}}}"
    if letter == "M" and count > 2:
        return "|".join([*_MONTHS, *(name[:3] for name in _MONTHS)])
    if letter == "E":
        return "|".join([*_DAYS, *(name[:3] for name in _DAYS)])
    if letter == "S":
        return rf"\d{{1,{count}}}"
    if letter == "a":
        return "AM|PM"
    if letter == "Z":
        return r"Z|[+-]\d{2}(?::?\d{2})?"
    return rf"\d{{1,{_MOST_DIGITS[letter]}}}"


@dataclass(frozen=True)
class Parsed:
    """Parsed texts: local milliseconds, offsets from UTC where a text has one, and which texts matched."""

    local: Longs
    offsets: Longs
    has_offset: bool
    matched: npt.NDArray[np.bool_]


def parse(texts: pa.Array, pattern: Pattern) -> Parsed:
    """Parse texts that are not null; a text that is no time by the pattern does not match."""
    groups = pc.extract_regex(texts, pattern.regex)
    matched = np.asarray(groups.is_valid())
    found = {
        groups.type.field(i).name: groups.field(i).filter(pa.array(matched))
        for i in range(groups.type.num_fields)
    }
    local = np.zeros(len(texts), dtype=np.int64)
    offsets = np.zeros(len(texts), dtype=np.int64)
    if matched.any():
        millis, legal = _local_millis(found, pattern)
        local[matched] = millis
        if "Z" in found:
            offsets[matched] = _offset_millis(found["Z"])
        matched[np.flatnonzero(matched)[~legal]] = False
    return Parsed(local, offsets, pattern.has_offset, matched)


def _local_millis(found: dict[str, pa.Array], pattern: Pattern) -> tuple[Longs, npt.NDArray[np.bool_]]:
    size = len(next(iter(found.values()))) if found else 0

    def number(letter: str, default: int) -> Longs:
        return _ints(found[letter]) if letter in found else np.full(size, default, dtype=np.int64)

    year = _year(found, pattern, size)
    month = _month(found["M"], pattern) if "M" in found else np.ones(size, dtype=np.int64)
    day = number("d", 1)
    months = (year - 1970) * 12 + month - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - first
    days = first + day - 1
    legal = (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    if "D" in found:
        start = (year - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64)
        days, legal = start + number("D", 1) - 1, np.ones(size, dtype=bool)
    hour, hour_legal = _hour(found, number)
    minute, second = number("m", 0), number("s", 0)
    legal &= hour_legal & (minute < 60) & (second < 60)
    millis = days * DAY + hour * HOUR + minute * MINUTE + second * SECOND
    if "S" in found:
        millis = millis + _ints(pc.utf8_slice_codeunits(pc.utf8_rpad(found["S"], 3, "0"), 0, 3))
    return millis, legal


def _year(found: dict[str, pa.Array], pattern: Pattern, size: int) -> Longs:
    letter = next((name for name in ("y", "Y") if name in found), None)
    if letter is None:
        # Joda's: a date without year lies in a leap year, a time without date on the first day of all.
        return np.full(size, 2000 if {"M", "d", "D"} & set(found) else 1970, dtype=np.int64)
    year = _ints(pc.utf8_ltrim(found[letter], characters="+"))
    count = next(token.count for token in pattern.tokens if token.letter == letter)
    if count != 2:
        return year
    least = dt.datetime.now(dt.timezone.utc).year - 30 - 50
    two_digits = np.asarray(pc.equal(pc.utf8_length(found[letter]), 2))
    return np.where(two_digits, least + (year - least) % 100, year)


def _month(texts: pa.Array, pattern: Pattern) -> Longs:
    if next(token.count for token in pattern.tokens if token.letter == "M") <= 2:
        return _ints(texts)
    short = pc.utf8_lower(pc.utf8_slice_codeunits(texts, 0, 3))
    names = pa.array([name[:3].lower() for name in _MONTHS])
    return np.asarray(pc.index_in(short, value_set=names)).astype(np.int64) + 1


def _hour(
    found: dict[str, pa.Array], number: Callable[[str, int], Longs]
) -> tuple[Longs, npt.NDArray[np.bool_]]:
    if "H" in found or not {"h", "K", "k"} & set(found):
        hour = number("H", 0)
        return hour, hour < 24
    if "k" in found:
        hour = number("k", 24)
        return hour % 24, (hour >= 1) & (hour <= 24)
    half = number("h", 12) if "h" in found else number("K", 0)
    legal = (half >= 1) & (half <= 12) if "h" in found else half < 12
    afternoon = (
        np.asarray(pc.equal(pc.utf8_upper(found["a"]), "PM")) if "a" in found else np.zeros(len(half), bool)
    )
    return half % 12 + 12 * afternoon, legal


def _offset_millis(texts: pa.Array) -> Longs:
    digits = pc.replace_substring_regex(texts, "[^0-9]", "")
    padded = pc.utf8_rpad(digits, 4, "0")
    hours, minutes = (_ints(pc.utf8_slice_codeunits(padded, *part)) for part in ((0, 2), (2, 4)))
    sign = np.where(np.asarray(pc.starts_with(texts, "-")), -1, 1)
    offsets: Longs = sign * (hours * HOUR + minutes * MINUTE)
    return offsets


def _ints(texts: pa.Array) -> Longs:
    return np.asarray(texts.cast(pa.int64()))


def format_local(local: Longs, pattern: Pattern, offset: int = 0) -> list[str]:
    """Format local times given in milliseconds; `offset` from UTC is what patterns with `Z` show."""
    fields = _Fields(local, offset)
    columns = [_formatted(token, fields) for token in pattern.tokens]
    return ["".join(parts) for parts in zip(*columns, strict=True)] if columns else [""] * len(local)


class _Fields:
    """The fields of local times."""

    def __init__(self, local: Longs, offset: int) -> None:
        self.size, self.offset = len(local), offset
        self.days = local // DAY
        self.of_day = local - self.days * DAY
        dates = self.days.astype("M8[D]")
        self.year = dates.astype("M8[Y]").astype(np.int64) + 1970
        months = dates.astype("M8[M]")
        self.month = months.astype(np.int64) % 12 + 1
        self.day = (dates - months.astype("M8[D]")).astype(np.int64) + 1
        self.day_of_year = (dates - dates.astype("M8[Y]").astype("M8[D]")).astype(np.int64) + 1
        self.weekday = (self.days + 3) % 7 + 1
        thursday = (self.days - self.weekday + 4).astype("M8[D]")
        self.week_year = thursday.astype("M8[Y]").astype(np.int64) + 1970
        self.week = (thursday - thursday.astype("M8[Y]").astype("M8[D]")).astype(np.int64) // 7 + 1
        self.hour = self.of_day // HOUR


def _formatted(token: Token, fields: _Fields) -> Sequence[str]:
    letter, count = token.letter, token.count
    if not letter:
        return [token.text] * fields.size
    if letter in "Yyx" and count == 2:
        return [f"{abs(year) % 100:02d}" for year in _number(letter, fields).tolist()]
    if letter == "M" and count > 2:
        return [_MONTHS[month - 1][: None if count > 3 else 3] for month in fields.month.tolist()]
    if letter == "E":
        return [_DAYS[day - 1][: None if count > 3 else 3] for day in fields.weekday.tolist()]
    if letter == "a":
        return ["AM" if hour < 12 else "PM" for hour in fields.hour.tolist()]
    if letter == "G":
        return ["AD" if year > 0 else "BC" for year in fields.year.tolist()]
    if letter == "S":
        return [f"{millis % SECOND:03d}".ljust(count, "0")[:count] for millis in fields.of_day.tolist()]
    if letter == "Z":
        return [_offset_text(fields.offset, ":" if count > 1 else "")] * fields.size
    return [_padded(number, count) for number in _number(letter, fields).tolist()]


def _number(letter: str, fields: _Fields) -> Longs:
    hour = fields.hour
    numbers: dict[str, Callable[[], Longs]] = {
        "y": lambda: fields.year,
        "Y": lambda: np.where(fields.year > 0, fields.year, 1 - fields.year),
        "x": lambda: fields.week_year,
        "C": lambda: np.abs(fields.year) // 100,
        "M": lambda: fields.month,
        "d": lambda: fields.day,
        "D": lambda: fields.day_of_year,
        "w": lambda: fields.week,
        "e": lambda: fields.weekday,
        "H": lambda: hour,
        "k": lambda: np.where(hour == 0, 24, hour),
        "K": lambda: hour % 12,
        "h": lambda: np.where(hour % 12 == 0, 12, hour % 12),
        "m": lambda: fields.of_day // MINUTE % 60,
        "s": lambda: fields.of_day // SECOND % 60,
    }
    return numbers[letter]()


def _padded(number: int, digits: int) -> str:
    return f"{'-' if number < 0 else ''}{abs(number):0{digits}d}"


def _offset_text(offset: int, separator: str) -> str:
    minutes = abs(offset) // MINUTE
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}{separator}{minutes % 60:02d}"


@lru_cache(maxsize=64)
def zone_offset(zone: str) -> int | None:
    """Return the fixed offset of a zone such as `GMT+8:00` in milliseconds; None for a zone with a name."""
    match = re.fullmatch(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?", zone)
    if zone in ("UTC", "GMT", "Etc/UTC"):
        return 0
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    return (-1 if sign == "-" else 1) * (int(hours) * HOUR + int(minutes or 0) * MINUTE)


def to_local(millis: Longs, zone: str) -> Longs:
    """Turn moments into the local times of a zone."""
    offset = zone_offset(zone)
    if offset is not None:
        return millis + offset
    moments = pa.array(millis).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", zone))
    return np.asarray(pc.local_timestamp(moments).cast(pa.int64()))


def to_moments(local: Longs, zone: str) -> Longs:
    """Turn local times of a zone into moments; of two the earlier. Raises ValueError for times that were left out."""
    offset = zone_offset(zone)
    if offset is not None:
        return local - offset
    naive = pa.array(local).cast(pa.timestamp("ms"))
    moments = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="raise")
    return np.asarray(moments.cast(pa.int64()))
