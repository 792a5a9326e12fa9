"""A commit without rows that says the table's schema once more.

Every reader, Hudi's too, takes the schema of the commit that was requested last. A write that changes the schema may
complete after others that were requested later, with the older schema: then nobody would see the change, and files of
the new schema could not be read by the old one.
"""

from __future__ import annotations

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import Action
from drawstring.planning.table_state import TableState
from drawstring.schema.avro_equality import parse_avro
from drawstring.write.clock import Clock, next_time
from drawstring.write.commit_encoding import encode_commit, encode_inflight
from drawstring.write.metadata_table import keeping
from drawstring.write.rollback import inflight_name
from drawstring.write.slots import Step

_OPERATION = "UPSERT"
"""One of the operations from which readers take the table's schema."""


def is_hidden(now: TableState, requested_time: str, schema: str) -> bool:
    """Whether a completed write that was requested later records another schema, however its text is spaced."""
    later = (i for i in now.timeline.completed_writes if i.requested_time > requested_time)
    recorded = {now.metadata(instant).schema for instant in later} - {"", schema}
    return bool(schema) and any(parse_avro(text) != parse_avro(schema) for text in recorded)


def schema_steps(
    now: TableState, metadata: CommitMetadata, newest: str, *, clock: Clock
) -> tuple[tuple[Step, ...], str]:
    """Return the steps that make a commit of the schema alone, requested after `newest`, and when it completes.

    They come before the commit that changes the schema completes: no reader sees its files with the older schema.
    """
    directory, zone = now.config.timeline_directory, now.config.timezone
    requested = next_time(newest, clock=clock, timezone=zone)
    action = Action.DELTACOMMIT if now.config.is_merge_on_read else Action.COMMIT
    says = CommitMetadata(_OPERATION, (), {}, {"schema": metadata.schema})
    kept, newest = keeping.steps_for_commit(now, requested, says, newest=requested, clock=clock)
    completed = next_time(newest, clock=clock, timezone=zone)
    steps = (
        Step.create(f"{directory}/{requested}.{action.value}.requested", b""),
        Step.create(f"{directory}/{inflight_name(requested, action)}", encode_inflight(_OPERATION)),
        *kept,
        Step.create(
            f"{directory}/{requested}_{completed}.{action.value}", encode_commit(says, is_replace=False)
        ),
    )
    return steps, completed
