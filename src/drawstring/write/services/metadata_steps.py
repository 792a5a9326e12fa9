"""What a service adds to its decision so that the metadata table stays in step."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.write.metadata_table import keeping
from drawstring.write.services.turn import Turn
from drawstring.write.slots import Step

Steps = tuple[tuple[Step, ...], str]


def steps_for_deletion(held: Turn, requested_time: str, deleted: Mapping[str, Collection[str]]) -> Steps:
    """Return the steps of a clean, and the newest time after them."""
    return keeping.steps_for_deletion(
        held.state, requested_time, deleted, newest=held.newest_time, clock=held.clock
    )


def steps_for_compaction(held: Turn, requested_time: str, metadata: CommitMetadata) -> Steps:
    """Return the steps of a compaction whose files are staged, and the newest time after them."""
    return keeping.steps_for_commit(
        held.state, requested_time, metadata, newest=held.newest_time, clock=held.clock
    )
