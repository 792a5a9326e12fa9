"""Tables whose columns have ids, because Hudi altered them by schema on read: every commit hands the ids on.

A file has the version of the schema that was newest when its commit was requested. Writes of drawstring leave that
version as it is, so the commit records it once more, and the history of versions beside it: Hudi takes the newest
history of an instant on the active timeline, and would lose it when that is archived.
"""

from __future__ import annotations

from dataclasses import replace

from drawstring.errors import UnsupportedTable
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import Action
from drawstring.planning.table_schemas import SCHEMA_FOLDER, TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.write.slots import Step
from drawstring.write.table_facts import schema_commit

_LATEST = "latest_schema"


def check_unchanged(state: TableState, before: str, written: str) -> None:
    """Refuse a write that changes the schema of a table whose columns have ids: new ones would need theirs."""
    commit = schema_commit(state)
    if commit is None or not commit.internal_schema or before == written:
        return
    raise UnsupportedTable(
        f"Cannot write to {state.storage.root}: its columns have ids (schema on read), and the rows would change its "
        "schema. Give the rows the table's columns and types, or alter the table with Apache Hudi first.",
        condition="WRITE_SCHEMA_ON_READ",
        operation="write",
        path=state.storage.root,
    )


def with_column_ids(now: TableState, metadata: CommitMetadata) -> CommitMetadata:
    """Return what a commit says, with the table's schema with ids where it has one."""
    commit = schema_commit(now)
    if commit is None or not commit.internal_schema or not metadata.schema:
        return metadata
    return replace(metadata, extra={**metadata.extra, _LATEST: commit.internal_schema})


def column_id_steps(
    now: TableState, metadata: CommitMetadata, requested: str, completed: str
) -> tuple[Step, ...]:
    """Return the steps that store the history of schemas once more, under the commit's instant."""
    if not metadata.internal_schema:
        return ()
    history = TableSchemas(now, None).stored_history()
    if not history:
        return ()
    action = Action.SCHEMACOMMIT.value
    return (
        Step.create(f"{SCHEMA_FOLDER}/{requested}.{action}.requested", b""),
        Step.create(f"{SCHEMA_FOLDER}/{requested}.{action}.inflight", b""),
        Step.create(f"{SCHEMA_FOLDER}/{requested}_{completed}.{action}", history),
    )
