"""Points in time as users write them, turned into instant times."""

from __future__ import annotations

import datetime as dt
import re

from drawstring.errors import InvalidInput

_DIGITS = re.compile(r"^\d{1,20}$", re.ASCII)
_DIGITS_OF_TIMES = (14, 17)
_LONGEST_TIME = 17
_TO_THE_SECOND = re.compile(r":\d\d:\d\d(?![\d.,:])")
_FORMS = "yyyyMMddHHmmss[SSS], yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS] or ISO 8601 with a zone"


def instant_time(
    value: str | dt.date | dt.datetime,
    *,
    timezone: str = "LOCAL",
    whole_second: bool = False,
    called: str = "",
) -> str:
    """Turn a point in time into an instant time, comparable as text with those of the timeline.

    Args:
        value: digits as they stand on the timeline, a date (its first moment), a date with a time, or
            ISO 8601; without a zone the digits are taken as they are, with one they are converted.
        timezone: the zone of the table's instants, `UTC` or `LOCAL` (this machine's).
        whole_second: whether a text without a fraction covers its second, as Hudi has it wherever it takes a
            time.
        called: the option or argument that holds the value, for errors.
    """
    if not isinstance(value, (str, dt.date)):
        raise _no_instant(value, called)
    if isinstance(value, str) and _DIGITS.match(value.strip()):
        return _checked(value.strip(), called)
    moment = value if isinstance(value, dt.datetime) else _parse(value, called)
    if whole_second and isinstance(value, str) and _TO_THE_SECOND.search(value):
        moment = moment.replace(microsecond=999_000)
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.timezone.utc if timezone == "UTC" else None)
    return moment.strftime("%Y%m%d%H%M%S") + f"{moment.microsecond // 1000:03d}"


def moment_of(time: str, *, timezone: str = "LOCAL") -> dt.datetime | None:
    """The moment that an instant time names; None for digits that are no time."""
    try:
        moment = dt.datetime.strptime(time[:14], "%Y%m%d%H%M%S")
        moment += dt.timedelta(milliseconds=int(time[14:17] or 0))
    except ValueError:
        return None
    return moment.replace(tzinfo=dt.timezone.utc) if timezone == "UTC" else moment.astimezone()


def just_before(time: str) -> str:
    """The last instant time before one, to the millisecond: what comes after it is at `time` or later."""
    if len(time) not in _DIGITS_OF_TIMES or not time.strip("0"):
        return time
    earlier = _checked(time, "")
    first = dt.datetime.strptime(earlier[:14], "%Y%m%d%H%M%S") + dt.timedelta(
        milliseconds=int(earlier[14:] or 0) - 1
    )
    return first.strftime("%Y%m%d%H%M%S") + f"{first.microsecond // 1000:03d}"


def _checked(digits: str, called: str) -> str:
    """Digits that can stand on a timeline, or bound it: a zero stands before every instant, nines behind.

    Other digits of another length, such as the version 5 of other table formats, would as text sort before or after all
    instants of a time, and so give no row or every row.
    """
    if digits.startswith("0") or not digits.strip("9") or len(digits) > _LONGEST_TIME:
        return digits
    try:
        if len(digits) not in _DIGITS_OF_TIMES:
            raise ValueError
        dt.datetime.strptime(digits[:14], "%Y%m%d%H%M%S")
    except ValueError:
        raise _no_instant(digits, called) from None
    return digits


def _no_instant(found: object, called: str) -> InvalidInput:
    subject = f"{called} is {found!r}, which" if called else f"{found!r}"
    kind = "" if isinstance(found, str) else f" (a text, date or datetime, not {type(found).__name__})"
    return InvalidInput(
        f"{subject} is no instant; expected {_FORMS}{kind}.",
        condition="INVALID_INSTANT",
        found=found,
        **({"key": called} if called else {}),
    )


def _parse(value: str | dt.date, called: str) -> dt.datetime:
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    text = value.strip()
    # Python before 3.11 takes neither a Z nor fractions of other than three or six digits.
    text = re.sub(r"[zZ]$", "+00:00", text)
    text = re.sub(r"\.(\d+)", lambda match: "." + match.group(1)[:6].ljust(6, "0"), text)
    text = re.sub(r"([+-]\d{2})(\d{2})$", r"\1:\2", text) if "T" in text or " " in text else text
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        raise _no_instant(value, called) from None
