"""Archival: old instants move from the active timeline into its history, a tree of Parquet files.

Planned from values, as Hudi 1.2 does. The history is written before anything of the active timeline goes, so that a
crash in between leaves instants in both, which readers take for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

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
    beyond_savepoint: bool = False

    def beside(self, cleaned_until: int) -> ArchiveRetention:
        """Return the retention beside a cleaner that keeps so many of the newest writes readable, as Hudi does.

        What the cleaner keeps must stay active, or nobody could ask for it.
        """
        least = cleaned_until + 1
        if least <= self.min_commits:
            return self
        most = least + self.max_commits - self.min_commits
        return ArchiveRetention(least, most, self.beyond_savepoint)


def plan_archive(
    timeline: Timeline,
    retention: ArchiveRetention,
    *,
    metadata_compacted: str | None = None,
    limits: Iterable[str] = (),
) -> tuple[Instant, ...]:
    """Return the completed instants to archive, oldest first.

    1. Nothing happens until there are more than `max_commits` writes; then `min_commits` stay.
    2. The last write before a pending instant stays, and what came since. So does a savepoint, and what came since
       unless the retention goes beyond.
    3. Where there is a metadata table, only what its last compaction took in goes: `metadata_compacted` is that
       instant, an empty string when there was none yet, None without a metadata table.
    4. Nothing at or after one of the `limits` goes: instants that somebody needs.
    5. Cleans and rollbacks go with the writes around them; the newest clean stays, for the next one begins there.
    """
    writes = timeline.completed_writes
    if len(writes) <= retention.max_commits:
        return ()
    limit = min([*_limits(timeline, retention, metadata_compacted), *limits], default=None)
    saved = {instant.requested_time for instant in timeline.savepoints}
    old = [
        write
        for write in writes[: len(writes) - retention.min_commits]
        if (limit is None or write.requested_time < limit) and write.requested_time not in saved
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


def _limits(timeline: Timeline, retention: ArchiveRetention, metadata_compacted: str | None) -> Iterator[str]:
    pending = min((instant.requested_time for instant in timeline.pending), default=None)
    if pending is not None:
        before = [w.requested_time for w in timeline.completed_writes if w.requested_time < pending]
        yield before[-1] if before else pending
    if timeline.savepoints and not retention.beyond_savepoint:
        yield min(instant.requested_time for instant in timeline.savepoints)
    if metadata_compacted is not None:
        late = (w for w in timeline.completed_writes if (w.completion_time or "") > metadata_compacted)
        yield next((write.requested_time for write in late), metadata_compacted)


@dataclass(frozen=True)
class HistoryVersion:
    """The history as one manifest names it: files with their sizes, in order; and the next number for a manifest."""

    number: int = 0
    files: tuple[tuple[str, int], ...] = field(default=())
    next_number: int = 1


def read_version(storage: Storage, config: TableConfig) -> HistoryVersion:
    """Return the current version of the history; number 0 without files when there is none.

    A manifest above the current one was begun and never pointed at: its number is not used again.
    """
    numbers = _manifests(storage, config)
    if not numbers:
        return HistoryVersion()
    said = _version_text(storage, config)
    number = int(said) if said.isdigit() and int(said) in numbers else numbers[-1]
    return HistoryVersion(number, _named_files(storage, config, number), numbers[-1] + 1)


def _manifests(storage: Storage, config: TableConfig) -> list[int]:
    try:
        names = storage.list_names(config.history_directory)
    except FileNotFoundError:
        return []
    return sorted(int(name[9:]) for name in names if name.startswith("manifest_") and name[9:].isdigit())


def _version_text(storage: Storage, config: TableConfig) -> str:
    try:
        return storage.read(f"{config.history_directory}/{_VERSION_FILE}").decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""


def _named_files(storage: Storage, config: TableConfig, number: int) -> tuple[tuple[str, int], ...]:
    path = f"{config.history_directory}/manifest_{number}"
    try:
        found = json.loads(storage.read(path))["files"]
        return tuple((str(one["fileName"]), int(one["fileLen"])) for one in found)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptTable(
            f"Cannot archive: {path} of {storage.root} is not a list of files ({error!r}). Restore the file.",
            condition="CORRUPT_HISTORY",
            path=path,
        ) from error


def archive(storage: Storage, config: TableConfig, instants: Sequence[Instant]) -> Publication:
    """Return the steps that move completed instants into the history; nothing for none.

    First comes the file of instants, which counts once the manifest after it names it. The file that points at the
    current manifest goes: without it readers take the newest, also when somebody repeats these steps late. The files
    of each instant on the active timeline go pending ones first: an instant without its completed file would pass for
    one that failed.
    """
    if not instants:
        return Publication(())
    names = frozenset(storage.list_names(config.timeline_directory))
    content = _segment([_row(storage, config, instant, names) for instant in instants])
    added = (f"{instants[0].requested_time}_{instants[-1].requested_time}_0.parquet", len(content))
    current = read_version(storage, config)
    changed = _changed(storage, config, current, added, content, without=())
    return replace(changed, removes=(*changed.removes, *_active_files(config, instants, names)))


def _changed(
    storage: Storage,
    config: TableConfig,
    current: HistoryVersion,
    added: tuple[str, int],
    content: bytes,
    *,
    without: Collection[str],
) -> Publication:
    """Return the steps that make a version of the history with another file, and without those that it replaces."""
    folder = config.history_directory
    kept = [one for one in current.files if one[0] != added[0] and one[0] not in without]
    number = current.next_number
    return Publication(
        (
            NewFile(f"{folder}/{added[0]}", content),
            NewFile(f"{folder}/manifest_{number}", _manifest((*kept, added))),
        ),
        removes=(f"{folder}/{_VERSION_FILE}", *_unneeded(storage, config, current, added[0])),
    )


def _unneeded(storage: Storage, config: TableConfig, current: HistoryVersion, added: str) -> list[str]:
    """Return manifests that are old enough, and files that only those name."""
    folder = config.history_directory
    old = _manifests(storage, config)[: -(KEPT_MANIFESTS - 1)]
    old = [number for number in old if number != current.number]
    if not old:
        return []
    needed = {added, *(name for name, _ in current.files)}
    for number in _manifests(storage, config):
        if number not in old:
            needed.update(name for name, _ in _named_files(storage, config, number))
    unnamed = [n for n in storage.list_names(folder) if _SEGMENT.match(n) and n not in needed]
    return [*(f"{folder}/manifest_{number}" for number in old), *(f"{folder}/{name}" for name in unnamed)]


def merge_level(storage: Storage, config: TableConfig, *, files: int = MERGED_FILES) -> Publication:
    """Return the steps that make one file of the next level of the oldest files of a full one; nothing if none is."""
    folder = config.history_directory
    current = read_version(storage, config)
    by_level: dict[int, list[str]] = {}
    for name, _ in current.files:
        match = _SEGMENT.match(name)
        if match is not None:
            by_level.setdefault(int(match.group(3)), []).append(name)
    full = [level for level, names in sorted(by_level.items()) if len(names) >= files]
    if not full:
        return Publication(())
    chosen = sorted(by_level[full[0]])[:files]
    tables = []
    for name in chosen:
        with storage.open(f"{folder}/{name}") as file:
            tables.append(pq.read_table(file).cast(_ROW_SCHEMA))
    merged = pa.concat_tables(tables).sort_by("instantTime")
    content = _written(merged)
    times = merged.column("instantTime")
    name = f"{times[0].as_py()}_{times[len(times) - 1].as_py()}_{full[0] + 1}.parquet"
    return _changed(storage, config, current, (name, len(content)), content, without=chosen)


def point_at_newest(storage: Storage, config: TableConfig) -> None:
    """Say which manifest is current, for readers that do not look for the newest; nobody is ever pointed back."""
    path, numbers = f"{config.history_directory}/{_VERSION_FILE}", _manifests(storage, config)
    if numbers and not _version_text(storage, config):
        storage.replace_if(path, None, str(numbers[-1]).encode())


def _manifest(files: Iterable[tuple[str, int]]) -> bytes:
    entries = [{"fileName": name, "fileLen": size} for name, size in files]
    return json.dumps({"files": entries}, indent=2).encode()


def _row(
    storage: Storage, config: TableConfig, instant: Instant, names: Collection[str]
) -> dict[str, object]:
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


def _active_files(config: TableConfig, instants: Sequence[Instant], names: Collection[str]) -> list[str]:
    folder = config.timeline_directory
    archived = {instant.requested_time: instant.file_name for instant in instants}
    pending: list[str] = []
    completed: list[str] = []
    for name in sorted(names):
        time = name.partition(".")[0].partition("_")[0]
        if time in archived:
            (completed if name == archived[time] else pending).append(f"{folder}/{name}")
    return pending + completed
