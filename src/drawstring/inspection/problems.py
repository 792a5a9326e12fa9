"""What is wrong with a table, gathered while the rest of it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from drawstring.errors import CorruptTable, DrawstringError, UnsupportedTable, error_class

T = TypeVar("T")
PROBLEMS = (CorruptTable, UnsupportedTable)
"""Errors that speak of the table, not of the question."""


@dataclass(frozen=True)
class Problem:
    """An error that reads of the table end in: the names are those of the error."""

    error: str
    condition: str
    message: str
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, raised: DrawstringError) -> Problem:
        """Describe an error."""
        facts = {name: value if _is_plain(value) else str(value) for name, value in raised.fields.items()}
        return cls(type(raised).__name__, raised.condition, raised.message, facts)

    def as_error(self) -> DrawstringError:
        """The error itself."""
        return error_class(self.error)(self.message, condition=self.condition, **self.facts)


@dataclass
class Problems:
    """The problems met so far, each once."""

    found: list[Problem] = field(default_factory=list)

    def attempt(self, make: Callable[[], T], otherwise: T) -> T:
        """Return what `make` makes; where the table is damaged, note it and return `otherwise`."""
        try:
            return make()
        except PROBLEMS as error:
            self._add(error)
            return otherwise

    def gather(self, items: Iterable[T]) -> tuple[T, ...]:
        """Return the items up to the first one that damage keeps from being told."""
        told: list[T] = []
        self.attempt(lambda: told.extend(items), None)
        return tuple(told)

    def _add(self, error: DrawstringError) -> None:
        problem = Problem.of(error)
        if problem not in self.found:
            self.found.append(problem)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
