"""The schema that a commit records when others changed the table's schema meanwhile (RFC-82)."""

from __future__ import annotations

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.model.commit_metadata import SERVICE_OPERATIONS
from drawstring.planning.table_state import TableState
from drawstring.write.schema_conflicts import TableSchemaChange, eligible, resolve, schema_at
from drawstring.write.transaction import SchemaRule, written_schema
from drawstring.write.write_set import WriteSet


def schema_rule(options: ConcurrencyOptions) -> SchemaRule:
    """Return the rule that the options ask for. It holds in every mode: two jobs at once need no setting."""
    if not options.resolve_schema_conflicts:
        return written_schema

    def resolved(start: TableState, now: TableState, write_set: WriteSet, instant: str) -> str:
        if start.timeline.completed_writes == now.timeline.completed_writes:
            return write_set.schema_written
        start_instant, start_schema = _schema_of(start)
        now_instant, now_schema = _schema_of(now)
        table = TableSchemaChange(
            start_schema, now_schema, start_instant=start_instant, now_instant=now_instant
        )
        resolution = resolve(
            table, write_set.schema_written or None, instant=instant, strategy=options.schema_strategy
        )
        return resolution.text or write_set.schema_written

    return resolved


def _schema_of(state: TableState) -> tuple[str | None, str | None]:
    """Return the newest instant whose schema counts, and the table's schema there."""
    instants = eligible(
        state.timeline.completed_writes,
        state.config.table_type,
        is_clustering=lambda instant: state.metadata(instant).operation in SERVICE_OPERATIONS,
    )
    return schema_at(
        instants,
        schema_of=lambda instant: state.metadata(instant).schema,
        create_schema=state.config.create_schema,
    )
