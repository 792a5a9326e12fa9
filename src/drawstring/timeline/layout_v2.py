"""Timeline layout 2 (table versions 8 and 9): completion times in the names of completed instants."""

from __future__ import annotations

import re
import time

from drawstring.model.instant import Action, Instant, State
from drawstring.storage.base import FileInfo
from drawstring.timeline.actions import parse_action

_NAME = re.compile(r"^(\d{14,})(?:_(\d+))?\.([a-z]+)(?:\.(requested|inflight))?$")


def parse_instant(entry: FileInfo, *, timezone: str = "UTC") -> Instant | None:
    """Return the instant a file stands for, or None when it is no instant.

    A completed file without completion time was carried over from layout 1: the time it was last modified
    stands in, written in the table's time zone.
    """
    match = _NAME.match(entry.name)
    if match is None:
        return None
    requested, completed, word, suffix = match.groups()
    if word == "inflight":
        return Instant(requested, Action.COMMIT, State.INFLIGHT, None, entry.name)
    action = parse_action(word, entry)
    if suffix:
        return Instant(requested, action, State(suffix), None, entry.name)
    completed = completed or instant_of_epoch(entry.modified_ms, timezone)
    return Instant(requested, action, State.COMPLETED, completed, entry.name)


def instant_of_epoch(epoch_ms: int, timezone: str) -> str:
    """Write epoch milliseconds as an instant time, in UTC or in this machine's zone (`LOCAL`)."""
    seconds, millis = divmod(epoch_ms, 1000)
    broken_down = time.gmtime(seconds) if timezone == "UTC" else time.localtime(seconds)
    return time.strftime("%Y%m%d%H%M%S", broken_down) + f"{millis:03d}"
