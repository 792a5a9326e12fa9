"""Answers to the bridge's questions about streams: where a batch ends, what it reads, how far behind a query is."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from drawstring.errors import BridgeError
from drawstring.planning.scan_request import ScanRequest
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.planning.streams.source import TableStream
from drawstring.spark import wire
from drawstring.spark.read.filters import known_predicates
from drawstring.spark.read.pinned import PinnedTable, plan_message
from drawstring.spark.read.reads import pinned_table

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenStream:
    """Read the table as a stream; its columns are those of the snapshot that Spark has resolved."""

    table: wire.SnapshotReference


@dataclass(frozen=True)
class StreamOpened:
    """`stream` names it in further questions."""

    stream: str


@dataclass(frozen=True)
class AboutStream:
    """A question that needs no more than the stream."""

    stream: str


@dataclass(frozen=True)
class NextOffset:
    """Where does the batch end that begins at `start`?

    `limited` tells whether the upper limits count; `waited_ms` how long ago the last batch was, where batches may be
    put off; `until` the offset beyond which nothing is taken.
    """

    stream: str
    start: str
    limited: bool
    waited_ms: int | None = None
    until: str | None = None


@dataclass(frozen=True)
class OffsetFound:
    """An offset as checkpoints keep it; that of the question, unchanged, when there is nothing to read."""

    offset: str


@dataclass(frozen=True)
class PlanBatch:
    """Select the slices of the batch between two offsets; the answer is a `ScanPlanned`."""

    stream: str
    start: str
    end: str
    filters: list[Any]


@dataclass(frozen=True)
class Backlog:
    """How far behind is a query that has delivered everything up to `position`?"""

    stream: str
    position: str


@dataclass(frozen=True)
class BacklogFound:
    """Figures by name, as `query.lastProgress` shows them."""

    metrics: dict[str, str]


@dataclass(frozen=True)
class StreamClosed:
    """The stream is forgotten."""

    stream: str


@dataclass
class _Opened:
    table: PinnedTable
    stream: TableStream
    lost: dict[tuple[str, str], int] = field(default_factory=dict)


class Streams:
    """The streams of running queries, by name."""

    def __init__(self) -> None:
        self._known: dict[str, _Opened] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def open(self, table: PinnedTable, options: dict[str, str], session: dict[str, str]) -> str:
        """Begin a stream and return its name."""
        # `spark.hoodie.*` is how spark-defaults.conf spells them.
        plain = {key.removeprefix("spark."): value for key, value in session.items()}
        stream = table.table.stream(options, session=plain, state=table.source.state)
        with self._lock:
            name = f"stream-{next(self._numbers)}"
            self._known[name] = _Opened(table, stream)
        return name

    def find(self, name: str) -> _Opened:
        """The stream of that name."""
        with self._lock:
            found = self._known.get(name)
        if found is None:
            raise BridgeError(
                f"The planner knows no {name}: the Python process that began the query has ended. Start the query "
                "again from its checkpoint.",
                condition="UNKNOWN_STREAM",
                stream=name,
            )
        return found

    def close(self, name: str) -> None:
        """Forget a stream; it may be forgotten already."""
        with self._lock:
            self._known.pop(name, None)


_streams = Streams()


def open_stream(payload: str) -> str:
    """Begin a stream of a table that Spark has loaded."""
    reference = wire.from_json(OpenStream, payload).table
    table = pinned_table(reference)
    return wire.to_json(StreamOpened(_streams.open(table, reference.options, reference.session)))


def initial_offset(payload: str) -> str:
    """Where a query without a checkpoint begins."""
    request = wire.from_json(AboutStream, payload)
    return wire.to_json(OffsetFound(_streams.find(request.stream).stream.initial_offset().to_json()))


def newest_offset(payload: str) -> str:
    """Where a query ends that takes what is available now."""
    request = wire.from_json(AboutStream, payload)
    return wire.to_json(OffsetFound(_streams.find(request.stream).stream.newest_offset().to_json()))


def seen_offset(payload: str) -> str:
    """How far the table reached when it was last looked at, which progress reports show."""
    request = wire.from_json(AboutStream, payload)
    found = _streams.find(request.stream).stream.newest_offset(look=False)
    return wire.to_json(OffsetFound(found.to_json()))


def next_offset(payload: str) -> str:
    """Where the next batch ends."""
    request = wire.from_json(NextOffset, payload)
    start = StreamOffset.from_json(request.start)
    end = _streams.find(request.stream).stream.next_offset(
        start,
        limited=request.limited,
        waited_ms=request.waited_ms,
        until=StreamOffset.from_json(request.until) if request.until else None,
    )
    return wire.to_json(OffsetFound(request.start if end == start else end.to_json()))


def plan_batch(payload: str) -> str:
    """Select the slices of a batch."""
    request = wire.from_json(PlanBatch, payload)
    started = time.perf_counter()
    opened = _streams.find(request.stream)
    batch = opened.stream.batch(StreamOffset.from_json(request.start), StreamOffset.from_json(request.end))
    if batch.lost_files:
        opened.lost[request.start, request.end] = batch.lost_files
        _log.warning(
            "%d files of %s that a batch should read are gone; it reads what the newest files hold.",
            batch.lost_files,
            opened.table.table.path,
        )
    table = PinnedTable(opened.table.table, batch, opened.table.store)
    plan = table.plan(ScanRequest(predicates=known_predicates(request.filters)))
    elapsed = round((time.perf_counter() - started) * 1000)
    return wire.to_json(plan_message(table, plan, planning_ms=elapsed))


def backlog(payload: str) -> str:
    """How far behind a query is."""
    request = wire.from_json(Backlog, payload)
    opened = _streams.find(request.stream)
    found = opened.stream.backlog(StreamOffset.from_json(request.position), look=False)
    figures = {
        "commitsBehind": found.commits,
        "filesBehind": found.amount.files,
        "bytesBehind": found.amount.bytes,
        "rowsBehind": found.amount.rows,
        "secondsBehind": round(found.seconds),
        "filesLost": sum(opened.lost.values()),
    }
    return wire.to_json(BacklogFound({name: str(figure) for name, figure in figures.items()}))


def close_stream(payload: str) -> str:
    """Forget a stream."""
    request = wire.from_json(AboutStream, payload)
    _streams.close(request.stream)
    return wire.to_json(StreamClosed(request.stream))


STREAM_HANDLERS: dict[str, Callable[[str], str]] = {
    "stream_open": open_stream,
    "stream_initial_offset": initial_offset,
    "stream_newest_offset": newest_offset,
    "stream_seen_offset": seen_offset,
    "stream_next_offset": next_offset,
    "stream_plan_batch": plan_batch,
    "stream_backlog": backlog,
    "stream_close": close_stream,
}
"""The requests answered here, by kind."""
