"""The file that Hudi's FileSystemBasedLockProvider takes as well: whoever can create it holds the lock."""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

from drawstring.errors import CommitConflict
from drawstring.storage.base import Storage
from drawstring.write.locks.base import not_acquired, wait_for
from drawstring.write.locks.owner import Owner
from drawstring.write.locks.renewal import Renewal

logger = logging.getLogger(__name__)

LOCK_NAME = "lock"
_MARK_AFTER_SECONDS = 0.05
_COURTESY_SECONDS = 0.05

_in_use: set[str] = set()
"""Tokens of this process that are held or about to be: a lock of this process with another token was left behind."""
_released: dict[str, float] = {}
_state_lock = threading.Lock()


@dataclass(frozen=True)
class FileSystemLockProvider:
    """A lock file in `directory` of `storage`, which is the table's `.hoodie` unless a path was set.

    A lock of drawstring is taken over only when its owner is proven dead. A lock of Apache Hudi names no process, and
    one of another machine cannot be judged: both stand, unless `expire_minutes` is set and has gone by since the file
    was last written, which is what Hudi takes that setting to mean. 0 is never.
    """

    storage: Storage
    directory: str = ".hoodie"
    expire_minutes: int = 0

    @property
    def path(self) -> str:
        """The lock file, relative to the storage."""
        return f"{self.directory}/{LOCK_NAME}" if self.directory else LOCK_NAME

    @property
    def _waiting(self) -> str:
        return f"{self.directory}/.{LOCK_NAME}.waiting" if self.directory else f".{LOCK_NAME}.waiting"

    def acquire(self, *, wait_seconds: float) -> FileSystemLease:
        """Take the lock; raises `CommitConflict` naming the holder when it cannot be had in time."""
        self._let_others_in()
        owner = Owner.me()
        began = time.monotonic()
        _use(owner.token)
        try:
            if self.storage.replace_if(self.path, None, owner.to_bytes()):
                return FileSystemLease(self, owner)
            return wait_for(
                lambda: self._attempt(owner, began),
                wait_seconds=wait_seconds,
                failure=lambda: self._failure(wait_seconds),
            )
        except BaseException:
            # An interrupt may have come just after the file was made.
            with suppress(Exception):
                self.storage.replace_if(self.path, owner.to_bytes(), None)
            _forget(owner.token)
            raise
        finally:
            # Others who wait leave it again.
            if time.monotonic() - began > _MARK_AFTER_SECONDS:
                self._unmark()

    def _attempt(self, owner: Owner, began: float) -> FileSystemLease | None:
        with suppress(TimeoutError):
            found = _read(self.storage, self.path)
            free = found is None or self._may_take_over(found)
            if free and self.storage.replace_if(self.path, found, owner.to_bytes()):
                return FileSystemLease(self, owner)
        # Looking is cheap, making a file is not: many who wait would keep the machine busy with it.
        if time.monotonic() - began > _MARK_AFTER_SECONDS and not self.storage.exists(self._waiting):
            self.storage.replace_if(self._waiting, None, b"")
        return None

    def _may_take_over(self, content: bytes) -> bool:
        holder = Owner.parse(content)
        if holder is not None and holder.is_this_process:
            return holder.token not in _in_use
        if holder is not None and holder.is_dead:
            logger.warning("Taking over the lock of %s, whose owner, %s, died.", self.storage.root, holder)
            return True
        return self._is_expired() and not (holder is not None and _is_neighbour(holder))

    def _is_expired(self) -> bool:
        if not self.expire_minutes:
            return False
        with suppress(FileNotFoundError):
            age = time.time() * 1000 - self.storage.stat(self.path).modified_ms
            return age > self.expire_minutes * 60_000
        return False

    # A process that takes the lock again right after it gave it back would keep all others out, because they look only
    # now and then. Whoever has waited for a while leaves a mark, and a process that has just had its turn steps aside
    # for a moment when it finds one.
    def _let_others_in(self) -> None:
        last = _released.get(self._key, 0.0)
        if last and time.monotonic() - last < _COURTESY_SECONDS and self.storage.exists(self._waiting):
            self._unmark()
            time.sleep(random.uniform(0.3, 1.0) * _COURTESY_SECONDS)

    def _unmark(self) -> None:
        with suppress(OSError):
            self.storage.delete(self._waiting)

    @property
    def _key(self) -> str:
        return f"{self.storage.root}/{self.path}"

    def _failure(self, waited: float) -> CommitConflict:
        content = _read(self.storage, self.path)
        holder = Owner.parse(content or b"")
        known = holder is not None and _is_neighbour(holder)
        advice = "Try again when that writer is done, or raise hoodie.write.lock.wait_time_ms."
        if not known:
            advice += (
                " If that writer is dead, delete the lock file, or set hoodie.write.lock.filesystem.expire."
            )
        return not_acquired(
            self.storage.root, self.path, holder=_describe(content, holder), advice=advice, waited=waited
        )


@dataclass
class FileSystemLease:
    """The lock file as this holder wrote it."""

    provider: FileSystemLockProvider
    owner: Owner
    _pid: int = field(default_factory=os.getpid)
    _renewal: Renewal | None = None

    def __post_init__(self) -> None:
        if self.provider.expire_minutes:
            # For others the lock expires by the time of the file.
            every = self.provider.expire_minutes * 60 / 3
            self._renewal = Renewal(self._renew, every_seconds=every, name=f"lock-{self.token}")

    @property
    def token(self) -> str:
        """The token of this turn."""
        return self.owner.token

    def _renew(self) -> bool:
        content = self.owner.to_bytes()
        return self.provider.storage.replace_if(self.provider.path, content, content)

    def is_held(self) -> bool:
        """Whether the file still names this holder; in a forked child it never does."""
        if os.getpid() != self._pid:
            return False
        return _read(self.provider.storage, self.provider.path) == self.owner.to_bytes()

    def release(self, *, expected: bool = True) -> None:
        """Delete the file if it is still this holder's."""
        if os.getpid() != self._pid:
            return
        if self._renewal is not None:
            self._renewal.stop()
        provider = self.provider
        try:
            released = provider.storage.replace_if(provider.path, self.owner.to_bytes(), None)
            if expected and not released:
                logger.warning(
                    "The lock %s of %s was lost before it was released.", provider.path, provider.storage.root
                )
        finally:
            _forget(self.token)
            _released[provider._key] = time.monotonic()


def _use(token: str) -> None:
    with _state_lock:
        _in_use.add(token)


def _forget(token: str) -> None:
    with _state_lock:
        _in_use.discard(token)


def _is_neighbour(holder: Owner) -> bool:
    """Whether the holder is a process that this one can see, so that its death would be known."""
    me = Owner.me()
    same = (holder.boot, holder.pid_namespace) == (me.boot, me.pid_namespace)
    return same and bool(me.boot and me.pid_namespace)


def _read(storage: Storage, path: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return storage.read(path)
    return None


def _describe(content: bytes | None, holder: Owner | None) -> str:
    if holder is not None:
        return str(holder)
    with suppress(ValueError, TypeError, AttributeError):
        found = json.loads(content or b"")
        if "lockThreadName" in found:
            return f"Apache Hudi (thread {found['lockThreadName']}, since {found.get('lockCreateTime')})"
    # Hudi 1.2 leaves its file empty.
    return "another writer that left no name, such as Apache Hudi"
