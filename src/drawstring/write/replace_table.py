"""Replacing a whole table: the new one is made beside the old one, and both are exchanged in one step."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.errors import CommitConflict, UnsupportedTable
from drawstring.storage import LocalStorage, Storage
from drawstring.storage.table_properties import PROPERTIES, is_table
from drawstring.timeline.timeline import Timeline
from drawstring.write import slots
from drawstring.write.locks import Lease, Owner, lock_provider, table_lock
from drawstring.write.markers import TEMP
from drawstring.write.slots import Decision
from drawstring.write.table_facts import load_state
from drawstring.write.unused_folders import drop_folders

logger = logging.getLogger(__name__)
R = TypeVar("R")
_FOLDER, _OWNER = "overwrite-", "owner"
_at_work: set[str] = set()
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP)


def replace_table(storage: Storage, write: Callable[[Storage], R], *, options: ConcurrencyOptions) -> R:
    """Let `write` make a table in an empty place, then put it where the old one is.

    The old table stays readable, and stays for good when the write fails; the rows may come from it. Writes that
    complete meanwhile are not thrown away: they end in `CommitConflict`, and the old table stays. Raises
    `UnsupportedTable` on stores that cannot exchange two directories in one step.
    """
    if not isinstance(storage, LocalStorage):
        raise _cannot_exchange(storage.root)
    name = f"{_FOLDER}{uuid.uuid4().hex[:8]}"
    fresh = _beside(storage, name)
    before = load_state(storage).timeline
    _at_work.add(name)
    try:
        _sign(storage, name)
        result = write(fresh)
        _sign(fresh, name)
        _replace(storage, fresh, before, options)
    finally:
        # By now this is the old table, or what was made of the new one before it failed.
        _drop(storage, name)
        _at_work.discard(name)
    return result


def _beside(storage: LocalStorage, name: str) -> LocalStorage:
    """Return where the new table is made: in the old one's parent, which alone both can be exchanged in."""
    home = storage.local_path("")
    suffix = name.removeprefix(_FOLDER)
    return storage.sibling(f".{os.path.basename(home)}.new-{suffix}")


def _sign(storage: LocalStorage, name: str) -> None:
    """Note in a table who makes, or throws away, what lies beside it: whoever finds a dead owner does the rest.

    Both tables carry the note when they are exchanged, so that the one at the table's path always has it.
    """
    storage.write(f"{TEMP}/{name}/{_OWNER}", Owner.me().to_bytes(), durable=False)


def _drop(storage: LocalStorage, name: str) -> None:
    """Delete what lies beside the table, once it is durable which of both that is; else leave it to the next write.

    A power cut may undo an exchange that is not durable: then the old table, whole, is at the table's path again.
    """
    beside = _beside(storage, name)
    try:
        storage.sync_parent()
    except OSError:
        logger.warning(
            "The folder of %s could not be synced to disk, so that a power cut may undo its last overwrite; %s is kept "
            "until a later write can sync it.",
            storage.root,
            beside.root,
            exc_info=True,
        )
        return
    shutil.rmtree(beside.local_path(""), ignore_errors=True)
    if not os.path.exists(beside.local_path("")):
        with suppress(OSError):
            storage.delete(f"{TEMP}/{name}", recursive=True)


def sweep_overwrites(storage: Storage, folders: Iterable[str]) -> None:
    """Throw away what overwrites left beside the table when their processes died; `folders` are those in `TEMP`."""
    for name in folders:
        if name.startswith(_FOLDER) and isinstance(storage, LocalStorage):
            with suppress(OSError):
                owner = Owner.parse(storage.read(f"{TEMP}/{name}/{_OWNER}"))
                if owner is not None and _has_ended(owner, name):
                    _drop(storage, name)


def _has_ended(owner: Owner, name: str) -> bool:
    return name not in _at_work if owner.is_this_process else owner.is_dead


def _replace(
    storage: LocalStorage, fresh: LocalStorage, before: Timeline, options: ConcurrencyOptions
) -> None:
    lease = lock_provider(storage, options.lock_settings).acquire(wait_seconds=options.lock_wait_seconds)
    exchanged = False
    try:
        number = slots.settle(storage)
        _require_same(storage, before, load_state(storage).timeline)
        _exchange(storage, fresh, number + 1)
        exchanged = True
    finally:
        _give_back(lease, storage, gone=exchanged)


def _give_back(lease: Lease, storage: LocalStorage, *, gone: bool) -> None:
    """Release the lock, which has gone away with the old table: failing to do so undoes nothing."""
    try:
        lease.release(expected=not gone)
    except OSError:
        if not gone:
            raise
        logger.warning("Could not release the lock of %s.", storage.root, exc_info=True)


def _require_same(storage: Storage, before: Timeline, now: Timeline) -> None:
    if before.completed_writes != now.completed_writes:
        raise CommitConflict(
            f"The table at {storage.root} was not overwritten: another write completed since. It is as that write "
            "left it; run the overwrite again.",
            condition="CONCURRENT_COMMIT",
            path=storage.root,
            other=now.completed_writes[-1].requested_time if now.completed_writes else None,
        )


def _exchange(storage: LocalStorage, fresh: LocalStorage, number: int) -> None:
    """Decide by a slot in the old table, and begin the new one's slots after it.

    A writer of the old table that sleeps through all of this finds the next slot taken, in either table.
    """
    decision = Decision("overwrite", (), creates=PROPERTIES)
    if number > slots.newest(fresh):
        fresh.create_if_absent(slots.slot_path(number), decision.to_bytes())
    if not slots.take(storage, number, decision):
        raise CommitConflict(
            f"The table at {storage.root} was not overwritten: another writer changed it at the same moment. Run the "
            "overwrite again.",
            condition="OVERTAKEN",
            path=storage.root,
        )
    try:
        storage.exchange(fresh)
    except OSError as error:
        if error.errno in _CANNOT:
            raise _cannot_exchange(storage.root) from error
        raise


def _cannot_exchange(path: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"Cannot overwrite the table at {path}: its file system cannot exchange two directories in one step, and "
        "anything else could lose the table. Use the operation insert_overwrite_table, which replaces all rows in one "
        "commit, or delete the table first.",
        condition="OVERWRITE_NOT_ATOMIC",
        operation="write",
        path=path,
    )


def drop_if_unused(storage: Storage, *, options: ConcurrencyOptions) -> None:
    """Take back a table that a failed write made, unless somebody has begun to use it.

    New tables are made under the lock too, so nobody can make one here in between. Failing to is logged.
    """
    provider = lock_provider(storage, options.lock_settings)
    try:
        with table_lock(storage, wait_seconds=options.lock_wait_seconds, provider=provider) as lease:
            settings = storage.read(PROPERTIES)
            if load_state(storage).timeline.ascending_instants or _has_decisions(storage):
                return
            # Another table that was made here while the lease lapsed has other settings.
            if storage.replace_if(PROPERTIES, settings, None):
                _drop_folders(storage, lease, provider.path)
        _drop_empty_directories(storage)
    except Exception:
        logger.warning("Could not take back the empty table at %s.", storage.root, exc_info=True)


def _drop_folders(storage: Storage, lease: Lease, lock: str) -> None:
    """Delete what settings no longer make a table, but for the folder of the lock, which is held."""

    def is_unused() -> bool:
        return lease.is_held() and not is_table(storage)

    folders = [entry.path for entry in storage.list(".hoodie") if entry.is_directory]
    dropped = [path for path in folders if path != TEMP and not lock.startswith(f"{path}/")]
    if drop_folders(storage, dropped, is_unused) and is_unused() and not lock.startswith(f"{TEMP}/"):
        storage.delete(TEMP, recursive=True)


def _has_decisions(storage: Storage) -> bool:
    """Whether anything was decided but that the empty table has a metadata table."""
    found = (slots.read_slot(storage, number) for number in slots.numbers(storage))
    return any(decision is None or not decision.instant.startswith("metadata_") for decision in found)


def _drop_empty_directories(storage: Storage) -> None:
    if isinstance(storage, LocalStorage):
        for path in (".hoodie", ""):
            with suppress(OSError):
                os.rmdir(storage.local_path(path))
