"""Which instants a table can do without on its active timeline."""

from __future__ import annotations

from collections.abc import Iterator

from drawstring.config.service_options import NUM_AND_TIME, NUM_COMMITS, ServiceOptions
from drawstring.model.instant import Action, Instant
from drawstring.planning.table_state import TableState
from drawstring.timeline.layout_v2 import instant_of_epoch
from drawstring.view.file_system_view import all_slices
from drawstring.write.clock import Clock
from drawstring.write.heartbeat import heartbeats
from drawstring.write.rollback import inflight_name
from drawstring.write.services.archive import ArchiveRetention, plan_archive
from drawstring.write.services.clean import earliest_retained
from drawstring.write.services.clean_input import last_clean, oldest_time, retention_of
from drawstring.write.signature import WRITER, signed_by

_WEEK = 7 * 24 * 60 * 60 * 1000


def planned(state: TableState, options: ServiceOptions, *, clock: Clock) -> tuple[Instant, ...]:
    """Return the completed instants to archive, oldest first."""
    retention = _retention(state, options, clock)
    compacted = metadata_compacted(state)
    first = plan_archive(state.timeline, retention, metadata_compacted=compacted)
    if not first:
        return ()
    limits = [
        *heartbeats(state.storage),
        *_delta_commits(state, options),
        *_uncompacted_beside_others(state, clock),
        *_uncleaned(state, first),
        *_retained_by_last_clean(state, options),
    ]
    return plan_archive(state.timeline, retention, metadata_compacted=compacted, limits=limits)


def _retention(state: TableState, options: ServiceOptions, clock: Clock) -> ArchiveRetention:
    given = options.archive
    retention = ArchiveRetention(given.min_commits, given.max_commits, given.beyond_savepoint)
    since = oldest_time(options.clean, clock, state.config.timezone)
    oldest = earliest_retained(state.timeline, retention_of(options.clean), oldest_time=since)
    if oldest is None:
        return retention
    kept = [w for w in state.timeline.completed_writes if w.requested_time >= oldest.requested_time]
    return retention.beside(len(kept))


def metadata_compacted(state: TableState) -> str | None:
    """Return the last compaction of the metadata table, empty when there was none; None without such a table."""
    if not state.config.metadata_partitions:
        return None
    metadata = state.metadata_table
    if metadata is None:
        # It is not in step: whoever mends it needs every instant.
        return ""
    done = (i for i in metadata.timeline.completed_writes if i.action is Action.COMMIT)
    return max((i.requested_time for i in done), default="")


def _delta_commits(state: TableState, options: ServiceOptions) -> Iterator[str]:
    """Yield the first of the delta commits by whose number the next compaction is told to be due."""
    if not state.config.is_merge_on_read or options.compact.trigger not in (NUM_COMMITS, NUM_AND_TIME):
        return
    writes = state.timeline.completed_writes
    last = max((i.requested_time for i in writes if i.action is Action.COMMIT), default="")
    since = [i.requested_time for i in writes if i.action is Action.DELTACOMMIT and i.requested_time > last]
    if len(since) < options.compact.commits:
        yield from [last] if last else since[:1]
    else:
        yield since[-options.compact.commits]


def _uncompacted_beside_others(state: TableState, clock: Clock) -> Iterator[str]:
    """Yield the first delta commit that no compaction has taken in, while another engine works on the table too.

    Hudi looks at the timeline and at the history at different times: what completes and is archived in between is to
    its compaction as if it had never completed, and the new base file lacks it for good. That another engine is there
    is told by its delta commits, the newest of which stays for a week, or by the last compaction.
    """
    if not state.config.is_merge_on_read:
        return
    writes = state.timeline.completed_writes
    deltas = [i for i in writes if i.action is Action.DELTACOMMIT]
    last = max((i for i in writes if i.action is Action.COMMIT), key=_requested, default=None)
    waiting = [
        i.requested_time for i in deltas if last is None or (i.completion_time or "") > last.requested_time
    ]
    since = instant_of_epoch(clock() - _WEEK, state.config.timezone)
    recent = (i for i in reversed(deltas) if (i.completion_time or "") > since)
    other = next((i.requested_time for i in recent if _is_of_others(state, i)), None)
    if other is not None:
        yield min([other, *waiting])
    elif (
        waiting and last is not None and (last.completion_time or "") > since and not _is_signed(state, last)
    ):
        yield min(waiting)


def _requested(instant: Instant) -> str:
    return instant.requested_time


def _is_signed(state: TableState, compaction: Instant) -> bool:
    return WRITER in state.metadata(compaction).extra


def _is_of_others(state: TableState, instant: Instant) -> bool:
    name = inflight_name(instant.requested_time, instant.action)
    return signed_by(state.storage, f"{state.config.timeline_directory}/{name}") is None


def _retained_by_last_clean(state: TableState, options: ServiceOptions) -> Iterator[str]:
    last = last_clean(state) if options.archive.block_on_clean else None
    if last is not None and last.earliest_retained:
        yield last.earliest_retained


def _uncleaned(state: TableState, candidates: tuple[Instant, ...]) -> Iterator[str]:
    """Yield the first replacecommit of which files are there that it took out: without it they would be seen."""
    for instant in candidates:
        if instant.action is Action.REPLACECOMMIT:
            for path, file_ids in state.metadata(instant).replaced.items():
                if not _groups(state, path).isdisjoint(file_ids):
                    yield instant.requested_time
                    return


def _groups(state: TableState, path: str) -> set[str]:
    try:
        files = state.listing.files(path)
    except FileNotFoundError:
        return set()
    return {found.group.file_id for found in all_slices(path, files, state.visibility(None))}
