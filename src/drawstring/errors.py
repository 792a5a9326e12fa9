"""Every error drawstring raises, as one tree.

    DrawstringError
    ├── TableNotFound          (FileNotFoundError)   no Hudi table at the path
    ├── InvalidOption          (ValueError)          an option's value, or a combination, makes no sense
    ├── InvalidInput           (ValueError)          data or arguments that do not fit: keys, columns, instants
    ├── UnsupportedTable                             a real table that uses something drawstring does not support
    ├── CorruptTable                                 bytes on storage that are not what they should be
    ├── IncompatibleSchema                           a schema that cannot be reconciled with the table's
    ├── CommitConflict                               another writer won; nothing of this write is visible
    │   └── ConcurrentSchemaEvolution                it changed the table's schema in another way
    ├── CommitOutcomeUnknown                         it is not known whether the commit landed; no file was deleted
    └── BridgeError                                  the JVM side is missing, too old or not attached

Each carries a `condition` (a stable upper-case code) and `fields` (the facts of the message as values), so
that an error keeps its identity across the JVM and back.
"""

from __future__ import annotations

from typing import Any


class DrawstringError(Exception):
    """Root of all drawstring errors."""

    default_condition = "DRAWSTRING_ERROR"

    def __init__(self, message: str, *, condition: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.condition = condition or self.default_condition
        self.fields: dict[str, Any] = fields

    def __str__(self) -> str:
        return f"[{self.condition}] {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self).__name__, self.message, self.condition, self.fields)


class TableNotFound(DrawstringError, FileNotFoundError):
    """No Hudi table at the path."""

    default_condition = "TABLE_NOT_FOUND"


class InvalidOption(DrawstringError, ValueError):
    """An option's value, or a combination of options, makes no sense."""

    default_condition = "INVALID_OPTION"


class InvalidInput(DrawstringError, ValueError):
    """Data or arguments that do not fit: keys, columns, instants, expressions."""

    default_condition = "INVALID_INPUT"


class UnsupportedTable(DrawstringError):
    """A real table that uses something drawstring does not support."""

    default_condition = "UNSUPPORTED_TABLE"


class CorruptTable(DrawstringError):
    """Bytes on storage that are not what they should be."""

    default_condition = "CORRUPT_TABLE"


class IncompatibleSchema(DrawstringError):
    """A schema that cannot be reconciled with the table's."""

    default_condition = "INCOMPATIBLE_SCHEMA"


class CommitConflict(DrawstringError):
    """Another writer won; nothing of this write is visible, and its files may be deleted."""

    default_condition = "COMMIT_CONFLICT"


class ConcurrentSchemaEvolution(CommitConflict):
    """Another commit changed the table's schema in another way; `retryable` tells whether running again can succeed."""

    default_condition = "CONCURRENT_SCHEMA_EVOLUTION"


class CommitOutcomeUnknown(DrawstringError):
    """It is not known whether the commit landed; no file was deleted."""

    default_condition = "COMMIT_OUTCOME_UNKNOWN"


class BridgeError(DrawstringError):
    """The JVM side is missing, too old or not attached."""

    default_condition = "BRIDGE_ERROR"


def error_class(name: str) -> type[DrawstringError]:
    """Return the error class called `name`, or the root when there is none."""
    return next((cls for cls in _tree(DrawstringError) if cls.__name__ == name), DrawstringError)


def _tree(cls: type[DrawstringError]) -> list[type[DrawstringError]]:
    return [cls, *(sub for child in cls.__subclasses__() for sub in _tree(child))]


def _rebuild(name: str, message: str, condition: str, fields: dict[str, Any]) -> DrawstringError:
    return error_class(name)(message, condition=condition, **fields)
