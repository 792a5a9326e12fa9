"""A lease in `table_lock.json`, changed by conditional writes only: Hudi's StorageBasedLockProvider (RFC-91)."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from drawstring.errors import CommitConflict, CorruptTable, DrawstringError
from drawstring.storage.base import Storage
from drawstring.write.locks.base import not_acquired, wait_for
from drawstring.write.locks.owner import Owner
from drawstring.write.locks.renewal import Renewal

logger = logging.getLogger(__name__)

LOCK_FILE = ".hoodie/.locks/table_lock.json"
CLOCK_DRIFT_MS = 500
"""How far the clocks of two writers are taken to be apart, as in Hudi."""


def _now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class LockData:
    """The content of the lock file. `holder` is drawstring's own; Hudi ignores fields that it does not know."""

    expired: bool
    valid_until: int
    owner: str
    holder: Owner | None = None

    def to_bytes(self) -> bytes:
        """Return the JSON that Hudi reads."""
        found = {"expired": self.expired, "validUntil": self.valid_until, "owner": self.owner}
        return json.dumps({**found, **({"holder": asdict(self.holder)} if self.holder else {})}).encode()

    @classmethod
    def parse(cls, content: bytes, path: str) -> LockData:
        """Read the JSON of either writer; raises `CorruptTable` when it is none."""
        try:
            found = json.loads(content)
            data = cls(found["expired"], found["validUntil"], found["owner"])
            if not isinstance(data.expired, bool) or not isinstance(data.valid_until, int):
                raise TypeError
        except (ValueError, TypeError, KeyError):
            raise CorruptTable(
                f"The lock file {path} is not what a storage-based lock writes: expected JSON with expired, validUntil "
                f"and owner, found {content[:80]!r}. If no writer is at work, delete it.",
                condition="LOCK_FILE_INVALID",
                path=path,
            ) from None
        return replace(data, holder=Owner.parse(json.dumps(found.get("holder")).encode()))

    def is_free(self, now_ms: int) -> bool:
        """Whether another writer may take it: given back, lapsed for certain, or its holder is proven dead."""
        lapsed = self.expired or now_ms > self.valid_until + CLOCK_DRIFT_MS
        return lapsed or (self.holder is not None and self.holder.is_dead)


@dataclass(frozen=True)
class StorageBasedLockProvider:
    """A lease of `validity_seconds`, renewed every `renew_seconds` while it is held.

    A holder that does not renew in time loses the lease to the next writer, alive or not: what it publishes after
    that is fenced off by the slots, and `is_held` tells it before.
    """

    storage: Storage
    validity_seconds: float = 300
    renew_seconds: float = 30
    now_ms: Callable[[], int] = _now_ms

    @property
    def path(self) -> str:
        """The lock file, relative to the storage."""
        return LOCK_FILE

    def acquire(self, *, wait_seconds: float) -> StorageBasedLease:
        """Take the lease; raises `CommitConflict` naming the holder when it cannot be had in time."""
        owner = str(uuid.uuid4())
        try:
            data = wait_for(
                lambda: self._attempt(owner),
                wait_seconds=wait_seconds,
                failure=lambda: self._failure(wait_seconds),
            )
        except DrawstringError:
            raise
        except BaseException:
            # An interrupt may have come just after the lease was written.
            with suppress(Exception):
                self._expire_if_of(owner)
            raise
        return StorageBasedLease(self, data)

    def _attempt(self, owner: str) -> LockData | None:
        data = self.new_data(owner, Owner.me())
        if self.storage.replace_if(LOCK_FILE, None, data.to_bytes()):
            return data
        found = self.read()
        if found is None or not LockData.parse(found, self._named).is_free(self.now_ms()):
            return None
        with suppress(TimeoutError):
            if self.storage.replace_if(LOCK_FILE, found, data.to_bytes()):
                return data
        return None

    def new_data(self, owner: str, holder: Owner | None) -> LockData:
        """A lease that starts now."""
        return LockData(False, self.now_ms() + int(self.validity_seconds * 1000), owner, holder)

    def read(self) -> bytes | None:
        """The lock file as it is."""
        with suppress(FileNotFoundError):
            return self.storage.read(LOCK_FILE)
        return None

    def _expire_if_of(self, owner: str) -> None:
        found = self.read()
        if found is not None and (data := LockData.parse(found, self._named)).owner == owner:
            self.storage.replace_if(LOCK_FILE, found, replace(data, expired=True).to_bytes())

    @property
    def _named(self) -> str:
        return f"{self.storage.root}/{LOCK_FILE}"

    def _failure(self, waited: float) -> CommitConflict:
        found = self.read()
        data = LockData.parse(found, self._named) if found else None
        left = max(0.0, (data.valid_until - self.now_ms()) / 1000) if data else 0.0
        holder = (
            str(data.holder) if data and data.holder else f"the writer {data.owner if data else '(gone)'}"
        )
        return not_acquired(
            self.storage.root,
            LOCK_FILE,
            holder=holder,
            advice=f"Try again when that writer is done; if it is dead its lease ends by itself in {left:.0f} s.",
            waited=waited,
        )


class StorageBasedLease:
    """The lease as it was last written; a background thread renews it."""

    def __init__(self, provider: StorageBasedLockProvider, data: LockData) -> None:
        self._provider, self._data, self._pid = provider, data, os.getpid()
        self._changing = threading.Lock()
        self._renewal = Renewal(self.renew, every_seconds=provider.renew_seconds, name=f"lock-{data.owner}")

    @property
    def token(self) -> str:
        """The owner's id in the lock file."""
        return self._data.owner

    def renew(self) -> bool:
        """Extend the lease; False when another writer has it."""
        with self._changing:
            newer = self._provider.new_data(self.token, self._data.holder)
            if not self._swap(newer):
                logger.warning("The lease of %s is another writer's now.", self._provider.storage.root)
                return False
            self._data = newer
            return True

    def _swap(self, newer: LockData) -> bool:
        return self._provider.storage.replace_if(LOCK_FILE, self._data.to_bytes(), newer.to_bytes())

    def is_held(self) -> bool:
        """Whether the file names this holder and the lease, as any clock may see it, has not lapsed."""
        if os.getpid() != self._pid:
            return False
        with self._changing:
            ours = not self._data.expired and self._provider.read() == self._data.to_bytes()
            return ours and self._provider.now_ms() + CLOCK_DRIFT_MS < self._data.valid_until

    def release(self, *, expected: bool = True) -> None:
        """Mark the lease as given back if it is still this holder's, as Hudi does; the file stays."""
        if os.getpid() != self._pid:
            return
        self._renewal.stop()
        with self._changing:
            expired = replace(self._data, expired=True)
            if self._data.expired:
                return
            if self._swap(expired):
                self._data = expired
            elif expected:
                logger.warning(
                    "The lease of %s was lost before it was given back.", self._provider.storage.root
                )
