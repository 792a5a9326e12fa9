"""Archival: old instants move from the active timeline into its history, a tree of Parquet files.

Planned from values, as Hudi 1.2 does. The history is written before anything of the active timeline goes, so that a
crash in between leaves instants in both, which readers take for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.formats.avro_schemas import LSM_INSTANT, schema_json
from drawstring.model.instant import Action, Instant
from drawstring.storage.base import Storage
from drawstring.timeline.timeline import Timeline
from drawstring.write.publication import NewFile, Publication

MERGED_FILES = 10
"""`hoodie.timeline.compaction.batch.size`: so many files of a level become one of the next."""
KEPT_MANIFESTS = 3
"""`hoodie.timeline.manifest.retained.versions`."""
_SEGMENT = re.compile(r"^(\d+)_(\d+)_(\d)\.parquet$")
_VERSION_FILE = "_version_"
_ROW_SCHEMA = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ],
    metadata={"parquet.avro.schema": schema_json(LSM_INSTANT), "writer.model.name": "avro"},
)
_PLANNED = {
    Action.CLEAN: (Action.CLEAN,),
    Action.COMMIT: (Action.COMPACTION,),
    Action.DELTACOMMIT: (Action.LOGCOMPACTION,),
    Action.REPLACECOMMIT: (Action.CLUSTERING, Action.REPLACECOMMIT),
}
"""Under which actions a completed one may have been requested with a plan."""


@dataclass(frozen=True)
class ArchiveRetention:
    """How many writes stay active, with the defaults of Hudi 1.2 (`hoodie.keep.min.commits`, `…max.commits`)."""

    min_commits: int = 20
    max_commits: int = 30


def plan_archive(
    timeline: Timeline, retention: ArchiveRetention, *, metadata_compacted: str | None = None
) -> tuple[Instant, ...]:
    """Return the completed instants to archive, oldest first.

    1. Nothing happens until there are more than `max_commits` writes; then `min_commits` stay.
    2. Nothing at or after a pending instant, or at or after a savepoint goes.
    3. Where there is a metadata table, only what its last compaction took in goes: `metadata_compacted` is that
       instant, an empty string when there was none yet, None without a metadata table.
    4. Cleans and rollbacks go with the writes around them; the newest clean stays, for the next one begins there.
    """
    writes = timeline.completed_writes
    if len(writes) <= retention.max_commits:
        return ()
    limits = [instant.requested_time for instant in (*timeline.pending, *timeline.savepoints)]
    if metadata_compacted is not None:
        limits.append(metadata_compacted)
    limit = min(limits, default=None)
    old = [
        write
        for write in writes[: len(writes) - retention.min_commits]
        if limit is None or write.requested_time < limit
    ]
    if not old:
        return ()
    newest_clean = max((clean.requested_time for clean in timeline.completed_cleans), default="")
    others = [
        instant
        for instant in timeline.ascending_instants
        if instant.is_completed
        and instant.action in (Action.CLEAN, Action.ROLLBACK)
        and instant.requested_time < old[-1].requested_time
        and instant.requested_time != newest_clean
    ]
    return tuple(sorted([*old, *others], key=lambda instant: instant.requested_time))


@dataclass(frozen=True)
class HistoryVersion:
    """The history as one manifest names it: files with their sizes, in order."""

    number: int = 0
    files: tuple[tuple[str, int], ...] = field(default=())


def read_version(storage: Storage, config: TableConfig) -> HistoryVersion:
    """Return the current version of the history; number 0 without files when there is none."""
    folder = config.history_directory
    try:
        names = {entry.name for entry in storage.list(folder)}
    except FileNotFoundError:
        return HistoryVersion()
    numbers = sorted(int(name[9:]) for name in names if name.startswith("manifest_") and name[9:].isdigit())
    said = storage.read(f"{folder}/{_VERSION_FILE}").decode().strip() if _VERSION_FILE in names else ""
    number = int(said) if said.isdigit() and int(said) in numbers else max(numbers, default=0)
    if not number:
        return HistoryVersion()
    path = f"{folder}/manifest_{number}"
    try:
        found = json.loads(storage.read(path))["files"]
        return HistoryVersion(number, tuple((str(one["fileName"]), int(one["fileLen"])) for one in found))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"Cannot archive: {path} of {storage.root} is no list of files ({error!r}). Restore the file.",
            condition="CORRUPT_HISTORY",
            path=path,
        ) from error


def archive(storage: Storage, config: TableConfig, instants: Sequence[Instant]) -> Publication:
    """Return the steps that move completed instants into the history; nothing for none.

    The files of each instant on the active timeline go pending ones first: an instant without its completed file
    would pass for one that failed.
    """
    if not instants:
        return Publication(())
    folder = config.history_directory
    names = [entry.name for entry in storage.list(config.timeline_directory) if not entry.is_directory]
    content = _segment([_row(storage, config, instant, names) for instant in instants])
    first, last = instants[0].requested_time, instants[-1].requested_time
    current = read_version(storage, config)
    added = (f"{first}_{last}_0.parquet", len(content))
    kept = [one for one in current.files if one[0] != added[0]]
    files = (*kept, added)
    manifest = _manifest(files)
    number = current.number + 1
    stale = [
        f"{folder}/manifest_{old}"
        for old in range(max(0, number - KEPT_MANIFESTS - 8), number - KEPT_MANIFESTS + 1)
    ]
    return Publication(
        (NewFile(f"{folder}/{added[0]}", content), NewFile(f"{folder}/manifest_{number}", manifest)),
        removes=(*_active_files(config, instants, names), *(path for path in stale if storage.exists(path))),
        finally_replaces=(NewFile(f"{folder}/{_VERSION_FILE}", str(number).encode()),),
    )


def merge_level(storage: Storage, config: TableConfig) -> Publication:
    """Return the steps that make one file of the next level of the oldest files of a full one; nothing if none is."""
    folder = config.history_directory
    current = read_version(storage, config)
    by_level: dict[int, list[str]] = {}
    for name, _ in current.files:
        match = _SEGMENT.match(name)
        if match is not None:
            by_level.setdefault(int(match.group(3)), []).append(name)
    full = [level for level, names in sorted(by_level.items()) if len(names) >= MERGED_FILES]
    if not full:
        return Publication(())
    chosen = sorted(by_level[full[0]])[:MERGED_FILES]
    tables = []
    for name in chosen:
        with storage.open(f"{folder}/{name}") as file:
            tables.append(pq.read_table(file).cast(_ROW_SCHEMA))
    merged = pa.concat_tables(tables).sort_by("instantTime")
    content = _written(merged)
    times = merged.column("instantTime")
    name = f"{times[0].as_py()}_{times[len(times) - 1].as_py()}_{full[0] + 1}.parquet"
    files = (*(one for one in current.files if one[0] not in chosen), (name, len(content)))
    number = current.number + 1
    # Readers of the manifest before still need the files that were merged; a later merge finds them unnamed.
    return Publication(
        (NewFile(f"{folder}/{name}", content), NewFile(f"{folder}/manifest_{number}", _manifest(files))),
        finally_replaces=(NewFile(f"{folder}/{_VERSION_FILE}", str(number).encode()),),
    )


def _manifest(files: Iterable[tuple[str, int]]) -> bytes:
    entries = [{"fileName": name, "fileLen": size} for name, size in files]
    return json.dumps({"files": entries}, indent=2).encode()


def _row(storage: Storage, config: TableConfig, instant: Instant, names: Sequence[str]) -> dict[str, object]:
    folder = config.timeline_directory
    plan = None
    for action in _PLANNED.get(instant.action, ()):
        name = f"{instant.requested_time}.{action.value}.requested"
        if name in names:
            plan = storage.read(f"{folder}/{name}") or None
    return {
        "instantTime": instant.requested_time,
        "completionTime": instant.completion_time,
        "action": instant.action.value,
        "metadata": storage.read(f"{folder}/{instant.file_name}") or None,
        "plan": plan,
        "version": 1,
    }


def _segment(rows: Sequence[dict[str, object]]) -> bytes:
    return _written(pa.Table.from_pylist(list(rows), schema=_ROW_SCHEMA))


def _written(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="gzip", store_schema=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _active_files(config: TableConfig, instants: Sequence[Instant], names: Sequence[str]) -> list[str]:
    folder = config.timeline_directory
    archived = {instant.requested_time: instant.file_name for instant in instants}
    pending: list[str] = []
    completed: list[str] = []
    for name in sorted(names):
        time = re.split(r"[_.]", name, maxsplit=1)[0]
        if time in archived:
            (completed if name == archived[time] else pending).append(f"{folder}/{name}")
    return pending + completed
