"""Messages between the bridge and the planner: typed here, JSON on the wire, versioned.

Golden files under `tests/contract/wire` hold one example of each; both languages read them.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from drawstring.errors import BridgeError
from drawstring.spark.errors import error_to_wire

VERSION = 1
M = TypeVar("M")


@dataclass(frozen=True)
class LoadTable:
    """Open the table at `path`; `options` of the read, `session` the session's `hoodie.*` settings."""

    path: str
    options: dict[str, str] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Grouping:
    """Rows of a file group are equal in `columns`, or in Hudi's hash of the one column modulo `buckets`."""

    columns: list[str]
    buckets: int | None


@dataclass(frozen=True)
class TableLoaded:
    """A table pinned to one snapshot. `snapshot` names it; equal names mean equal contents and equal plans.

    `timeline` is the pinned timeline as text, to be sent back with every question about the snapshot.
    `partition_columns` are in path order; `use_v2` is the read path after options, session and table were asked,
    `pushdowns` those that the read's options leave on; `grouping` says by what file groups keep rows together,
    `instant` is the newest that is seen; `only_streams` says that a batch read is refused when it is planned.
    """

    name: str
    path: str
    snapshot: str
    timeline: str
    schema: str
    partition_columns: list[str]
    properties: dict[str, str]
    use_v2: bool
    pushdowns: list[str]
    grouping: Grouping | None = None
    instant: str | None = None
    only_streams: bool = False


@dataclass(frozen=True)
class SnapshotReference:
    """The snapshot a question is about: its name, and what it takes to open it again.

    The planner keeps the snapshots that were used last; another one is made again from the path, the options and
    session settings that the table was loaded with, and the timeline that was seen then.
    """

    snapshot: str
    path: str
    timeline: str
    options: dict[str, str] = field(default_factory=dict)
    session: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PushFilters:
    """Asks which of `filters` the planner can apply."""

    table: SnapshotReference
    filters: list[Any]


@dataclass(frozen=True)
class FiltersPushed:
    """One class per filter: `partition` (absorbed), `data` (used for skipping, must be applied again) or `rest`."""

    classes: list[str]


@dataclass(frozen=True)
class SortKey:
    """One column of an ORDER BY, by its path."""

    column: list[str]
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Aggregate:
    """`count`, `min` or `max` of a column by its path; `count` of none counts rows."""

    function: str
    column: list[str] | None


@dataclass(frozen=True)
class Aggregation:
    """Aggregates over all rows, or over those of each combination of values of some columns."""

    aggregates: list[Aggregate]
    group_by: list[str]


@dataclass(frozen=True)
class ScanRequest:
    """What a scan is asked for: `drawstring.planning.scan_request.ScanRequest` on the wire.

    `hidden_columns` are metadata columns whose values are wanted of each task; with `grouped` so are the values of the
    table's grouping.
    """

    columns: list[str] | None
    filters: list[Any]
    limit: int | None
    offset: int
    order: list[SortKey]
    aggregation: Aggregation | None
    runtime_filters: list[Any]
    hidden_columns: list[str] = field(default_factory=list)
    grouped: bool = False


@dataclass(frozen=True)
class PlanScan:
    """Select the file slices that may hold rows that the request asks for; also sent to answer the request's
    aggregation, or to summarise its columns.
    """

    table: SnapshotReference
    request: ScanRequest


@dataclass(frozen=True)
class AggregationPushed:
    """The rows of an aggregation, groups first, values as Spark keeps them; None if `reason` says why not.

    With `rest` they are those of a part of the slices, and `rest` are the others, `reason` says why.
    """

    rows: list[list[Any]] | None
    reason: str | None = None
    rest: ScanPlanned | None = None


@dataclass(frozen=True)
class ColumnStatistics:
    """A column over all selected slices, values as Spark keeps them; None for what is not known."""

    column: str
    lower: Any
    upper: Any
    nulls: int | None
    distinct: int | None


@dataclass(frozen=True)
class ColumnsSummarised:
    """The columns of which something is known."""

    columns: list[ColumnStatistics]


@dataclass(frozen=True)
class TaskMessage:
    """One file slice: how to read it, and what.

    `mode` is `native`, `merge` or `arrow`. `path` is the file Spark sees (the base file, or the first log),
    absolute; `size` its bytes, `bytes` those of the whole slice. `context` indexes `ScanPlanned.contexts`;
    `payload` is for the worker alone. `projection` indexes `ScanPlanned.projections`, `constants` those of
    `ScanPlanned.constants`; -1 for none. `hidden` are values of metadata columns that were asked for, `key` those of
    the table's grouping; None where they are not known.
    """

    mode: str
    path: str
    size: int
    bytes: int
    context: int
    payload: Any
    rows: int | None = None
    projection: int = -1
    constants: int = -1
    hidden: dict[str, Any] | None = None
    key: list[Any] | None = None


@dataclass(frozen=True)
class ScanPlanned:
    """The selected tasks and what was skipped on the way: `skipped` slices by reason, `notes` on what was declined.

    `rows` is exact or None; `estimated_rows` goes by sizes where some are unknown.

    `projections` are the ways from schemas of base files to the table's, as `Projection.describe` gives them.
    `constants` are values by column that rows show whatever their files hold; a date is its day since 1970.
    """

    tasks: list[TaskMessage]
    contexts: list[Any]
    projections: list[Any]
    constants: list[dict[str, Any]]
    rows: int | None
    estimated_rows: int | None
    bytes: int
    files: int
    skipped: dict[str, int]
    notes: list[str]
    planning_ms: int


def to_json(message: Any) -> str:
    """Write a message."""
    return json.dumps({**vars(message), "version": VERSION}, default=vars, separators=(",", ":"))


def from_json(cls: type[M], text: str) -> M:
    """Read a message of the given type; unknown keys are refused, so that a typo cannot pass for an option."""
    node = json.loads(text)
    found = node.pop("version", None)
    if found != VERSION:
        raise BridgeError(
            f"The bridge speaks protocol version {found!r}, this package {VERSION}. Restart the session: its "
            "bridge jar and the Python package differ.",
            condition="WIRE_VERSION_MISMATCH",
            found=found,
            expected=VERSION,
        )
    return typing.cast(M, _build(cls, node))


def error_reply(error: BaseException) -> str:
    """The reply that carries an error instead of an answer."""
    return json.dumps({"version": VERSION, "error": error_to_wire(error)})


def _build(kind: Any, node: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        unknown = set(node) - set(hints)
        if unknown:
            raise BridgeError(
                f"Unknown fields {sorted(unknown)} in a {getattr(kind, '__name__', kind)} message."
            )
        return kind(**{name: _build(hints[name], value) for name, value in node.items()})  # type: ignore[operator]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [_build(arguments[0], item) for item in node]
    if origin is dict:
        return {key: _build(arguments[1], value) for key, value in _mapping(node).items()}
    if origin in (typing.Union, types.UnionType) and node is not None:
        return _build(next(a for a in arguments if a is not type(None)), node)
    return node


def _mapping(node: Any) -> Mapping[str, Any]:
    return typing.cast(Mapping[str, Any], node)
