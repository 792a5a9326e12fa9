"""What a writer asks of a table's state: its schema, how its keys look, how large its records are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from drawstring.config.read_options import ReadOptions
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileSlice
from drawstring.planning.table_state import TableState, pin
from drawstring.schema.internal_schema import parse_internal_schema
from drawstring.schema.meta_columns import RECORD_KEY, strip_meta_columns
from drawstring.schema.table_schema import (
    OPERATIONS_WITHOUT_SCHEMA,
    table_schema_from_avro,
    table_schema_from_file,
)
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import read_table_config

_SIZED_COMMITS = 32
"""Newest commits that are asked for the size of a record: on a long timeline of small ones, all would be read."""


def load_state(storage: Storage) -> TableState:
    """Look at a table as it is now; raises `TableNotFound` when there is none."""
    return pin(storage, read_table_config(storage), ReadOptions())


def visible_slices(state: TableState, partitions: Iterable[str]) -> tuple[FileSlice, ...]:
    """Return the slices that readers see now in some partitions."""
    view = state.view(None)
    return tuple(found for path in partitions for found in view.slices(path))


def schema_commit(state: TableState) -> CommitMetadata | None:
    """Return the newest commit that says what the table's schema is."""
    for metadata in _newest_first(state):
        if metadata.schema and metadata.operation not in OPERATIONS_WITHOUT_SCHEMA:
            return metadata
    return None


def table_schema(state: TableState) -> pa.Schema | None:
    """Return the table's schema without meta columns; None for a table that never had one."""
    commit = schema_commit(state)
    if commit is not None and commit.internal_schema:
        return strip_meta_columns(parse_internal_schema(commit.internal_schema).arrow_schema)
    if commit is not None:
        return strip_meta_columns(table_schema_from_avro(commit.schema))
    sample = _any_base_file(state)
    if sample is not None:
        with state.storage.open(sample) as source:
            return strip_meta_columns(table_schema_from_file(pq.read_schema(source)))
    if state.config.create_schema:
        return strip_meta_columns(table_schema_from_avro(state.config.create_schema))
    return None


def key_sample(state: TableState) -> str | None:
    """Return a record key of the table, for telling how its writer made keys."""
    sample = _any_base_file(state)
    if sample is None:
        return None
    with state.storage.open(sample) as source:
        batch = next(pq.ParquetFile(source).iter_batches(batch_size=1, columns=[RECORD_KEY]), None)
    return batch.column(0)[0].as_py() if batch is not None and batch.num_rows else None


def average_record_size(state: TableState, *, at_least: int) -> float | None:
    """Return bytes per record in the newest commit that wrote this many bytes or more.

    Small commits tell little: footers with bloom filters can outweigh their records by far.
    """
    for metadata, _ in zip(_newest_first(state), range(_SIZED_COMMITS), strict=False):
        base_files = [stat for stat in metadata.stats if not stat.log_files]
        records = sum(stat.num_writes for stat in base_files)
        size = sum(stat.file_size for stat in base_files)
        if records and size >= at_least:
            return size / records
    return None


def _newest_first(state: TableState) -> Iterator[CommitMetadata]:
    return (metadata for _, metadata in state.writes_descending(None))


def _any_base_file(state: TableState) -> str | None:
    """Return a visible base file: of the newest commits where they name one, else of any partition."""
    for metadata, _ in zip(_newest_first(state), range(_SIZED_COMMITS), strict=False):
        for partition in dict.fromkeys(stat.partition_path for stat in metadata.stats):
            if (found := _base_file_in(state, partition)) is not None:
                return found
    return next(filter(None, (_base_file_in(state, path) for path in state.view(None).partitions())), None)


def _base_file_in(state: TableState, partition: str) -> str | None:
    bases = (found.base_file for found in visible_slices(state, [partition]))
    return next((base.path for base in bases if base is not None), None)
