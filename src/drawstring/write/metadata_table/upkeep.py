"""Prepares the metadata table before a write begins: makes, extends, removes, compacts, cleans or archives it.

All of it happens under the table's lock, after `slots.settle`. The settings name a partition only once everything of
it is there, and stop naming it before anything of it is deleted: a writer that dies in between leaves a correct table.

The lock may lapse while its holder is paused. What is made is therefore one decision, the settings its last step;
settings are replaced only if they are as they were when the table was loaded; and what goes is moved away in one
step, and back again if it turns out that others have begun to use it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.metadata_options import MetadataTableOptions
from drawstring.config.table_config import INDEX_DEFINITIONS, METADATA_PARTITIONS
from drawstring.errors import CommitConflict, CorruptTable
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import (
    PROPERTIES,
    content_of,
    recover_table_properties,
    updated_content,
)
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write import slots
from drawstring.write.clock import Clock, newest_time, next_time, system_clock
from drawstring.write.locks import configured_lock
from drawstring.write.metadata_table import keeping, layout, services
from drawstring.write.metadata_table.changes import located_in_slices
from drawstring.write.metadata_table.compaction import is_due, prepare_compaction
from drawstring.write.metadata_table.definitions import (
    chosen_columns,
    defined_columns,
    definitions_without,
    is_partitioned_record_index,
    typed_columns,
)
from drawstring.write.metadata_table.initialise import (
    PENDING_KEY,
    existing_files,
    initialise,
    settings_with,
)
from drawstring.write.metadata_table.records import KeyLocation
from drawstring.write.metadata_table.writer import kept_partitions
from drawstring.write.publication import Publication
from drawstring.write.services.support import REBUILD_METADATA, check_serviceable
from drawstring.write.slots import Decision, Step
from drawstring.write.staging import drop_folder
from drawstring.write.support import require_atomic_create
from drawstring.write.table_facts import load_state, table_schema
from drawstring.write.unused_folders import drop_folders

logger = logging.getLogger(__name__)
_TIMELINE = f"{FOLDER}/.hoodie/timeline"


def prepared(
    state: TableState, number: int, wanted: MetadataTableOptions | None, *, clock: Clock
) -> TableState:
    """Return the table's state with the metadata table as a write wants it; None wants it as it is.

    `number` is the newest slot. Raises `CorruptTable` when the metadata table is damaged.
    """
    if wanted is None:
        keeping.check_kept(state)
        return state
    if not wanted.enabled:
        return remove(state, number) if keeping.is_kept(state.config) else state
    state, number = without_unkept(state, number)
    keeping.check_kept(state)
    missing = [name for name in wanted_partitions(state, wanted) if name not in kept_partitions(state.config)]
    if missing:
        return make(state, number, missing, wanted, clock=clock)
    return serve(state, number, wanted, clock=clock)


def wanted_partitions(state: TableState, wanted: MetadataTableOptions) -> list[str]:
    """Return the partitions that a table gets by the options."""
    found = [layout.FILES]
    if wanted.column_stats:
        found.append(layout.COLUMN_STATS)
        if wanted.partition_stats and state.config.partition_fields:
            found.append(layout.PARTITION_STATS)
    if wanted.bloom_filters:
        found.append(layout.BLOOM_FILTERS)
    if wanted.record_index:
        found.append(layout.RECORD_INDEX)
    return found


def remove(state: TableState, number: int) -> TableState:
    """Remove the metadata table as Hudi does: the settings first, which every reader goes by, then the folder."""
    storage, config = state.storage, state.config
    logger.info("Removing the metadata table of %s.", storage.root)
    settings = _replace_settings(state, number, {METADATA_PARTITIONS.key: "", PENDING_KEY: ""})
    _drop(storage, [FOLDER], lambda: _content(storage, PROPERTIES) == settings)
    try:
        defined = definitions_without(storage, config, kept_partitions(config))
        if defined is not None:
            storage.write(*defined)
    except CorruptTable:
        storage.delete(INDEX_DEFINITIONS.find(config.properties))
    return load_state(storage)


def _replace_settings(state: TableState, number: int, changes: Mapping[str, str]) -> bytes:
    """Change settings that are as they were when the table was loaded, and return the file's new content.

    It takes a slot: a service of the metadata table that goes must not stay the newest decision.
    """
    changed = updated_content({**state.config.properties, **changes})
    step = Step.replace_if(PROPERTIES, _settings(state), changed)
    decision = Decision(f"metadata_{number + 1}", (step,), creates=PROPERTIES)
    if not slots.take(state.storage, number + 1, decision):
        raise _overtaken(state.storage, "changed")
    slots.carry_out(state.storage, decision)
    return changed


def _settings(state: TableState) -> bytes:
    content = content_of(state.storage, state.config)
    if content is None:
        raise _overtaken(state.storage, "changed")
    return content


def _overtaken(storage: Storage, what: str) -> CommitConflict:
    return CommitConflict(
        f"The metadata table of {storage.root} was not {what}: another writer changed the table at the same moment. "
        "Nothing was written; try again.",
        condition="OVERTAKEN",
        path=storage.root,
    )


def _content(storage: Storage, path: str) -> bytes | None:
    with suppress(FileNotFoundError):
        return storage.read(path)
    return None


def _drop(storage: Storage, paths: Collection[str], is_unused: Callable[[], bool]) -> None:
    if not drop_folders(storage, paths, is_unused):
        raise _overtaken(storage, "changed")


def without_unkept(state: TableState, number: int) -> tuple[TableState, int]:
    """Take indexes out that drawstring does not keep right, such as secondary ones; the user is told.

    Returns the state and the newest slot after that.
    """
    storage, config = state.storage, state.config
    names = {name for name in kept_partitions(config) if name not in layout.INDEX_PARTITIONS}
    if layout.RECORD_INDEX in kept_partitions(config) and is_partitioned_record_index(storage, config):
        names.add(layout.RECORD_INDEX)
    if not names:
        return state, number
    logger.warning(
        "Taking the index %s out of the metadata table of %s: drawstring does not keep it up to date. Make it "
        "again with Apache Hudi when you need it.",
        ", ".join(sorted(names)),
        storage.root,
    )
    lists = {METADATA_PARTITIONS.key: config.metadata_partitions, PENDING_KEY: _pending(state)}
    left = {key: ",".join(sorted(set(found) - names)) for key, found in lists.items()}
    settings = _replace_settings(state, number, left)
    _drop(storage, [f"{FOLDER}/{name}" for name in names], lambda: _content(storage, PROPERTIES) == settings)
    defined = definitions_without(storage, config, names)
    if defined is not None:
        storage.write(*defined)
    return load_state(storage), number + 1


def _pending(state: TableState) -> tuple[str, ...]:
    named = state.config.properties.get(PENDING_KEY, "").split(",")
    return tuple(name.strip() for name in named if name.strip())


def make(
    state: TableState, number: int, partitions: Collection[str], wanted: MetadataTableOptions, *, clock: Clock
) -> TableState:
    """Make partitions of the metadata table from what the table holds; the settings name them at the end.

    A slot decides it: should the lock have been lost meanwhile, whoever committed has taken that.
    """
    storage, settings, staged = state.storage, _settings(state), str(uuid.uuid4().int)
    _sweep(state, number, partitions)
    made = _made(state, partitions, wanted, clock)
    steps = (
        *keeping.staged_steps(storage, staged, made),
        *_replacing_steps(storage, made),
        Step.replace_if(PROPERTIES, settings, updated_content(settings_with(state.config, partitions))),
    )
    decision = Decision(f"metadata_{number + 1}", steps, creates=PROPERTIES)
    if not slots.take(storage, number + 1, decision):
        drop_folder(storage, staged)
        raise _overtaken(storage, "made")
    slots.carry_out(storage, decision)
    drop_folder(storage, staged)
    return load_state(storage)


def _replacing_steps(storage: Storage, made: Publication) -> Iterator[Step]:
    for file in made.replaces:
        found = _content(storage, file.path)
        yield (
            Step.create(file.path, file.content)
            if found is None
            else Step.replace_if(file.path, found, file.content)
        )


def _sweep(state: TableState, number: int, partitions: Collection[str]) -> None:
    """Delete what is left of partitions that somebody began to make and never named in the settings."""
    storage, kept = state.storage, keeping.is_kept(state.config)

    def is_unused() -> bool:
        return content_of(storage, state.config) is not None and slots.newest(storage) == number

    _drop(storage, [f"{FOLDER}/{name}" for name in partitions] if kept else [FOLDER], is_unused)
    if not kept:
        return
    metadata = MetadataTable(storage, state.config, state.timeline)
    pending = {instant.requested_time for instant in metadata.timeline.pending}
    for name in storage.list_names(_TIMELINE):
        if name.startswith("0000") and name.split(".")[0] in pending:
            storage.delete(f"{_TIMELINE}/{name}")


def _made(
    state: TableState, partitions: Collection[str], wanted: MetadataTableOptions, clock: Clock
) -> Publication:
    storage, config, schema = state.storage, state.config, table_schema(state)
    names = defined_columns(storage, config) if layout.COLUMN_STATS not in partitions else ()
    names = names or chosen_columns(wanted.columns, schema, wanted.most_columns)
    needs_stats = bool({layout.COLUMN_STATS, layout.PARTITION_STATS} & set(partitions))
    change = existing_files(
        storage,
        config,
        state.timeline,
        columns=typed_columns(names, schema) if schema is not None and needs_stats else {},
        with_bloom_filters=layout.BLOOM_FILTERS in partitions,
        located=_located(state, schema) if layout.RECORD_INDEX in partitions else (),
    )
    own = newest_time(state.timeline.ascending_instants)
    if keeping.is_kept(config):
        metadata = MetadataTable(storage, config, state.timeline)
        own = max(own, newest_time(metadata.timeline.ascending_instants))
    newest = next_time(own, clock=clock, timezone=config.timezone)
    change = replace(change, indexed_columns=names)
    return initialise(storage, config, change, partitions=partitions, newest_time=newest)


def _located(state: TableState, schema: pa.Schema | None) -> list[KeyLocation]:
    if schema is None:
        return []
    facts, view = TaskFacts(state, TableSchemas(state, None)), state.view(None)
    tasks = (facts.task(found) for path in view.partitions() for found in view.slices(path))
    return list(located_in_slices(state.storage, tasks, prepend_meta_columns(schema)))


def serve(state: TableState, number: int, wanted: MetadataTableOptions, *, clock: Clock) -> TableState:
    """Compact the metadata table when it is due; then clean and archive it, each decided by a slot."""
    metadata = MetadataTable(state.storage, state.config, state.timeline)
    if not keeping.is_kept(state.config) or not is_due(metadata, after=wanted.compact_after):
        return state
    upkeep = _Services(state, number, clock)
    upkeep.compact()
    upkeep.clean()
    upkeep.archive()
    return load_state(state.storage)


class _Services:
    """Services of the metadata table, one slot after the other."""

    def __init__(self, state: TableState, number: int, clock: Clock) -> None:
        self._state, self._number, self._clock = state, number, clock

    def _open(self) -> MetadataTable:
        return MetadataTable(self._state.storage, self._state.config, self._state.timeline)

    def _times(self, metadata: MetadataTable) -> tuple[str, str]:
        zone = self._state.config.timezone
        newest = max(
            newest_time(self._state.timeline.ascending_instants),
            newest_time(metadata.timeline.ascending_instants),
        )
        requested = next_time(newest, clock=self._clock, timezone=zone)
        return requested, next_time(requested, clock=self._clock, timezone=zone)

    def compact(self) -> None:
        metadata = self._open()
        requested, completed = self._times(metadata)
        steps = prepare_compaction(metadata, requested).publication(completed)
        self._decide(metadata, requested, steps, f"{_TIMELINE}/{requested}_{completed}.commit")

    def clean(self) -> None:
        metadata = self._open()
        requested, completed = self._times(metadata)
        steps = services.clean(self._state.storage, metadata, requested, completed)
        if steps.creates:
            self._decide(metadata, requested, steps, f"{_TIMELINE}/{requested}_{completed}.clean")

    def archive(self) -> None:
        storage = self._state.storage
        for decision in services.archive_decisions(storage, self._open(), self._state.timeline):
            self._take(decision)
        services.point_at_newest_history(storage)

    def _decide(
        self, metadata: MetadataTable, requested: str, publication: Publication, creates: str
    ) -> None:
        steps = keeping.staged_steps(self._state.storage, requested, publication)
        # Should Apache Hudi make the table anew before this is carried out, it is void: what it was based on is gone.
        needs = f"{_TIMELINE}/{metadata.timeline.completed_writes[-1].file_name}"
        self._take(Decision(f"metadata_{requested}", steps, creates=creates, needs=needs))
        drop_folder(self._state.storage, requested)

    def _take(self, decision: Decision) -> None:
        self._number += 1
        if not slots.take(self._state.storage, self._number, decision):
            raise _overtaken(self._state.storage, "compacted")
        slots.carry_out(self._state.storage, decision)


def rebuild_metadata_table(
    storage: Storage,
    wanted: MetadataTableOptions,
    *,
    options: ConcurrencyOptions | None = None,
    clock: Clock = system_clock,
) -> tuple[str, ...]:
    """Remove the metadata table and make it anew from the table's files; returns its partitions.

    It has the indexes that it had, but for those that drawstring does not keep, and those that are wanted.
    """
    require_atomic_create(storage)
    check_serviceable(load_state(storage), REBUILD_METADATA)
    with configured_lock(storage, options or ConcurrencyOptions()):
        recover_table_properties(storage)
        number = slots.settle(storage)
        state = load_state(storage)
        had = [name for name in state.config.metadata_partitions if name in layout.INDEX_PARTITIONS]
        if keeping.is_kept(state.config):
            state, number = remove(state, number), number + 1
        partitions = list(dict.fromkeys([*wanted_partitions(state, wanted), *had]))
        return make(state, number, partitions, wanted, clock=clock).config.metadata_partitions


def drop_metadata_table(storage: Storage, *, options: ConcurrencyOptions | None = None) -> bool:
    """Remove the metadata table; False when there is none. The next write makes it again unless told not to."""
    require_atomic_create(storage)
    with configured_lock(storage, options or ConcurrencyOptions()):
        recover_table_properties(storage)
        number = slots.settle(storage)
        state = load_state(storage)
        is_kept = keeping.is_kept(state.config)
        if is_kept:
            remove(state, number)
        return is_kept
