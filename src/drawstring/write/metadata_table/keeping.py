"""Keeps the metadata table in step: the steps that an instant of the data table adds to its own decision.

Each function returns steps of a slot and a time. The steps come after data files have their names, and before the
instant completes in the data table; the instant completes after that time. Nothing is decided here, and nothing
that readers see is changed: whoever takes the slot decides both tables at once. The table's lock must be held, and
`now` be the table as it is under it.

Tables without a metadata table get no steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import strip_meta_columns
from drawstring.schema.table_schema import table_schema_from_avro
from drawstring.storage.base import Storage
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write.clock import Clock, newest_time, next_time
from drawstring.write.markers import staged_path
from drawstring.write.metadata_table import layout, services
from drawstring.write.metadata_table.changes import (
    DataTableChange,
    PathOf,
    change_of_commit,
    change_of_deletion,
)
from drawstring.write.metadata_table.column_ranges import ColumnRange
from drawstring.write.metadata_table.definitions import (
    defined_columns,
    definitions_with,
    extended_columns,
    indexed_columns,
)
from drawstring.write.metadata_table.key_changes import key_changes
from drawstring.write.metadata_table.records import KeyLocation
from drawstring.write.metadata_table.writer import MetadataTableWriter, kept_partitions
from drawstring.write.publication import NewFile, Publication
from drawstring.write.slots import Step
from drawstring.write.table_facts import table_schema

STAGED_BYTES = 1 << 18
"""Larger files of the metadata table are staged and renamed, or slots would grow with them."""


@dataclass(frozen=True)
class CommitFacts:
    """What the writer of a commit knows, so that nothing need be read for it.

    - `ranges`: ranges of columns by path of the file; they must name every column of the index.
    - `located`, `deleted_keys`: what becomes of the record index; None where it is to be found out.
    """

    ranges: Mapping[str, Sequence[ColumnRange]] = field(default_factory=dict)
    located: Sequence[KeyLocation] | None = None
    deleted_keys: pa.Array | None = None


_NOTHING_KNOWN = CommitFacts()


def is_kept(config: TableConfig) -> bool:
    """Whether a table has a metadata table, or one is being built."""
    return bool(kept_partitions(config))


def directories(config: TableConfig) -> tuple[str, ...]:
    """Return where files of the metadata table are made."""
    partitions = kept_partitions(config)
    return (f"{FOLDER}/.hoodie/timeline", *(f"{FOLDER}/{name}" for name in partitions)) if partitions else ()


def steps_for_commit(
    now: TableState,
    requested_time: str,
    metadata: CommitMetadata,
    *,
    newest: str,
    clock: Clock,
    facts: CommitFacts = _NOTHING_KNOWN,
) -> tuple[tuple[Step, ...], str]:
    """Return the steps of a commit, deltacommit, replacecommit or compaction whose files are staged.

    Args:
        now: the table as it is, under the lock.
        requested_time: the instant of both tables.
        metadata: what the commit will say.
        newest: the newest time that was given out.
        clock: tells the time.
        facts: what its writer knows of the files.
    """
    if not is_kept(now.config):
        return (), newest

    def path_of(path: str) -> str:
        return staged_path(requested_time, path)

    writer = _writer(now)
    change = _commit_change(now, metadata, writer.partitions, facts, path_of)
    return _steps(now, writer, change, requested_time, newest, clock)


def steps_for_deletion(
    now: TableState,
    requested_time: str,
    deleted: Mapping[str, Collection[str]],
    *,
    newest: str,
    clock: Clock,
    deleted_partitions: Collection[str] = (),
) -> tuple[tuple[Step, ...], str]:
    """Return the steps of an instant that deletes files, such as a clean; see `steps_for_commit`.

    Args:
        now: the table as it is, under the lock.
        requested_time: the instant of both tables.
        deleted: names of files, by partition path.
        newest: the newest time that was given out.
        clock: tells the time.
        deleted_partitions: partitions of which nothing is left.
    """
    if not is_kept(now.config):
        return (), newest
    columns = defined_columns(now.storage, now.config) or tuple(_columns(now, ""))
    change = change_of_deletion(deleted, columns=columns, deleted_partitions=deleted_partitions)
    return _steps(now, _writer(now), change, requested_time, newest, clock)


def steps_for_rollback(
    now: TableState, target: str, rollback_time: str, *, newest: str, clock: Clock
) -> tuple[tuple[Step, ...], str]:
    """Return the steps that take the deltacommit of a pending instant back, if there is one."""
    if not is_kept(now.config) or not now.storage.exists(f"{FOLDER}/.hoodie/timeline"):
        return (), newest
    metadata = MetadataTable(now.storage, now.config, now.timeline)
    completed = _next(now, metadata, newest, clock)
    publication = services.roll_back(now.storage, target, rollback_time, completed)
    return publication.steps(), completed


def check_kept(state: TableState) -> None:
    """Refuse to begin a write that could not keep the metadata table: by what it has, or because it is damaged."""
    if is_kept(state.config):
        writer = _writer(state)
        with _named(state.storage):
            for name in sorted(writer.partitions):
                layout.group_count(state.storage, name)


def _writer(now: TableState) -> MetadataTableWriter:
    """Open the metadata table; one that lacks writes is damaged, for what is added would make it look right."""
    writer = MetadataTableWriter(now.storage, now.config, now.timeline)
    with _named(now.storage):
        reason = writer.metadata.lag()
    if reason is not None:
        raise damaged(now.storage, reason)
    return writer


def damaged(storage: Storage, reason: str) -> CorruptTable:
    """The error for a metadata table that must not be trusted."""
    return CorruptTable(
        f"The metadata table of {storage.root} cannot be kept up to date: {reason}. Reads list storage instead. "
        f"Rebuild it with `drawstring metadata rebuild {storage.root}`, or write once with "
        "hoodie.metadata.enable=false, which removes it.",
        condition="METADATA_TABLE_DAMAGED",
        path=f"{storage.root}/{FOLDER}",
        reason=reason,
    )


@contextmanager
def _named(storage: Storage) -> Iterator[None]:
    """Say of damage which table it is in: files of the metadata table mean nothing to who writes rows."""
    try:
        yield
    except CorruptTable as error:
        raise damaged(storage, error.message.rstrip(".")) from error
    except FileNotFoundError as error:
        raise damaged(storage, f"a file is missing ({error})") from error


def _commit_change(
    now: TableState,
    metadata: CommitMetadata,
    partitions: Collection[str],
    facts: CommitFacts,
    path_of: PathOf,
) -> DataTableChange:
    located, deleted_keys = facts.located, facts.deleted_keys
    if layout.RECORD_INDEX in partitions and located is None:
        schema = table_schema_from_avro(metadata.schema) if metadata.schema else None
        located, deleted_keys = (
            key_changes(now, metadata, schema, path_of=path_of) if schema is not None else ((), None)
        )
    return change_of_commit(
        now.storage,
        metadata,
        columns=_extended(now, metadata.schema) if layout.COLUMN_STATS in partitions else {},
        with_bloom_filters=layout.BLOOM_FILTERS in partitions,
        ranges_of=lambda stat: facts.ranges.get(stat.path),
        floats_are_exact=True,
        located=located or (),
        deleted_keys=deleted_keys,
        path_of=path_of,
    )


def _extended(now: TableState, avro: str) -> dict[str, pa.DataType]:
    """Return the columns of the statistics, new ones of this commit included.

    The definitions name those from now on, whatever becomes of the commit: no file that is there has such a column.
    """
    if avro:
        defined, before = defined_columns(now.storage, now.config), table_schema(now)
        after = strip_meta_columns(table_schema_from_avro(avro))
        extended = extended_columns(defined, before, after)
        if extended is not None:
            found = definitions_with(now.storage, now.config, (layout.COLUMN_STATS,), extended)
            if found is not None:
                now.storage.write(*found)
    return _columns(now, avro)


def _columns(now: TableState, avro: str) -> dict[str, pa.DataType]:
    schema = strip_meta_columns(table_schema_from_avro(avro)) if avro else table_schema(now)
    return indexed_columns(now.storage, now.config, schema if schema is not None else pa.schema([]))


def _steps(
    now: TableState,
    writer: MetadataTableWriter,
    change: DataTableChange,
    requested_time: str,
    newest: str,
    clock: Clock,
) -> tuple[tuple[Step, ...], str]:
    with _named(now.storage):
        completed = _next(now, writer.metadata, newest, clock)
        publication = writer.prepare(change, requested_time).publication(completed)
    return staged_steps(now.storage, requested_time, publication), completed


def _next(now: TableState, metadata: MetadataTable, newest: str, clock: Clock) -> str:
    own = newest_time(metadata.timeline.ascending_instants)
    return next_time(max(newest, own), clock=clock, timezone=now.config.timezone)


def staged_steps(storage: Storage, requested_time: str, publication: Publication) -> tuple[Step, ...]:
    """Return a publication as steps; large files are written now, where nobody looks, and only renamed then."""
    created = [_created(storage, requested_time, file) for file in publication.creates]
    return (*created, *(Step.delete_tree(path) for path in publication.removes))


def _created(storage: Storage, requested_time: str, file: NewFile) -> Step:
    if len(file.content) <= STAGED_BYTES:
        return Step.create(file.path, file.content)
    staged = staged_path(requested_time, file.path)
    storage.write(staged, file.content)
    return Step.rename(staged, file.path)
