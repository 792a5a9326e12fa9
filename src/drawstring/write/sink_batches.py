"""Batches of streaming writes: what commits record of them, and whether one was written already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawstring.config.write_options import WriteOptions
from drawstring.model.sink_batch import SinkBatch
from drawstring.planning.table_state import TableState


def recorded_with(options: WriteOptions) -> dict[str, str]:
    """What a commit records beside its files: what the caller gave, and the batch that it is."""
    batch = options.sink_batch
    return {**options.commit_metadata, **(batch.metadata if batch is not None else {})}


def is_written(state: TableState, batch: SinkBatch | None) -> bool:
    """Whether a commit of the table tells that a batch was written, or a later one of the same query.

    The newest commit that tells of the query decides; others may stand in between. Hudi looks at the active timeline
    only, and writes a batch again whose commit was archived.

    Args:
        state: the table after everything that was decided had been finished.
        batch: None for a write that is no batch.
    """
    if batch is None:
        return False
    found = (batch.is_covered_by(recorded) for recorded in _recorded(state))
    return bool(next((known for known in found if known is not None), False))


def _recorded(state: TableState) -> Iterator[Mapping[str, str]]:
    """What commits recorded, newest first; the archive is read if the active timeline does not tell."""
    for _, metadata in state.writes_descending(None):
        yield metadata.extra
    for write in reversed(state.history.writes):
        yield write.metadata.extra
