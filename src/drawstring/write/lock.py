"""The table's lock: a file that only one process can create, where Hudi's file-system lock lies as well."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from drawstring.errors import CommitConflict
from drawstring.storage.base import Storage

LOCK = ".hoodie/lock"
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Owner:
    """A process, told apart from a later one of the same number by when it started."""

    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def me(cls) -> Owner:
        """This process, with a token of its own for each use."""
        return cls(socket.gethostname(), os.getpid(), _started(os.getpid()), uuid.uuid4().hex)

    def to_bytes(self) -> bytes:
        """Return the owner as the content of a file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, content: bytes) -> Owner | None:
        """Return the owner a file names; None when the file is not drawstring's."""
        try:
            return cls(**json.loads(content))
        except (ValueError, TypeError):
            return None

    @property
    def is_dead(self) -> bool:
        """Whether the process is known to be gone; of other machines nothing is known."""
        if self.host != socket.gethostname():
            return False
        found = _started(self.pid)
        return not found or found != self.started

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextmanager
def table_lock(storage: Storage, *, wait_seconds: float = 60.0) -> Iterator[None]:
    """Hold the table's lock.

    The lock has no expiry: a paused owner must not lose it and go on. Only a lock whose owner is a dead
    process of this machine is taken over. Raises `CommitConflict` when it cannot be had in time.
    """
    owner = Owner.me()
    deadline = time.monotonic() + wait_seconds
    while not storage.create_if_absent(LOCK, owner.to_bytes()):
        _break_if_dead(storage)
        if time.monotonic() > deadline:
            raise _held(storage, wait_seconds)
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        _release(storage, owner)


def _release(storage: Storage, owner: Owner) -> None:
    if _holder(storage) == owner:
        storage.delete(LOCK)


def _break_if_dead(storage: Storage) -> None:
    holder = _holder(storage)
    if holder is None or not holder.is_dead:
        return
    # Of several waiters only one may remove this very lock; the tombstone stays, so that a slow one
    # cannot remove the lock of whoever comes next.
    if storage.create_if_absent(f".hoodie/.temp/broken-lock-{holder.token}", b"") and (
        _holder(storage) == holder
    ):
        storage.delete(LOCK)


def _holder(storage: Storage) -> Owner | None:
    with suppress(FileNotFoundError):
        return Owner.parse(storage.read(LOCK))
    return None


def _held(storage: Storage, waited: float) -> CommitConflict:
    holder = _holder(storage)
    return CommitConflict(
        f"The table {storage.root} is locked by {holder or 'another writer'}: {LOCK} was not released within "
        f"{waited:g} s. Try again; if that writer is dead, delete the file.",
        condition="TABLE_LOCKED",
        path=storage.root,
        holder=str(holder) if holder else None,
    )


def _started(pid: int) -> str:
    """When a process of this machine started, in the kernel's ticks; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return _alive_without_proc(pid)


def _alive_without_proc(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return ""
    return "running"
