"""What a writer must know of a table before it begins: settings, timeline, schema, file slices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.config.table_config import TableConfig
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Action, Instant
from drawstring.schema.meta_columns import RECORD_KEY, strip_meta_columns
from drawstring.schema.table_schema import (
    OPERATIONS_WITHOUT_SCHEMA,
    table_schema_from_avro,
    table_schema_from_file,
)
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline
from drawstring.view.file_system_view import FileSystemView, Visibility
from drawstring.view.listing import StorageListing


@dataclass(frozen=True)
class TableState:
    """A table at one moment; everything a write decides, it decides by this."""

    storage: Storage
    config: TableConfig
    timeline: Timeline
    _reader: TimelineReader = field(repr=False, compare=False)

    @classmethod
    def load(cls, storage: Storage) -> TableState:
        """Read settings and timeline as they are now; raises `TableNotFound` when there is no table."""
        config = read_table_config(storage)
        reader = TimelineReader(storage, config)
        return cls(storage, config, reader.load(), reader)

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What a completed write says."""
        return self._reader.commit_metadata(instant)

    @cached_property
    def view(self) -> FileSystemView:
        """The slices that readers see now, by listing storage."""
        visibility = Visibility(
            self.timeline,
            by_completion=True,
            replaced=self._replaced,
            committed_name=self._committed_name,
        )
        return FileSystemView(StorageListing(self.storage, self.config), visibility)

    def slices(self, partitions: Iterable[str]) -> tuple[FileSlice, ...]:
        """The visible slices of some partitions."""
        return tuple(found for path in partitions for found in self.view.slices(path))

    @cached_property
    def _replaced(self) -> dict[FileGroupId, str]:
        return {
            FileGroupId(path, file_id): instant.requested_time
            for instant in self.timeline.completed_writes
            if instant.action is Action.REPLACECOMMIT
            for path, ids in self.commit_metadata(instant).replaced.items()
            for file_id in ids
        }

    def _committed_name(self, requested_time: str, file_id: str) -> str | None:
        instant = self.timeline.by_requested_time.get(requested_time)
        stats = self.commit_metadata(instant).stats if instant else ()
        return next((stat.name for stat in stats if stat.file_id == file_id), None)

    @cached_property
    def schema_commit(self) -> CommitMetadata | None:
        """The newest commit that says what the table's schema is."""
        for instant in reversed(self.timeline.completed_writes):
            metadata = self.commit_metadata(instant)
            if metadata.schema and metadata.operation not in OPERATIONS_WITHOUT_SCHEMA:
                return metadata
        return None

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The table's schema without meta columns; None for a table that never had one."""
        if self.schema_commit is not None:
            return strip_meta_columns(table_schema_from_avro(self.schema_commit.schema))
        sample = self._any_base_file
        if sample is not None:
            return strip_meta_columns(table_schema_from_file(self._file_schema(sample)))
        if self.config.create_schema:
            return strip_meta_columns(table_schema_from_avro(self.config.create_schema))
        return None

    @cached_property
    def key_sample(self) -> str | None:
        """A record key of the table, for telling how its writer made keys."""
        sample = self._any_base_file
        if sample is None:
            return None
        with self.storage.open(sample) as source:
            file = pq.ParquetFile(source)
            batch = next(file.iter_batches(batch_size=1, columns=[RECORD_KEY]), None)
        return batch.column(0)[0].as_py() if batch is not None and batch.num_rows else None

    @property
    def _any_base_file(self) -> str | None:
        for path in self.view.partitions():
            for found in self.view.slices(path):
                if found.base_file is not None:
                    return found.base_file.path
        return None

    def _file_schema(self, path: str) -> pa.Schema:
        with self.storage.open(path) as source:
            return pq.read_schema(source)

    def average_record_size(self, *, at_least: int) -> float | None:
        """Bytes per record in the newest commit that wrote this many bytes or more.

        Small commits tell little: footers with bloom filters can outweigh their records by far.
        """
        for instant in reversed(self.timeline.completed_writes):
            stats = self.commit_metadata(instant).stats
            records, size = sum(s.num_writes for s in stats), sum(s.file_size for s in stats)
            if records and size >= at_least:
                return size / records
        return None
