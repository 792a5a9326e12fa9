"""Tracks which step of a write or service is running and how long each took, for progress bars, logs and results.

The outermost function calls `track`; the functions within it call `step` and `advance` without knowing who listens.
Without a listener both cost next to nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")


class Listener(Protocol):
    """Somebody who wants to know what runs now."""

    def begin(self, name: str, total: int | None) -> None:
        """A step begins; `total` is how often it will advance, None when that is not known."""
        ...

    def advance(self, count: int) -> None:
        """The step is further by so much."""
        ...

    def end(self) -> None:
        """The step is over; the one around it goes on, if there is one."""
        ...


class Steps:
    """The steps of one write or service: seconds by name, in the order in which they began."""

    def __init__(self, listeners: tuple[Listener, ...] = ()) -> None:
        self._listeners = listeners
        self._seconds: dict[str, float] = {}

    @property
    def seconds(self) -> Mapping[str, float]:
        """How long each step took so far; a step within another counts in both."""
        return dict(self._seconds)

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[None]:
        """Run a step."""
        began = time.perf_counter()
        self._seconds.setdefault(name, 0.0)
        for listener in self._listeners:
            listener.begin(name, total)
        try:
            yield
        finally:
            self._seconds[name] += time.perf_counter() - began
            for listener in self._listeners:
                listener.end()

    def advance(self, count: int = 1) -> None:
        """Say that the step that runs is further by so much."""
        for listener in self._listeners:
            listener.advance(count)


_tracked: ContextVar[Steps | None] = ContextVar("drawstring_steps", default=None)


@contextmanager
def track(*listeners: Listener) -> Iterator[Steps]:
    """Take note of the steps that run meanwhile; what runs inside another tracked thing is told to both."""
    around = _tracked.get()
    inherited = around._listeners if around is not None else ()
    steps = Steps((*inherited, *listeners))
    token = _tracked.set(steps)
    try:
        yield steps
    finally:
        _tracked.reset(token)


@contextmanager
def step(name: str, total: int | None = None) -> Iterator[None]:
    """Name what runs now."""
    steps = _tracked.get()
    with ExitStack() as stack:
        if steps is not None:
            stack.enter_context(steps.step(name, total))
        yield


def advance(count: int = 1) -> None:
    """Say that the step that runs is further by so much."""
    steps = _tracked.get()
    if steps is not None:
        steps.advance(count)


def advancing(found: Iterable[T]) -> Iterator[T]:
    """Yield what comes, and advance by one for each."""
    for one in found:
        yield one
        advance()
