"""The CHANGES clause of Spark 4.2 and later: its bounds as options of a changelog read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from drawstring.config.read_options import BEGIN, CHANGELOG, CHANGELOG_COMMITS, END, NET_CHANGES
from drawstring.config.stream_options import START_OFFSET
from drawstring.planning.times import instant_time, just_before
from drawstring.spark import wire

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class ChangelogAsked:
    """Changes between two commits, or two moments in microseconds since 1970; without a start from the first on."""

    net: bool
    start_inclusive: bool
    end_inclusive: bool
    start: str | None = None
    end: str | None = None
    start_micros: int | None = None
    end_micros: int | None = None


@dataclass(frozen=True)
class ChangelogOptions:
    """The options of the read, and of the stream, that return them."""

    options: dict[str, str]


def changelog_options(payload: str) -> str:
    """Turn the bounds of a CHANGES clause into those of a changelog read, which begins after a time."""
    asked = wire.from_json(ChangelogAsked, payload)
    begin = _last_before(asked.start, asked.start_micros, included=not asked.start_inclusive)
    end = _last_before(asked.end, asked.end_micros, included=asked.end_inclusive)
    options = {CHANGELOG.key: "true", CHANGELOG_COMMITS.key: "true", NET_CHANGES.key: str(asked.net).lower()}
    options |= {BEGIN.key: begin, START_OFFSET.key: begin} if begin is not None else {}
    options |= {END.key: end} if end is not None else {}
    return wire.to_json(ChangelogOptions(options))


def _last_before(version: str | None, micros: int | None, *, included: bool) -> str | None:
    """The last time that is not after a bound, or is before it; None where there is no bound."""
    if version is not None:
        time = instant_time(version, whole_second=included, called="VERSION")
        return time if included else just_before(time)
    if micros is None:
        return None
    millis = micros // 1000 if included else -(-micros // 1000) - 1
    return (_EPOCH + dt.timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")


CHANGELOG_HANDLERS: dict[str, Callable[[str], str]] = {"changelog_options": changelog_options}
"""The requests answered here, by kind."""
