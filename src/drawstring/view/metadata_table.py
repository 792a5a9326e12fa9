"""The metadata table: a listing of the table's files, and statistics of them, kept by writers.

It is a merge-on-read table of its own below `.hoodie/metadata`, whose records are HFile entries. It is only
used if it is proved to be in step with the data table's timeline; otherwise storage is listed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from drawstring.config.support import found_in_files
from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable, DrawstringError
from drawstring.formats.delete_blocks import decode_delete_block
from drawstring.formats.hfile import Entry, HFileReader
from drawstring.formats.log_blocks import BlockType, LogBlock, scan_log_file
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Action
from drawstring.storage.base import Storage
from drawstring.storage.nested import NestedStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.history import History
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline
from drawstring.view.file_system_view import Visibility, all_slices, visible_slices
from drawstring.view.metadata_keys import ALL_PARTITIONS, UNPARTITIONED
from drawstring.view.metadata_records import FileSizes, decode_files

FOLDER = ".hoodie/metadata"
FILES = "files"
_INITIAL = "0000"
"""How instants begin that fill a new partition of the metadata table; the data table has no such instant."""

log = logging.getLogger(__name__)

Read = Callable[[HFileReader], Iterator[Entry]]


class MetadataTable:
    """The metadata table as a reader with a pinned data timeline may see it.

    1. Records of instants that are pending in the data table do not count.
    2. Newer records merge into older ones; what was read is kept, so it is one consistent answer.
    """

    def __init__(self, storage: Storage, config: TableConfig, timeline: Timeline) -> None:
        self._storage = NestedStorage(storage, FOLDER)
        self._data_config = config
        self._data_timeline = timeline
        self._slices: dict[str, tuple[FileSlice, ...]] = {}

    @property
    def indexes(self) -> tuple[str, ...]:
        """The partitions of the metadata table that may be read, such as `files` and `column_stats`."""
        return self._data_config.metadata_partitions

    def partitions(self) -> Sequence[str]:
        """All partition paths of the data table."""
        return sorted(self._files)

    def files(self, partition: str) -> Sequence[tuple[str, int]]:
        """Name and size of each file of a partition, also of files that no reader should see."""
        return self._files.get(partition, [])

    def all_files(self) -> dict[str, list[tuple[str, int]]]:
        """Name and size of all files, by partition path."""
        return self._files

    def records(self, index: str, read: Read) -> Iterator[tuple[str, memoryview, str]]:
        """Yield key, value and schema of an index's records, older ones first within each file group.

        Args:
            index: a partition of the metadata table.
            read: which entries to take from each HFile, such as `lambda file: file.with_prefix(...)`.
        """
        for entries, schema in self.entries(index, read):
            for key, value in entries:
                yield key.decode(), value, schema

    def entries(self, index: str, read: Read) -> Iterator[tuple[list[Entry], str]]:
        """Yield the entries of each HFile of an index with their schema, older files first within each group."""
        for found in self.slices(index):
            for file, schema in self._hfiles(found):
                yield list(read(file)), schema

    def lag(self) -> str | None:
        """Why the metadata table must not be used; None if it is in step with the data table.

        Each write of the data table has an instant of the same time here, from the first one on that was
        written here; before that, the metadata table was filled from what storage listed.
        """
        own = self.timeline
        known = {instant.requested_time for instant in own.completed_writes}
        real = sorted(time for time in known if not time.startswith(_INITIAL))
        initial = (i for i in own.completed_writes if i.requested_time.startswith(_INITIAL))
        # Its initial instants may be archived. A write that was requested before others may complete long after.
        filled = max((i.completion_time or "" for i in initial), default="")
        for instant in self._data_timeline.completed_writes:
            time = instant.requested_time
            if time in known or (real and time < real[0]) or (instant.completion_time or time) <= filled:
                continue
            return f"it lacks the write {time}"
        return None if known else "it has no completed write"

    @cached_property
    def is_ahead(self) -> bool:
        """Whether it includes writes that came after the data timeline was pinned."""
        newest = max((i.requested_time for i in self._data_timeline.ascending_instants), default="")
        synchronised = (i for i in self.timeline.completed_writes if i.action is Action.DELTACOMMIT)
        return any(instant.requested_time > newest for instant in synchronised)

    def tells_of_others_than(self, timeline: Timeline) -> bool:
        """Whether a write counts here that a timeline does not know and that may have come after it was listed."""
        start = timeline.start or ""
        return any(
            instant.requested_time not in timeline.by_requested_time and instant.requested_time > start
            for instant in self.timeline.completed_writes
            if instant.action is Action.DELTACOMMIT and not instant.requested_time.startswith(_INITIAL)
        )

    @cached_property
    def _files(self) -> dict[str, list[tuple[str, int]]]:
        by_partition: dict[str, FileSizes] = {}
        for key, value, schema in self.records(FILES, HFileReader.entries):
            merge_files(by_partition.setdefault(key, {}), decode_files(value, schema))
        partitions = by_partition.pop(ALL_PARTITIONS, {})
        return {
            "" if name == UNPARTITIONED else name: list(by_partition.get(name, {}).items())  # type: ignore[arg-type]
            for name in partitions
        }

    @cached_property
    def _config(self) -> TableConfig:
        return read_table_config(self._storage)

    @cached_property
    def _reader(self) -> TimelineReader:
        return TimelineReader(self._storage, self._config)

    @cached_property
    def timeline(self) -> Timeline:
        """The metadata table's own timeline."""
        return self._reader.load()

    @cached_property
    def _visibility(self) -> Visibility:
        compactions = {
            FileGroupId(operation.partition_path, operation.file_id): instant.requested_time
            for instant in self.timeline.pending_compactions
            for operation in self._reader.compaction_plan(instant)
        }
        return Visibility(
            timeline=self.timeline,
            by_completion=self._config.layout >= 2,
            has_base_named_logs=self._config.was_upgraded_from_v6,
            compactions=compactions,
            # Logs that wait to be cleaned belong to older slices, also when their instants were archived.
            archived_completion=lambda instant: self._history.completion_times.get(instant),
        )

    @cached_property
    def _history(self) -> History:
        return History(self._storage, self._config)

    @cached_property
    def pending_in_data(self) -> frozenset[str]:
        """Instants that are pending in the data table: what they wrote here does not count."""
        return frozenset(instant.requested_time for instant in self._data_timeline.pending)

    def slices(self, index: str) -> tuple[FileSlice, ...]:
        """The newest slice of each file group of an index."""
        if index not in self._slices:
            entries = [(e.name, e.size) for e in self._storage.list(index) if not e.is_directory]
            self._slices[index] = visible_slices(index, entries, self._visibility)
        return self._slices[index]

    def _hfiles(self, found: FileSlice) -> Iterator[tuple[HFileReader, str]]:
        if found.base_file is not None:
            with self._storage.open(found.base_file.path) as file:
                reader = HFileReader(file, path=found.base_file.path)
                yield reader, reader.schema or ""
        for block in self._live_blocks(found):
            if block.type is BlockType.HFILE_DATA:
                reader = HFileReader(block.content(), path=block.path)
                yield reader, block.schema_json or reader.schema or ""
            elif block.type is not BlockType.DELETE:
                raise found_in_files("UNSUPPORTED_METADATA_BLOCK", path=block.path, found=block.type.name)

    def all_slices(self, index: str) -> tuple[FileSlice, ...]:
        """Every slice of each file group of an index, newest first in each: old ones wait to be cleaned."""
        entries = [(e.name, e.size) for e in self._storage.list(index) if not e.is_directory]
        return all_slices(index, entries, self._visibility)

    def history(
        self, found: FileSlice, read: Read = HFileReader.entries
    ) -> Iterator[tuple[list[Entry], str, list[bytes]]]:
        """Yield what was written to a file group, oldest first: entries with their schema, or keys deleted."""
        if found.base_file is not None:
            with self._storage.open(found.base_file.path) as file:
                reader = HFileReader(file, path=found.base_file.path)
                yield list(read(reader)), reader.schema or "", []
        for block in self._live_blocks(found):
            if block.type is BlockType.DELETE:
                deletes = decode_delete_block(block.content())
                yield [], "", [key.encode() for batch in deletes for key in batch.keys.to_pylist()]
            else:
                reader = HFileReader(block.content(), path=block.path)
                yield list(read(reader)), block.schema_json or reader.schema or "", []

    def base_entries(self, found: FileSlice, keys: Iterable[bytes]) -> tuple[int, list[Entry]]:
        """How many entries the base file of a slice holds, and those with some keys."""
        if found.base_file is None:
            return 0, []
        with self._storage.open(found.base_file.path) as file:
            reader = HFileReader(file, path=found.base_file.path)
            return reader.entry_count, list(reader.lookup(keys))

    def _live_blocks(self, found: FileSlice) -> Iterator[LogBlock]:
        blocks: list[LogBlock] = []
        for log_file in found.log_files:
            scan = scan_log_file(self._storage, log_file.path)
            for region in scan.corrupt_regions:
                if region.is_damage(self.timeline.by_requested_time):
                    raise CorruptTable(
                        f"{region.path} of the metadata table is damaged at byte {region.offset}: {region.reason}.",
                        condition="CORRUPT_LOG_BLOCK",
                        path=region.path,
                        offset=region.offset,
                    )
            blocks += scan.blocks
        return iter(_without_rolled_back([block for block in blocks if self._counts(block)]))

    def _counts(self, block: LogBlock) -> bool:
        if block.type is BlockType.COMMAND:
            return True
        time = block.instant_time
        return self.timeline.is_committed(time) and time not in self.pending_in_data


def open_metadata_table(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """Return the metadata table with its listing loaded, or None when there is none to be trusted.

    Every reason not to trust it is logged; callers list storage instead, which is slower and always right.
    """
    if FILES not in config.metadata_partitions:
        return None
    table = MetadataTable(storage, config, timeline)
    try:
        reason = table.lag()
        if reason is None:
            table.all_files()
    except (DrawstringError, FileNotFoundError) as error:
        reason = str(error)
    if reason is not None:
        log.warning(
            "Not using the metadata table of %s: %s. Its storage is listed instead.", storage.root, reason
        )
        return None
    return table


def merge_files(known: FileSizes, newer: FileSizes) -> None:
    """Apply a newer record of a partition's files to the files known so far."""
    if not known and None not in newer.values():
        known.update(newer)
        return
    for name, size in newer.items():
        if size is None:
            known.pop(name, None)
        else:
            # Logs of version 6 grow, and records of their growth may come out of order.
            known[name] = max(size, known.get(name) or 0)


def _without_rolled_back(blocks: Iterable[LogBlock]) -> list[LogBlock]:
    live: list[LogBlock] = []
    for block in blocks:
        if block.type is BlockType.COMMAND:
            live = [kept for kept in live if kept.instant_time != block.target_instant_time]
        else:
            live.append(block)
    return live
