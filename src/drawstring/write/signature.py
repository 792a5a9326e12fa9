"""Who announced an instant, told by the files of the instant itself.

A heartbeat can be lost before its writer announces: by one that took it for dead, and swept. What is made together with
the instant cannot be.
"""

from __future__ import annotations

from contextlib import suppress

from drawstring.errors import CorruptTable
from drawstring.storage.base import Storage
from drawstring.timeline.commit_metadata import parse_record
from drawstring.write.locks import Owner

WRITER = "drawstring.writer"


def signature() -> dict[str, str]:
    """Return what the pending files of an instant say of this process, beside what Hudi's writers say."""
    return {WRITER: Owner.me().to_bytes().decode()}


def signed_by(storage: Storage, path: str) -> Owner | None:
    """Return who made a pending instant's file; None for a file of another engine."""
    with suppress(CorruptTable, AttributeError, FileNotFoundError):
        extra = (parse_record(storage.read(path), source=path) or {}).get("extraMetadata") or {}
        return Owner.parse(extra.get(WRITER, "").encode())
    return None
