"""Renewing a lease in the background while it is held."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Renewal:
    """Calls `renew` every so often until it says False or is stopped."""

    def __init__(self, renew: Callable[[], bool], *, every_seconds: float, name: str) -> None:
        self._renew, self._every = renew, every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a renewal that is under way."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                if not self._renew():
                    return
            except Exception:
                # The next round may succeed; a lease that lapses meanwhile is found lost by its owner check.
                logger.warning("Could not renew the lock (%s).", self._thread.name, exc_info=True)
