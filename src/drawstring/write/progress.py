"""A progress bar in a terminal, for writes and services that take long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from drawstring.write.steps import Listener, track

_PATIENCE_SECONDS = 1.0
"""What is done sooner than this needs no bar."""


class ProgressBar:
    """Shows the step that runs, on standard error; nothing is drawn before it is worth it, or after it is over."""

    def __init__(self, title: str, *, console: Any = None, patience: float = _PATIENCE_SECONDS) -> None:
        self._title, self._console, self._patience = title, console, patience
        self._began = time.monotonic()
        self._bar: Any = None
        self._steps: list[tuple[str, int | None, int]] = []
        self._task: Any = None

    def begin(self, name: str, total: int | None) -> None:
        """Show a step."""
        self._steps.append((name, total, 0))
        self._show()

    def advance(self, count: int) -> None:
        """Move the bar."""
        if self._steps:
            name, total, done = self._steps[-1]
            self._steps[-1] = (name, total, done + count)
            self._show()

    def end(self) -> None:
        """Go back to the step around this one."""
        self._steps.pop()
        if self._steps:
            self._show()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self) -> None:
        if self._bar is None:
            if time.monotonic() - self._began < self._patience:
                return
            self._bar = _bar(self._console)
            self._bar.start()
            self._task = self._bar.add_task(self._title)
        name, total, done = self._steps[-1]
        self._bar.update(self._task, description=f"{self._title}: {name}", total=total, completed=done)


def _bar(console: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console or Console(stderr=True), transient=True)


def is_terminal() -> bool:
    """Whether somebody may be looking."""
    return bool(sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def showing(title: str, *, enabled: bool = True, watched: Callable[[], bool] = is_terminal) -> Iterator[None]:
    """Show the steps of what runs meanwhile, where a terminal is there to show them."""
    if not enabled or not watched():
        yield
        return
    bar = ProgressBar(title)
    listener: Listener = bar
    try:
        with track(listener):
            yield
    finally:
        bar.close()
