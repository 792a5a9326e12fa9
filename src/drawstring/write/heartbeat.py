"""Heartbeats: files by which a writer shows that it is alive, at the same place as those of Hudi's writers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from drawstring.config.concurrency_options import LAZY, NEVER, ConcurrencyOptions
from drawstring.model.instant import Instant
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write.clock import Clock
from drawstring.write.locks import Owner
from drawstring.write.signature import signed_by
from drawstring.write.table_facts import load_state

logger = logging.getLogger(__name__)

DIRECTORY = ".hoodie/.heartbeat"
_SILENT_SECONDS = 3600
_STAND_IN = b"Apache Hudi may roll this write back although others have completed since."


class Heartbeat:
    """A file whose time is refreshed in the background until it is stopped."""

    def __init__(self, storage: Storage, requested_time: str, *, interval_seconds: float = 60.0) -> None:
        self._storage = storage
        self._path = f"{DIRECTORY}/{requested_time}"
        self._content = Owner.me().to_bytes()
        self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{requested_time}", daemon=True)
        self._is_ours = False

    def start(self) -> bool:
        """Write the file and refresh it in the background. False when another writer has one for this instant."""
        self._is_ours = True  # an error, or an interrupt, may come after the file was made
        self._is_ours = self._storage.create_if_absent(self._path, self._content, durable=False)
        if self._is_ours:
            self._thread.start()
        return self._is_ours

    def stop(self) -> None:
        """Stop, and delete the file, unless it is another writer's."""
        self._halt()
        with suppress(OSError):
            if self._is_ours:
                self._storage.delete(self._path)

    def abandon(self) -> None:
        """Stop, and leave a file that names nobody alive: the next writer finishes or rolls back the instant."""
        self._halt()
        if not self._is_ours:
            return
        with suppress(OSError):
            self._storage.write(self._path, replace(Owner.me(), pid=-1, started="gone").to_bytes())

    def _halt(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        # Half of the announced interval, so that one late heartbeat does not count as missed.
        while not self._stop.wait(self._interval / 2):
            with suppress(OSError):
                self._storage.write(self._path, self._content, durable=False)


def is_dead(state: TableState, instant: Instant, options: ConcurrencyOptions, *, clock: Clock) -> bool:
    """Whether the writer of a pending instant counts as dead.

    A heartbeat that names a dead process of this machine proves it, and one that has gone cold counts as proof, as
    in Hudi. Without a heartbeat an instant that drawstring signed is judged by its signature. Of others nothing is
    known: such an instant is rolled back only where Hudi's policies say so, LAZY (every writer must have one) or EAGER
    when it was asked for (nobody else is at work).
    """
    if options.failed_writes == NEVER:
        return False
    storage, path = state.storage, f"{DIRECTORY}/{instant.requested_time}"
    try:
        return has_stopped(storage, path, options, clock=clock)
    except FileNotFoundError:
        if options.failed_writes == LAZY or options.rolls_back_without_heartbeat:
            return True
        return _is_abandoned(storage, _announced(state, instant), options, clock)


def stand_in(state: TableState, instant: Instant) -> None:
    """Make a heartbeat for a pending write of another engine that has none.

    Apache Hudi's only writer has no heartbeat. If it died, the next one rolls its write back, and fails for ever where
    commits were completed since, unless a heartbeat says that it was one of several writers. Nobody is taken for dead
    or alive by a heartbeat made here.
    """
    storage, time = state.storage, instant.requested_time
    is_foreign = signed_by(storage, _announced(state, instant)) is None
    if is_foreign and storage.create_if_absent(f"{DIRECTORY}/{time}", _STAND_IN, durable=False):
        logger.warning(
            "The write %s of %s is pending, and nothing tells whether its writer lives. If it died, Apache Hudi's "
            "next write rolls it back, or `drawstring rollback %s %s`.",
            *(time, storage.root, storage.root, time),
        )


def _announced(state: TableState, instant: Instant) -> str:
    return f"{state.config.timeline_directory}/{instant.file_name}"


def _is_abandoned(storage: Storage, path: str, options: ConcurrencyOptions, clock: Clock) -> bool:
    """Whether drawstring announced an instant, and its writer is dead.

    One that was taken for dead too early lost its heartbeat. As long as it lives it makes another, so that an instant
    that is older than heartbeats may be, and has none, counts like one whose heartbeat has gone cold.
    """
    owner = signed_by(storage, path)
    with suppress(FileNotFoundError):
        return owner is not None and _has_stopped(storage, path, owner, options, clock)
    return False


def has_stopped(storage: Storage, path: str, options: ConcurrencyOptions, *, clock: Clock) -> bool:
    """Whether a heartbeat says that its writer is dead; raises FileNotFoundError without one."""
    content = storage.read(path)
    if content == _STAND_IN:
        raise FileNotFoundError(path)
    return _has_stopped(storage, path, Owner.parse(content), options, clock)


def _has_stopped(
    storage: Storage, path: str, owner: Owner | None, options: ConcurrencyOptions, clock: Clock
) -> bool:
    if owner is not None and owner.is_dead:
        return True
    return clock() - storage.stat(path).modified_ms > options.heartbeat_expiry_seconds * 1000


def sweep(
    storage: Storage,
    names: Iterable[str],
    pending: Iterable[Instant],
    options: ConcurrencyOptions,
    *,
    clock: Clock,
) -> None:
    """Delete heartbeats that drawstring's dead writers left, of instants that are not pending any more.

    That of a live writer stays: one that has lost the lock may be about to announce its instant, and without a
    heartbeat nobody could tell later that it died. It may have done so since `pending` was looked up, and died after
    that: once it is dead, the timeline is looked at again.
    """
    kept = {instant.requested_time for instant in pending}
    stopped = [name for name in names if name not in kept and _is_left(storage, name, options, clock)]
    if stopped:
        kept = {instant.requested_time for instant in load_state(storage).timeline.pending}
    for name in stopped:
        if name not in kept:
            with suppress(OSError):
                storage.delete(f"{DIRECTORY}/{name}")


def _is_left(storage: Storage, name: str, options: ConcurrencyOptions, clock: Clock) -> bool:
    """Whether the writer of a heartbeat is dead, or silent for so long that it will not wake up, or has none."""
    path = f"{DIRECTORY}/{name}"
    with suppress(OSError):
        content = storage.read(path)
        if content == _STAND_IN:
            return True
        owner = Owner.parse(content)
        silent_ms = clock() - storage.stat(path).modified_ms
        expiry_ms = max(options.heartbeat_expiry_seconds, _SILENT_SECONDS) * 1000
        return owner is not None and (owner.is_dead or silent_ms > expiry_ms)
    return False


def heartbeats(storage: Storage) -> list[str]:
    """Return the instants that have a heartbeat."""
    try:
        return [entry.name for entry in storage.list(DIRECTORY) if entry.name.isdigit()]
    except FileNotFoundError:
        return []
