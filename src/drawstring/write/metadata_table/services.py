"""Services of the metadata table itself: rollback, clean and archival (`compaction` has its own module).

Like its deltacommits they are prepared as steps, under the table's lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drawstring.model.file_names import parse_base_file, parse_log_file
from drawstring.model.instant import Action
from drawstring.storage.base import Storage
from drawstring.storage.nested import NestedStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.timeline import Timeline
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write.commit_encoding import encode_rollback, encode_rollback_plan
from drawstring.write.publication import NewFile, Publication
from drawstring.write.services.archive import ArchiveRetention, archive, plan_archive, point_at_newest
from drawstring.write.services.clean import (
    CleanInput,
    CleanRetention,
    encode_clean,
    encode_clean_plan,
    plan_clean,
)
from drawstring.write.slots import Decision, Step

RETENTION = CleanRetention(commits=12)
"""Hudi derives it from the data table's ten commits, with a fifth more."""
_TIMELINE = f"{FOLDER}/.hoodie/timeline"


def roll_back(storage: Storage, target: str, instant: str, completion_time: str) -> Publication:
    """Return the steps that take a deltacommit back which the data table does not complete; nothing if it has none.

    Args:
        storage: the data table's.
        target: the instant to take back.
        instant: the data table's rollback, which is the metadata table's too.
        completion_time: later than everything on either timeline.
    """
    names = [e.name for e in storage.list(_TIMELINE) if re.match(rf"{target}[._]", e.name)]
    if not names:
        return Publication(())
    files = {path: found for path in _partitions(storage) if (found := _files_of(storage, path, target))}
    absolute = {
        path: [f"{storage.root}/{FOLDER}/{path}/{name}" for name in names] for path, names in files.items()
    }
    action = Action.DELTACOMMIT.value
    done = encode_rollback(instant, target, action, files=absolute, millis=0)
    completed_first = sorted(
        names, key=lambda name: (name.endswith(("requested", "inflight")), "requested" in name)
    )
    return Publication(
        (
            NewFile(
                f"{_TIMELINE}/{instant}.rollback.requested", encode_rollback_plan(target, action, absolute)
            ),
            NewFile(f"{_TIMELINE}/{instant}.rollback.inflight", b""),
            NewFile(f"{_TIMELINE}/{instant}_{completion_time}.rollback", done),
        ),
        removes=(
            *(f"{FOLDER}/{path}/{name}" for path, found in files.items() for name in found),
            f"{FOLDER}/.hoodie/.temp/{target}",
            *(f"{_TIMELINE}/{name}" for name in completed_first),
        ),
    )


def clean(storage: Storage, metadata: MetadataTable, instant: str, completion_time: str) -> Publication:
    """Return the steps of a clean of the metadata table; nothing when no file is old enough."""
    slices = {name: metadata.all_slices(name) for name in sorted(metadata.indexes)}
    plan = plan_clean(CleanInput(metadata.timeline, slices), RETENTION)
    if plan.is_empty:
        return Publication(())
    content = encode_clean_plan(plan, f"{storage.root}/{FOLDER}")
    return Publication(
        (
            NewFile(f"{_TIMELINE}/{instant}.clean.requested", content),
            NewFile(f"{_TIMELINE}/{instant}.clean.inflight", b""),
            NewFile(
                f"{_TIMELINE}/{instant}_{completion_time}.clean",
                encode_clean(plan, instant, millis=0, failed={}),
            ),
        ),
        removes=tuple(f"{FOLDER}/{path}/{name}" for path, names in plan.files.items() for name in names),
    )


def archive_timeline(
    storage: Storage, metadata: MetadataTable, data_timeline: Timeline, retention: ArchiveRetention
) -> Publication:
    """Return the steps that archive instants of the metadata table which nothing refers to any more.

    Instants that the data table has active stay, for they prove that both are in step; so do those of files that
    are there, for they tell which slice a log belongs to.
    """
    nested = NestedStorage(storage, FOLDER)
    used = [time for path in _partitions(storage) for _, time in _named(storage, path)]
    limits = [*used, *(instant.requested_time for instant in data_timeline.ascending_instants)]
    chosen = [
        instant
        for instant in plan_archive(metadata.timeline, retention)
        if instant.requested_time < min(limits, default="")
    ]
    steps = archive(nested, read_table_config(nested), chosen)
    return Publication(
        tuple(NewFile(f"{FOLDER}/{file.path}", file.content) for file in steps.creates),
        removes=tuple(f"{FOLDER}/{path}" for path in steps.removes),
        finally_replaces=tuple(
            NewFile(f"{FOLDER}/{file.path}", file.content) for file in steps.finally_replaces
        ),
    )


def archive_decisions(
    storage: Storage,
    metadata: MetadataTable,
    data_timeline: Timeline,
    retention: ArchiveRetention | None = None,
) -> Iterator[Decision]:
    """Yield what a slot must decide to archive the metadata table's timeline; nothing when nothing is old enough.

    The file of instants is written first, where it does not count until a manifest names it.
    """
    steps = archive_timeline(storage, metadata, data_timeline, retention or ArchiveRetention())
    if not steps.creates:
        return
    segment, manifest = steps.creates
    if (
        storage.create_if_absent(segment.path, segment.content)
        or storage.read(segment.path) == segment.content
    ):
        *_, last = steps.removes
        deleted = tuple(map(Step.delete, steps.removes))
        yield Decision(
            f"archive_{manifest.path}", (Step.create(manifest.path, manifest.content), *deleted), removes=last
        )


def point_at_newest_history(storage: Storage) -> None:
    """Say which manifest of the metadata table's history is current."""
    nested = NestedStorage(storage, FOLDER)
    point_at_newest(nested, read_table_config(nested))


def _partitions(storage: Storage) -> list[str]:
    return sorted(e.name for e in storage.list(FOLDER) if e.is_directory and e.name != ".hoodie")


def _files_of(storage: Storage, partition: str, instant: str) -> list[str]:
    return sorted(name for name, time in _named(storage, partition) if time == instant)


def _named(storage: Storage, partition: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a partition's data files, each with the instant that it carries."""
    for entry in storage.list(f"{FOLDER}/{partition}"):
        found = parse_base_file(partition, entry.name, 0) or parse_log_file(partition, entry.name, 0)
        if found is not None:
            yield entry.name, found.instant
