"""Which files a clean deletes: planned from values, as Hudi 1.2 does, and encoded.

A slice is kept as long as a reader may need it by the policy; whatever it is, the newest slice of a group stays, and
so does everything that a savepoint names or that a pending compaction is going to read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from drawstring.formats import avro_schemas
from drawstring.formats.avro_schemas import encode_container
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Instant
from drawstring.timeline.timeline import Timeline

_VERSION = 2


class CleanPolicy(str, Enum):
    """How long old slices stay (`hoodie.clean.policy`)."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


@dataclass(frozen=True)
class CleanRetention:
    """What is retained, with the defaults of Hudi 1.2."""

    policy: CleanPolicy = CleanPolicy.KEEP_LATEST_COMMITS
    commits: int = 10
    hours: int = 24
    file_versions: int = 3


@dataclass(frozen=True)
class CleanPlan:
    """Files to delete, by partition path; names are without it.

    `earliest_retained` is the oldest write whose state of the table can still be read, None where versions are
    counted; `extra` is what the next clean wants to know. A partition of which no file is left stays one: nobody can
    delete its metafile, also late, beside a writer that is just filling it.
    """

    policy: CleanPolicy
    earliest_retained: Instant | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.files


@dataclass(frozen=True)
class CleanInput:
    """What a clean is planned from.

    - `slices`: every slice of each partition, newest first within a group; see `all_slices`.
    - `replaced`: by which instant file groups were replaced.
    - `savepointed`: names of files that savepoints keep, by partition path.
    - `compactions`: the instant of the pending compaction, or clustering, of file groups.
    """

    timeline: Timeline
    slices: Mapping[str, Sequence[FileSlice]]
    replaced: Mapping[FileGroupId, str] = field(default_factory=dict)
    savepointed: Mapping[str, Collection[str]] = field(default_factory=dict)
    compactions: Mapping[FileGroupId, str] = field(default_factory=dict)


def earliest_retained(
    timeline: Timeline, retention: CleanRetention, *, oldest_time: str = "", limit: str = ""
) -> Instant | None:
    """Return the oldest write whose state must stay readable; None when nothing may be cleaned by time.

    Args:
        timeline: the table's.
        retention: the policy.
        oldest_time: for KEEP_LATEST_BY_HOURS, now less the hours, in the digits of the timeline.
        limit: how far one clean may go; no limit when it is empty.
    """
    writes = timeline.completed_writes
    if retention.policy is CleanPolicy.KEEP_LATEST_COMMITS:
        found = writes[-retention.commits] if len(writes) > retention.commits else None
    elif retention.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        found = next((write for write in writes if write.requested_time >= oldest_time), None)
    else:
        return None
    if found is not None and limit and found.requested_time > limit:
        found = next(write for write in writes if write.requested_time >= limit)
    pending = min((instant.requested_time for instant in timeline.pending), default=None)
    if found is None or pending is None or found.requested_time < pending:
        return found
    # A write that began before still merges with the slices that it saw.
    before = [write for write in writes if write.requested_time < pending]
    return before[-1] if before else None


def plan_clean(
    given: CleanInput, retention: CleanRetention, *, oldest_time: str = "", limit: str = ""
) -> CleanPlan:
    """Return what a clean deletes; see `earliest_retained` for the arguments."""
    retained = earliest_retained(given.timeline, retention, oldest_time=oldest_time, limit=limit)
    files: dict[str, tuple[str, ...]] = {}
    by_versions = retention.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    for path, slices in given.slices.items() if retained is not None or by_versions else ():
        chosen = list(_chosen(given, path, slices, retention, retained))
        if chosen:
            files[path] = tuple(sorted(chosen))
    last = max((write.requested_time for write in given.timeline.completed_writes), default="")
    return CleanPlan(retention.policy, retained, last, files)


def _chosen(
    given: CleanInput,
    path: str,
    slices: Iterable[FileSlice],
    retention: CleanRetention,
    retained: Instant | None,
) -> Iterator[str]:
    kept = set(given.savepointed.get(path, ()))
    for group, found in groupby(slices, key=lambda one: one.group):
        history = list(found)
        for old in _outdated(given, group, history, retention, retained):
            names = [file.name for file in old.files]
            if not kept.intersection(names):
                yield from names


def _outdated(
    given: CleanInput,
    group: FileGroupId,
    history: Sequence[FileSlice],
    retention: CleanRetention,
    retained: Instant | None,
) -> Iterator[FileSlice]:
    """Yield the slices of a group that no reader needs, `history` being newest first."""
    needed = _needed_by_compaction(history, given.compactions.get(group))
    replaced_at = given.replaced.get(group)
    if replaced_at is not None and (retained is None or replaced_at < retained.requested_time):
        # Apache Hudi overwrites groups that a plan names; the plan must stay possible.
        yield from (old for old in history if old not in needed)
        return
    if retention.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        countable = [old for old in history if old not in needed]
        yield from countable[retention.file_versions :]
        return
    assert retained is not None
    limit = retained.requested_time
    # What was newest when the oldest retained state came about is part of that state.
    before = next((old.base_instant for old in history if old.base_instant < limit), None)
    for old in history[1:]:
        if old.base_instant < limit and old.base_instant != before and old not in needed:
            yield old


def _needed_by_compaction(history: Sequence[FileSlice], compaction: str | None) -> list[FileSlice]:
    """Return the slices that a pending compaction merges: the newest one before it, and what came since."""
    if compaction is None:
        return []
    needed = []
    for found in history:
        needed.append(found)
        if found.base_instant < compaction:
            break
    return needed


def encode_clean_plan(plan: CleanPlan, root: str) -> bytes:
    """Encode the plan as the content of a requested clean; paths are absolute below `root`."""
    retained = plan.earliest_retained
    record: dict[str, object] = {
        "earliestInstantToRetain": retained
        and {"timestamp": retained.requested_time, "action": retained.action.value, "state": "COMPLETED"},
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": plan.policy.value,
        "filesToBeDeletedPerPartition": {},
        "version": _VERSION,
        "filePathsToBeDeletedPerPartition": {
            path: [{"filePath": _absolute(root, path, name), "isBootstrapBaseFile": False} for name in names]
            for path, names in plan.files.items()
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": dict(plan.extra),
    }
    return encode_container(avro_schemas.CLEAN_PLAN, record)


def encode_clean(
    plan: CleanPlan, started: str, *, millis: int, failed: Mapping[str, Collection[str]]
) -> bytes:
    """Encode what a finished clean says; `failed` names files that could not be deleted, by partition path."""
    deleted = {
        path: [n for n in names if n not in failed.get(path, ())] for path, names in plan.files.items()
    }
    record = {
        "startCleanTime": started,
        "timeTakenInMillis": millis,
        "totalFilesDeleted": sum(map(len, deleted.values())),
        "earliestCommitToRetain": plan.earliest_retained.requested_time if plan.earliest_retained else "",
        "lastCompletedCommitTimestamp": plan.last_completed,
        "partitionMetadata": {
            path: {
                "partitionPath": path,
                "policy": plan.policy.value,
                "deletePathPatterns": list(names),
                "successDeleteFiles": deleted[path],
                "failedDeleteFiles": sorted(failed.get(path, ())),
                "isPartitionDeleted": False,
            }
            for path, names in plan.files.items()
        },
        "version": _VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": dict(plan.extra),
    }
    return encode_container(avro_schemas.CLEAN, record)


def _absolute(root: str, partition_path: str, name: str) -> str:
    return "/".join(part for part in (root.rstrip("/"), partition_path, name) if part)
