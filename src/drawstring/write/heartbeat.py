"""Heartbeats: how a writer tells others that it is alive, in the place where Hudi's writers do."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace

from drawstring.storage.base import Storage
from drawstring.write.clock import Clock
from drawstring.write.locks import Owner

DIRECTORY = ".hoodie/.heartbeat"
INTERVAL_SECONDS = 30.0
TOLERATED_SECONDS = 120.0
"""Two of Hudi's default intervals: after this long without a beat a writer counts as dead."""


class Heartbeat:
    """A file whose time is refreshed in the background until it is stopped."""

    def __init__(self, storage: Storage, requested_time: str) -> None:
        self._storage = storage
        self._path = f"{DIRECTORY}/{requested_time}"
        self._content = Owner.me().to_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"heartbeat-{requested_time}", daemon=True)

    def start(self) -> None:
        """Beat once, then go on in the background."""
        self._storage.write(self._path, self._content)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and take the file away."""
        self._halt()
        with suppress(OSError):
            self._storage.delete(self._path)

    def abandon(self) -> None:
        """Stop, and leave a file that names nobody alive: the next writer may roll the instant back."""
        self._halt()
        with suppress(OSError):
            self._storage.write(self._path, replace(Owner.me(), pid=-1, started="gone").to_bytes())

    def _halt(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            with suppress(OSError):
                self._storage.write(self._path, self._content)


def is_abandoned(storage: Storage, requested_time: str, *, clock: Clock) -> bool:
    """Whether the drawstring writer of an instant is known to be gone.

    Its heartbeat must be there, and either name a dead process of this machine or have gone cold. A writer
    without heartbeat may be a Hudi job at work: nothing is known of it.
    """
    path = f"{DIRECTORY}/{requested_time}"
    try:
        owner = Owner.parse(storage.read(path))
        age_ms = clock() - storage.stat(path).modified_ms
    except FileNotFoundError:
        return False
    return owner is not None and (owner.is_dead or age_ms > TOLERATED_SECONDS * 1000)
