"""A lock among the threads of one process, as Hudi's InProcessLockProvider."""

from __future__ import annotations

import os
import threading
import uuid
from dataclasses import dataclass

from drawstring.errors import CommitConflict
from drawstring.storage.base import Storage
from drawstring.storage.local import LocalStorage
from drawstring.write.locks.base import not_acquired

_LOCKS: dict[str, _TableLock] = {}
_GUARD = threading.Lock()


class _TableLock:
    def __init__(self) -> None:
        self.free = threading.Condition()
        self.token: str | None = None
        self.thread: threading.Thread | None = None


@dataclass(frozen=True)
class InProcessLease:
    """One thread's turn; other threads may end it."""

    token: str
    lock: _TableLock

    def is_held(self) -> bool:
        """Whether this turn has not ended."""
        return self.lock.token == self.token

    def release(self, *, expected: bool = True) -> None:
        """End the turn, once; no folder holds it."""
        with self.lock.free:
            if self.lock.token == self.token:
                self.lock.token = self.lock.thread = None
                self.lock.free.notify()


@dataclass(frozen=True)
class InProcessLockProvider:
    """Excludes the threads of this process from each other, per base path of a table.

    Other processes are not excluded: the fencing slots alone order their commits.
    """

    storage: Storage

    @property
    def path(self) -> str:
        """No file."""
        return ""

    def acquire(self, *, wait_seconds: float) -> InProcessLease:
        """Take the lock; a thread that holds it already is refused at once."""
        lock = _lock_of(_key(self.storage))
        token = uuid.uuid4().hex
        with lock.free:
            if lock.token is not None and lock.thread is threading.current_thread():
                raise self._failure(lock, 0.0)
            if not lock.free.wait_for(lambda: lock.token is None, timeout=max(wait_seconds, 0)):
                raise self._failure(lock, wait_seconds)
            lock.token, lock.thread = token, threading.current_thread()
        return InProcessLease(token, lock)

    def _failure(self, lock: _TableLock, waited: float) -> CommitConflict:
        name = lock.thread.name if lock.thread else "a thread"
        return not_acquired(
            self.storage.root,
            "the lock of this process",
            holder=f"thread {name} of this process",
            advice="Try again when that write has ended, or raise hoodie.write.lock.wait_time_ms.",
            waited=waited,
        )


def _key(storage: Storage) -> str:
    if isinstance(storage, LocalStorage):
        return os.path.realpath(storage.local_path(""))
    return storage.root.rstrip("/")


def _lock_of(key: str) -> _TableLock:
    with _GUARD:
        return _LOCKS.setdefault(key, _TableLock())


def _forget_after_fork() -> None:
    # The threads that hold locks do not exist in the child.
    global _GUARD
    _GUARD = threading.Lock()
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
