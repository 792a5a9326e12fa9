"""The schema that a commit records when the table's schema changed while it was written (RFC-82).

Three schemas decide: the table's when the write began (`start`), the table's when it is validated (`now`), and the
writer's. Under the table's lock, before file groups are compared, a strategy says what the commit records:

    #  start  now   writer   simple            reconcile
    1  none   none  S1       S1                as simple
    2  none   S1    S1       S1                as simple
    3  none   S2    S3       conflict          the union, where both are compatible
    4  S1     S1    S1       S1                as simple
    5  S1     S1    S2       S2                as simple
    6  S1     S2    S1       S2                as simple
    7  S1     S2    S2       S2                as simple
    8  S1     S2    S3       conflict          the union, where both are compatible
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from drawstring.config.concurrency_options import RECONCILE_SCHEMAS, SIMPLE_SCHEMA_STRATEGY
from drawstring.errors import ConcurrentSchemaEvolution, IncompatibleSchema, InvalidOption
from drawstring.model.instant import Action, Instant
from drawstring.schema.avro_equality import AvroSchema, expand, is_null_schema, parse_avro, same_schema
from drawstring.write.schema_text import changes, lines
from drawstring.write.schema_union import union_schema

NOT_RESOLVED = 0
"""The scenario of a write that brings no schema: none of the table's eight."""


@dataclass(frozen=True)
class Resolution:
    """The schema to record in the commit, None where the write brought none; and which scenario it was."""

    schema: dict[str, Any] | None
    scenario: int

    @property
    def text(self) -> str:
        """The schema as commit metadata holds it; empty where there is none."""
        return json.dumps(self.schema) if self.schema is not None else ""


class TableSchemaChange:
    """The table's schema when a write began (`start`) and when it is validated (`now`), with the instants that set it.

    A schema without an instant that counts (`eligible`) is that of a table which nobody has written to: it is only the
    `current` one, and conflicts with nothing.
    """

    def __init__(
        self,
        start: AvroSchema | None,
        now: AvroSchema | None,
        *,
        start_instant: str | None,
        now_instant: str | None,
    ) -> None:
        self.start = start if start_instant is not None and start else None
        self.now = now if now_instant is not None and now else None
        self.start_instant, self.now_instant = start_instant, now_instant
        self.current = now or None

    @property
    def is_untouched(self) -> bool:
        """Whether no write that counts has completed in between."""
        return self.start_instant == self.now_instant

    @property
    def scenario_of_conflict(self) -> int:
        """The number of the scenario in which all three schemas differ."""
        return 3 if self.start is None else 8


OnConflict = Callable[[TableSchemaChange, AvroSchema, str], Resolution]
"""Decides where the schemas of the table, of the writer and of the start all differ; given the writer's instant."""


def resolve(
    table: TableSchemaChange,
    writer: AvroSchema | None,
    *,
    instant: str,
    strategy: str = SIMPLE_SCHEMA_STRATEGY,
) -> Resolution:
    """Return the schema that the commit of a writer's instant records; raises `ConcurrentSchemaEvolution`."""
    on_conflict = strategy_named(strategy)
    found = _without_conflict(table, writer)
    if found is not None:
        return found
    assert writer is not None
    return on_conflict(table, writer, instant)


def _refuse(table: TableSchemaChange, writer: AvroSchema, instant: str) -> Resolution:
    """RFC-82 as Hudi has it: schemas are compared for equality only."""
    raise _conflict(table, writer, instant)


def _reconcile(table: TableSchemaChange, writer: AvroSchema, instant: str) -> Resolution:
    """Beyond RFC-82: the union of both schemas, if every file of both stays readable."""
    assert table.now is not None
    try:
        return Resolution(union_schema(table.start, table.now, writer), table.scenario_of_conflict)
    except IncompatibleSchema as error:
        raise _conflict(table, writer, instant, why=error.message) from error


STRATEGIES: dict[str, OnConflict] = {SIMPLE_SCHEMA_STRATEGY: _refuse, RECONCILE_SCHEMAS: _reconcile}
"""What to do in the scenarios 3 and 8, by `hoodie.write.concurrency.schema.conflict.resolution.strategy`."""


def strategy_named(name: str) -> OnConflict:
    """Return a strategy by its name in the options."""
    if name not in STRATEGIES:
        raise InvalidOption(
            f"The strategy for schema conflicts is {name!r}; expected one of {', '.join(STRATEGIES)}.",
            condition="INVALID_OPTION_VALUE",
            key="hoodie.write.concurrency.schema.conflict.resolution.strategy",
            value=name,
            allowed=list(STRATEGIES),
        )
    return STRATEGIES[name]


def eligible(
    instants: Iterable[Instant],
    table_type: str,
    *,
    is_clustering: Callable[[Instant], bool] = lambda _instant: False,
) -> list[Instant]:
    """Return the instants whose schemas count, by completion time, the newest first.

    Completed writes: `commit` and `replacecommit` of a copy-on-write table, `deltacommit` and `replacecommit` of a
    merge-on-read one, where a `commit` is a compaction. Clustering, which also completes as `replacecommit`, keeps
    the schema and does not count.
    """
    writes = Action.DELTACOMMIT if table_type == "MERGE_ON_READ" else Action.COMMIT
    found = [
        instant
        for instant in instants
        if instant.is_completed
        and instant.action in (writes, Action.REPLACECOMMIT)
        and not (instant.action is Action.REPLACECOMMIT and is_clustering(instant))
    ]
    return sorted(found, key=lambda i: (i.completion_time or "", i.requested_time), reverse=True)


def schema_at(
    instants: Sequence[Instant],
    *,
    schema_of: Callable[[Instant], str | None],
    create_schema: str | None = None,
) -> tuple[str | None, str | None]:
    """Return the newest instant, and the table's schema there; None where there is none.

    `instants` are those that `eligible` returned. The schema is that of the newest commit that records one, else the
    one that the table was created with.
    """
    if not instants:
        return None, create_schema or None
    schema = next((text for text in map(schema_of, instants) if text), None)
    return instants[0].requested_time, schema or create_schema or None


def _without_conflict(table: TableSchemaChange, writer: AvroSchema | None) -> Resolution | None:
    """Every scenario but 3 and 8; the order of the questions is that of Hudi."""
    if not writer:
        return Resolution(None, NOT_RESOLVED)
    if is_null_schema(writer):
        return Resolution(_stored(table.current) if table.current else None, NOT_RESOLVED)
    if table.now is None:
        return Resolution(_stored(writer), 1)
    unchanged = same_schema(writer, table.now)
    if table.is_untouched:
        return Resolution(_stored(writer), 4 if unchanged else 5)
    if table.start is None:
        return Resolution(_stored(writer), 2) if unchanged else None
    table_unchanged = same_schema(table.start, table.now)
    if unchanged:
        return Resolution(_stored(writer), 4 if table_unchanged else 7)
    if table_unchanged:
        return Resolution(_stored(writer), 5)
    return Resolution(_stored(table.now), 6) if same_schema(writer, table.start) else None


def _stored(schema: AvroSchema) -> dict[str, Any]:
    """The schema as a commit records it: as it was written, without meta columns."""
    parsed = dict(parse_avro(schema))
    kept = {field["name"] for field in expand(schema)["fields"]}
    return {**parsed, "fields": [field for field in parsed["fields"] if field["name"] in kept]}


def _conflict(
    table: TableSchemaChange, writer: AvroSchema, instant: str, *, why: str = ""
) -> ConcurrentSchemaEvolution:
    assert table.now is not None
    retryable = _can_follow(table.now, writer)
    again = (
        "Run it again: it then builds on the new schema." if retryable else "Running it again cannot succeed."
    )
    began = "had no schema" if table.start is None else f"had the schema of {table.start_instant}"
    return ConcurrentSchemaEvolution(
        f"The write {instant} and the commit {table.now_instant} changed the table's schema in different ways. "
        f"When the write began, the table {began}.\n"
        f"Changed by {table.now_instant}:\n{_changed(table.start, table.now)}\n"
        f"Changed by this write:\n{_changed(table.start, writer)}\n"
        f"{f'{why} ' if why else ''}Nothing of this write is visible. {again}",
        condition="CONCURRENT_SCHEMA_EVOLUTION",
        instant=instant,
        other_instant=table.now_instant,
        start_instant=table.start_instant,
        scenario=table.scenario_of_conflict,
        retryable=retryable,
        start_schema=_text(table.start),
        table_schema=_text(table.now),
        writer_schema=_text(writer),
    )


def _can_follow(now: AvroSchema, writer: AvroSchema) -> bool:
    """Whether the write, run again on the new schema, finds one that has room for both."""
    try:
        union_schema(None, now, writer)
    except IncompatibleSchema:
        return False
    return True


def _changed(before: AvroSchema | None, after: AvroSchema) -> str:
    found = changes(before, after) if before else [f"  + {line}" for line in lines(after)]
    return "\n".join(found) or "  (nothing but the order of columns)"


def _text(schema: AvroSchema | None) -> str | None:
    return json.dumps(parse_avro(schema)) if schema else None
