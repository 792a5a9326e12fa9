"""Checks a write for conflicts with what others did since it began.

Hudi's rule of optimistic concurrency: two writes conflict when they touch the same file group. A compaction does not
conflict with log files that are appended while it runs: a log file belongs to the base file that was requested last
before the log was completed, so it comes on top of what is compacted. Beyond Hudi's rule, an upsert conflicts with a
commit that inserted one of its new keys, and a write that replaces partitions with one that added file groups to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.errors import CommitConflict
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId
from drawstring.model.file_names import parse_base_file
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import COMMIT_TIME, RECORD_KEY
from drawstring.storage.base import Storage
from drawstring.write.bucket_index import bucket_places
from drawstring.write.clock import newest_time
from drawstring.write.log_keys import keys_in_log
from drawstring.write.markers import Markers
from drawstring.write.write_set import WriteSet, appended_groups, groups_of

_SHOWN_GROUPS = 5
_LOG_COMPACT = "LOG_COMPACT"
COMPACTIONS = ("COMPACT", _LOG_COMPACT)
_AGAIN = "run it again on the table as it is now, or raise hoodie.write.num.retries.on.conflict.failures"
_PENDING_PLANS = (Action.COMPACTION, Action.LOGCOMPACTION, Action.CLUSTERING)


@dataclass(frozen=True)
class Candidate:
    """A write that completed since ours began."""

    instant: Instant
    metadata: CommitMetadata


def completed_since(start: TableState, now: TableState) -> list[Candidate]:
    """Return the writes that completed since `start`, by completion time, archived ones too."""
    before = {instant.requested_time for instant in start.timeline.completed_writes}
    active = {instant.requested_time for instant in now.timeline.completed_writes}
    found = [
        Candidate(i, now.metadata(i)) for i in now.timeline.completed_writes if i.requested_time not in before
    ]
    if not before or not before <= active:
        # An archiver was, or may have been, running meanwhile, and have archived a write that we never saw.
        found += _archived_since(start, now, before | active)
    return sorted(found, key=lambda candidate: candidate.instant.completion_time or "")


def _archived_since(start: TableState, now: TableState, known: set[str]) -> list[Candidate]:
    newest = newest_time(start.timeline.completed_writes)
    return [
        Candidate(write.instant, write.metadata)
        for write in now.history.writes
        if write.instant.requested_time not in known and (write.instant.completion_time or "") > newest
    ]


def check_history(start: TableState, now: TableState, ours: str) -> None:
    """Raise `CommitConflict` when a commit that the write was based on is gone, by a restore or rollback."""
    known = now.timeline.by_requested_time
    first = now.timeline.start
    gone = [
        instant
        for instant in start.timeline.completed_writes
        if instant.requested_time not in known and (first is None or instant.requested_time > first)
    ]
    if gone and not _were_archived(now, gone):
        raise _conflict(
            now.storage,
            ours,
            f"the commit {gone[0].requested_time}, on which it was based, has been taken back since",
            condition="HISTORY_CHANGED",
            other=gone[0].requested_time,
        )


def _were_archived(now: TableState, gone: list[Instant]) -> bool:
    archived = now.history.completion_times
    return all(instant.requested_time in archived for instant in gone)


def check_groups(candidates: Iterable[Candidate], write_set: WriteSet, storage: Storage, ours: str) -> None:
    """Raise `CommitConflict` when another write touched a file group or a partition of ours."""
    for candidate in candidates:
        theirs = groups_of(candidate.metadata) - _appended_beside(candidate, write_set, ours)
        common = theirs & write_set.groups
        common |= {group for group in theirs if write_set.replaces(group.partition_path)}
        common |= {group for group in theirs if bucket_places([group]) & write_set.buckets}
        if common:
            raise _group_conflict(storage, ours, candidate.instant, common)


def _appended_beside(candidate: Candidate, write_set: WriteSet, ours: str) -> frozenset[FileGroupId]:
    """The groups in which our appended logs are valid on top of what the candidate did."""
    operation = candidate.metadata.operation
    if operation in COMPACTIONS:
        # A compaction does not change the contents of a group.
        stands = not _moves_logs_past(operation == _LOG_COMPACT, candidate.instant, write_set, ours)
        return write_set.appended if stands else frozenset()
    return write_set.appended & appended_groups(candidate.metadata) if write_set.non_blocking else frozenset()


def _moves_logs_past(merges_logs: bool, instant: Instant, write_set: WriteSet, ours: str) -> bool:
    """Whether logs merged with one another may come to stand behind ours that stood before it.

    Readers put them where the newest of them stood, and logs stand by the times when their writes began. Without
    other appends beside us all of them are older than ours.
    """
    return write_set.non_blocking and merges_logs and instant.requested_time > ours


def check_batch(candidates: Iterable[Candidate], write_set: WriteSet, storage: Storage, ours: str) -> None:
    """Raise `CommitConflict` when another driver of the same streaming query has committed the batch meanwhile."""
    batch = write_set.sink_batch
    for candidate in candidates if batch is not None else ():
        if batch is not None and batch.is_covered_by(candidate.metadata.extra):
            raise _conflict(
                storage,
                ours,
                f"the {candidate.instant.action.value} {candidate.instant.requested_time}, which completed since, is "
                f"batch {batch.number} of the streaming query {batch.identifier!r} already",
                condition="BATCH_COMMITTED",
                other=candidate.instant.requested_time,
            )


def check_pending_plans(now: TableState, write_set: WriteSet, ours: str) -> None:
    """Raise `CommitConflict` when a pending compaction or clustering plan names a file group of ours."""
    for instant in now.timeline.pending:
        if instant.action in _PENDING_PLANS:
            merges_logs = instant.action is Action.LOGCOMPACTION
            stands = instant.action is not Action.CLUSTERING and not _moves_logs_past(
                merges_logs, instant, write_set, ours
            )
            # New groups too: other writers may have made the same ones meanwhile.
            touched = write_set.groups | write_set.appended
            if instant.action is Action.COMPACTION:
                # Its base file belongs to a group that nobody reads any more; Apache Hudi overwrites such groups too.
                touched -= write_set.overwritten
            common = planned_groups(now, instant) & (
                touched - (write_set.appended if stands else frozenset())
            )
            if common:
                raise _group_conflict(now.storage, ours, instant, common)


def check_pending_rollbacks(now: TableState, ours: str) -> None:
    """Raise `CommitConflict` when another engine has planned to roll our write back.

    It carries its plan out whenever it comes to it, and would delete files of a commit.
    """
    for instant in now.timeline.pending:
        if instant.action is Action.ROLLBACK and now.reader.rollback_target(instant) == ours:
            raise rolled_back(now.storage, ours)


def check_pending_rewrites(now: TableState, write_set: WriteSet, ours: str) -> None:
    """Raise `CommitConflict` when a pending write, perhaps a dead one, has begun a base file of a group we append to.

    Hudi's readers take a log for one of that base file, which they then pass over as not committed, log and all.
    """
    if not write_set.appended:
        return
    for instant in now.timeline.pending:
        if instant.action in WRITE_ACTIONS and instant.requested_time != ours:
            common = _begun_groups(now.storage, instant) & write_set.appended
            if common:
                raise _group_conflict(now.storage, ours, instant, common)


def _begun_groups(storage: Storage, instant: Instant) -> frozenset[FileGroupId]:
    groups = set()
    for path in Markers(storage, instant.requested_time).data_files():
        partition, _, name = path.rpartition("/")
        base = parse_base_file(partition, name, 0)
        if base is not None:
            groups.add(FileGroupId(partition, base.file_id))
    return frozenset(groups)


def planned_groups(state: TableState, instant: Instant) -> frozenset[FileGroupId]:
    """Return the file groups that a pending compaction or clustering works on."""
    if instant.action is Action.CLUSTERING:
        return frozenset(FileGroupId(*group) for group in state.reader.clustering_groups(instant))
    operations = state.reader.compaction_plan(instant)
    return frozenset(FileGroupId(op.partition_path, op.file_id) for op in operations)


def clustered_groups(state: TableState) -> frozenset[FileGroupId]:
    """Return the file groups of pending clusterings, which take no new keys, as in Hudi."""
    pending = [instant for instant in state.timeline.pending if instant.action is Action.CLUSTERING]
    return frozenset(group for instant in pending for group in planned_groups(state, instant))


def check_new_keys(
    candidates: Iterable[Candidate],
    written: Iterable[tuple[WriteStat, str]],
    storage: Storage,
    ours: str,
    *,
    is_global: bool = False,
) -> None:
    """Raise `CommitConflict` when another write inserted a key that was new to ours, in any partition if `is_global`.

    `written` are our files, with the paths where they lie now. A key that both inserted stands in the files of
    both, in rows that carry the instant of the one and of the other.
    """
    inserted = [(stat, path) for stat, path in written if stat.num_inserts]
    for candidate in candidates:
        for theirs in candidate.metadata.stats:
            mine = [
                path for stat, path in inserted if is_global or stat.partition_path == theirs.partition_path
            ]
            if not (theirs.num_inserts and mine):
                continue
            try:
                common = _common_key(storage, theirs, candidate.instant.requested_time, mine, ours)
            except FileNotFoundError:
                raise _file_gone(storage, ours, candidate.instant, theirs) from None
            if common is not None:
                raise _key_conflict(storage, ours, candidate.instant, theirs, common)


def _common_key(storage: Storage, theirs: WriteStat, instant: str, mine: list[str], ours: str) -> str | None:
    keys = pa.chunked_array(list(keys_written_by(storage, theirs.path, instant)), pa.string())
    for path in mine:
        for batch in keys_written_by(storage, path, ours):
            both = batch.filter(pc.is_in(batch, value_set=keys))
            if len(both):
                return str(both[0])
    return None


def keys_written_by(storage: Storage, path: str, instant: str) -> Iterator[pa.Array]:
    """Yield the record keys of a file's rows that an instant wrote."""
    if not path.endswith(".parquet"):
        yield from keys_in_log(storage, path)
        return
    with storage.open(path) as source:
        for batch in pq.ParquetFile(source).iter_batches(columns=[RECORD_KEY, COMMIT_TIME]):
            yield batch.column(RECORD_KEY).filter(pc.equal(batch.column(COMMIT_TIME), instant))


def _group_conflict(
    storage: Storage, ours: str, other: Instant, common: Iterable[FileGroupId]
) -> CommitConflict:
    groups = sorted(f"{group.partition_path or '.'}/{group.file_id}" for group in common)
    what = "completed since" if other.is_completed else "is pending"
    return _conflict(
        storage,
        ours,
        f"the {other.action.value} {other.requested_time}, which {what}, touches the same file groups: {_few(groups)}",
        condition="CONCURRENT_COMMIT" if other.is_completed else "PENDING_PLAN",
        advice=_AGAIN if other.is_completed else _finish_first(storage, other),
        other=other.requested_time,
        groups=groups,
    )


def _finish_first(storage: Storage, plan: Instant) -> str:
    """The advice for a pending plan: retries do not help, because it stays until somebody runs it."""
    if plan.action is Action.CLUSTERING:
        return "let Apache Hudi run the clustering, or roll it back, and run the write again"
    return f"run the plan first (`drawstring compact {storage.root}`, or Apache Hudi), and the write again"


def _key_conflict(storage: Storage, ours: str, other: Instant, stat: WriteStat, key: str) -> CommitConflict:
    return _conflict(
        storage,
        ours,
        f"the {other.action.value} {other.requested_time}, which completed since, inserted the record key {key!r} "
        f"into partition {stat.partition_path!r} as well",
        condition="CONCURRENT_INSERT",
        other=other.requested_time,
        groups=[f"{stat.partition_path or '.'}/{stat.file_id}"],
    )


def _file_gone(storage: Storage, ours: str, other: Instant, stat: WriteStat) -> CommitConflict:
    return _conflict(
        storage,
        ours,
        f"the {other.action.value} {other.requested_time}, which completed since, inserted keys into {stat.path}, "
        "which was cleaned before they could be compared",
        condition="CONCURRENT_INSERT",
        other=other.requested_time,
        groups=[f"{stat.partition_path or '.'}/{stat.file_id}"],
    )


def files_cleaned(
    storage: Storage, ours: str, other: Instant, groups: Iterable[FileGroupId]
) -> CommitConflict:
    """Return the conflict of a writer that did not see file groups any more as they were when it began."""
    names = sorted(f"{group.partition_path or '.'}/{group.file_id}" for group in groups)
    return _conflict(
        storage,
        ours,
        f"the {other.action.value} {other.requested_time}, which completed since, replaced files of {_few(names)}, and "
        "they were cleaned before this write had read them",
        condition="FILES_CLEANED",
        other=other.requested_time,
        groups=names,
    )


def _few(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN_GROUPS]) + (" …" if len(names) > _SHOWN_GROUPS else "")


def _conflict(
    storage: Storage, ours: str, what: str, *, condition: str, advice: str = _AGAIN, **fields: object
) -> CommitConflict:
    return CommitConflict(
        f"The write {ours} to {storage.root} was not committed: {what}. Nothing of this write is visible; {advice}.",
        condition=condition,
        path=storage.root,
        instant=ours,
        **fields,
    )


def rolled_back(storage: Storage, ours: str) -> CommitConflict:
    """Return the conflict of a writer whose instant is gone: somebody rolled it back, or overwrote the table."""
    return _conflict(
        storage,
        ours,
        f"its instant {ours} is gone: another writer took it for dead and rolled it back, or overwrote the table",
        condition="ROLLED_BACK",
    )


def settings_changed(storage: Storage, ours: str) -> CommitConflict:
    """Return the conflict of a writer whose table got other settings meanwhile."""
    return _conflict(storage, ours, "its hoodie.properties changed since", condition="SETTINGS_CHANGED")


def overtaken(storage: Storage, ours: str) -> CommitConflict:
    """Return the conflict of a writer that lost its lock, and then the slot, to another one."""
    return _conflict(
        storage,
        ours,
        "another writer changed the table between its validation and its commit",
        condition="OVERTAKEN",
    )
