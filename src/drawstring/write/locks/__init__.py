"""The table's lock, by one of Hudi's lock providers behind one protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.storage.base import Storage
from drawstring.write.locks.base import Lease, LockProvider
from drawstring.write.locks.file_system import FileSystemLockProvider
from drawstring.write.locks.in_process import InProcessLockProvider
from drawstring.write.locks.owner import Owner
from drawstring.write.locks.settings import lock_provider
from drawstring.write.locks.storage_based import StorageBasedLockProvider

__all__ = [
    "LOCK",
    "FileSystemLockProvider",
    "InProcessLockProvider",
    "Lease",
    "LockProvider",
    "Owner",
    "StorageBasedLockProvider",
    "configured_lock",
    "lock_provider",
    "table_lock",
]

LOCK = ".hoodie/lock"
"""Where the file-system lock lies by default."""


@contextmanager
def table_lock(
    storage: Storage, *, wait_seconds: float = 60.0, provider: LockProvider | None = None
) -> Iterator[Lease]:
    """Hold the table's lock, by the file-system provider unless another is given.

    Raises `CommitConflict` when it cannot be had in time.
    """
    lease = (provider or FileSystemLockProvider(storage)).acquire(wait_seconds=wait_seconds)
    try:
        yield lease
    finally:
        lease.release()


def configured_lock(storage: Storage, options: ConcurrencyOptions) -> AbstractContextManager[Lease]:
    """The table's lock by the provider and for the time that the options name: every writer must take the same."""
    provider = lock_provider(storage, options.lock_settings)
    return table_lock(storage, wait_seconds=options.lock_wait_seconds, provider=provider)
