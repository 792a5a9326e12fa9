"""The sink of Structured Streaming: each batch is one commit, which tells that it is that batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.sink_options import SinkOptions
from drawstring.config.write_options import (
    COMBINE_BEFORE_INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    OPERATION,
    UPSERT,
)
from drawstring.errors import (
    CommitConflict,
    DrawstringError,
    IncompatibleSchema,
    InvalidInput,
    InvalidOption,
    UnsupportedTable,
)
from drawstring.model.sink_batch import SinkBatch
from drawstring.write.pipeline import CommitResult

APPEND, COMPLETE, UPDATE = "append", "complete", "update"
_NOT_TRIED_AGAIN = (InvalidOption, InvalidInput, UnsupportedTable, IncompatibleSchema)
"""Errors that waiting does not mend."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SinkMessage:
    """What Spark says about a batch: its number, the query's id, and the output mode."""

    batch: int
    query: str
    output_mode: str


def batch_options(message: SinkMessage, options: Mapping[str, str]) -> dict[str, str]:
    """The write options of a batch, by the output mode.

    - append: as in a batch write.
    - complete: the rows take the place of the whole table, in one commit (`insert_overwrite_table`).
    - update: rows that changed are upserted; no other operation makes sense of them.
    """
    asked = OPERATION.find(options)
    if message.output_mode == COMPLETE and asked not in (INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE):
        combines = {} if asked not in (None, UPSERT) else {COMBINE_BEFORE_INSERT.key: "true"}
        return {**_without(options, OPERATION.key), **combines, OPERATION.key: INSERT_OVERWRITE_TABLE}
    if message.output_mode == UPDATE and asked not in (None, UPSERT):
        raise InvalidOption(
            f"The output mode is update, and {OPERATION.key} is {asked!r}; expected upsert: rows that change come "
            "again, and must replace what they were. Nothing was written.",
            condition="OUTPUT_MODE_NEEDS_UPSERT",
            key=OPERATION.key,
            value=asked,
        )
    return {**options, **({OPERATION.key: UPSERT} if message.output_mode == UPDATE else {})}


def _without(options: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() != key.lower()}


def write_batch(
    message: SinkMessage,
    options: SinkOptions,
    write: Callable[[SinkBatch], CommitResult],
    *,
    sleep: Callable[[float], Any] = time.sleep,
) -> CommitResult | None:
    """Write a batch, unless a commit tells that it was written; tries again as the options say.

    Args:
        message: which batch it is.
        options: how often to try, and what to do when all tries failed.
        write: writes the rows once; returns a result without an instant for a batch that was there.
        sleep: how to wait.

    Returns:
        None for a batch that was given up because the options say so.

    Raises:
        DrawstringError: what the last try ended in.
    """
    batch = SinkBatch(options.identifier, message.batch, message.query)
    for attempt in range(1, options.tries + 1):
        try:
            return _told(write(batch), batch)
        except Exception as error:
            if isinstance(error, CommitConflict) and error.condition == "BATCH_COMMITTED":
                return _told(CommitResult(str(error.fields.get("path", "")), ""), batch)
            if options.ignore_failed:
                _log.warning("Batch %d is given up, its rows are missing: %s", batch.number, error)
                return None
            if attempt == options.tries or isinstance(error, _NOT_TRIED_AGAIN):
                raise
            pause = options.pause_ms * 2 ** (attempt - 1) / 1000
            _log.warning("Batch %d failed, trying again in %.1f s: %s", batch.number, pause, _short(error))
            sleep(pause)
    raise AssertionError("unreachable: the last try returns or raises")


def _told(result: CommitResult, batch: SinkBatch) -> CommitResult:
    if result.instant is None:
        _log.warning(
            "Batch %d of the streaming query %r is in the table already and is not written again.",
            batch.number,
            batch.identifier,
        )
    return result


def _short(error: Exception) -> str:
    return error.message if isinstance(error, DrawstringError) else str(error)
