"""Timeline layout 1 (table versions up to 6): instants beside `hoodie.properties`, without completion times."""

from __future__ import annotations

import re

from drawstring.model.instant import Action, Instant, State
from drawstring.storage.base import FileInfo
from drawstring.timeline.actions import parse_action

_NAME = re.compile(r"^(\d{14,})\.([a-z]+)(?:\.(requested|inflight))?$")


def parse_instant(entry: FileInfo) -> Instant | None:
    """Return the instant a file stands for, or None when it is no instant."""
    match = _NAME.match(entry.name)
    if match is None:
        return None
    requested, word, suffix = match.groups()
    if word == "inflight":
        return Instant(requested, Action.COMMIT, State.INFLIGHT, None, entry.name)
    action = parse_action(word, entry.path)
    if suffix:
        return Instant(requested, action, State(suffix), None, entry.name)
    return Instant(requested, action, State.COMPLETED, requested, entry.name)
