"""Timeline layout 2 (table versions 8 and 9): completion times in the names of completed instants."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import lru_cache

from drawstring.model.instant import Action, Instant, State
from drawstring.storage.base import FileInfo
from drawstring.timeline.actions import parse_action

_NAME = re.compile(r"^(\d{14,})(?:_(\d+))?\.([a-z]+)(?:\.(requested|inflight))?$")
_SUFFIXES = {"requested": State.REQUESTED, "inflight": State.INFLIGHT}


def parse_instant(entry: FileInfo, *, timezone: str = "UTC") -> Instant | None:
    """Return the instant a file stands for, or None when it is no instant.

    A completed file without completion time was carried over from layout 1: the time it was last modified
    stands in, written in the table's time zone.
    """
    instant = parse_name(entry.name)
    if instant is None or not needs_modification_time(instant):
        return instant
    return replace(instant, completion_time=instant_of_epoch(entry.modified_ms, timezone))


def needs_modification_time(instant: Instant) -> bool:
    """Whether an instant's name does not say when it completed."""
    return instant.state is State.COMPLETED and instant.completion_time is None


# A writer lists the whole timeline twice for each commit, and names never change what they say.
@lru_cache(maxsize=1 << 17)
def parse_name(name: str) -> Instant | None:
    """Return the instant that a name stands for; None when it is no instant."""
    match = _NAME.match(name)
    if match is None:
        return None
    requested, completed, word, suffix = match.groups()
    if word == "inflight":
        return Instant(requested, Action.COMMIT, State.INFLIGHT, None, name)
    action = parse_action(word, name)
    if suffix:
        return Instant(requested, action, _SUFFIXES[suffix], None, name)
    return Instant(requested, action, State.COMPLETED, completed, name)


def instant_of_epoch(epoch_ms: int, timezone: str) -> str:
    """Write epoch milliseconds as an instant time, in UTC or in this machine's zone (`LOCAL`)."""
    seconds, millis = divmod(epoch_ms, 1000)
    broken_down = time.gmtime(seconds) if timezone == "UTC" else time.localtime(seconds)
    return time.strftime("%Y%m%d%H%M%S", broken_down) + f"{millis:03d}"
