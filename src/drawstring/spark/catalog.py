"""What the catalog asks of the planner: make a table, list its partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from drawstring.config.option import names
from drawstring.config.read_options import SNAPSHOT
from drawstring.config.table_config import TableConfig
from drawstring.config.unknown_keys import warn_of_misspelt
from drawstring.config.write_options import WriteOptions
from drawstring.errors import IncompatibleSchema, InvalidInput, InvalidOption, TableNotFound
from drawstring.model.key_names import NULL_PARTITION
from drawstring.planning.snapshot import Snapshot
from drawstring.schema.meta_columns import strip_meta_columns
from drawstring.spark import wire
from drawstring.spark.types import arrow_schema
from drawstring.spark.write import sql_options
from drawstring.storage import open_storage
from drawstring.table import Table, open_table
from drawstring.view.partitions import partition_texts
from drawstring.write.create import create_table as create_on_storage


@dataclass(frozen=True)
class CreateTable:
    """Make the table of a CREATE TABLE statement, or take over the one that lies at its path.

    `schema` is Spark's, as JSON, partition columns last; it may be empty where a table exists.
    """

    path: str
    schema: str
    table: str
    database: str
    partition_columns: list[str]
    properties: dict[str, str]
    session: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableCreated:
    """Whether the table was made, or was there before."""

    created: bool


@dataclass(frozen=True)
class ListPartitions:
    """The partitions of a table that hold rows."""

    path: str
    snapshot: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PartitionsListed:
    """For each partition the texts of its columns; None for the partition of nulls."""

    partitions: list[dict[str, str | None]]


def create_table(message: CreateTable) -> TableCreated:
    """Make the table unless it exists; an existing one must fit what the statement says about it."""
    options = _table_options(message)
    schema = strip_meta_columns(arrow_schema(message.schema))
    try:
        existing = open_table(message.path)
    except TableNotFound:
        existing = None
    if existing is not None:
        _check_settings(existing, sql_options.hoodie_options(message.properties))
        _check_schema(existing, schema)
        return TableCreated(created=False)
    _require_columns(message, schema)
    warn_of_misspelt(message.properties, sql_options.SQL_NAMES)
    sql_options.check_columns(options, schema)
    settings = WriteOptions.of(options, session=message.session)
    storage = open_storage(message.path)
    create_on_storage(storage, settings.table, schema=schema, concurrency=settings.concurrency)
    return TableCreated(created=True)


def list_partitions(message: ListPartitions) -> PartitionsListed:
    """List the partitions with rows, in the order of their paths."""
    table = open_table(message.path, options=message.options)
    snapshot = table.snapshot(query_type=SNAPSHOT)
    found = [texts for _, texts in live_partitions(table.config, snapshot)]
    return PartitionsListed([{key: _value(text) for key, text in texts.items()} for texts in found])


def live_partitions(config: TableConfig, snapshot: Snapshot) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Partition paths that a reader finds files in, with the texts of their columns."""
    for path in sorted(snapshot.partitions()):
        if any(True for _ in snapshot.slices(path)):
            yield path, partition_texts(config, path) or {}


def _table_options(message: CreateTable) -> dict[str, str]:
    return sql_options.table_options(
        message.properties,
        table=message.table,
        database=message.database,
        partition_columns=message.partition_columns,
    )


def _value(text: str) -> str | None:
    return None if text == NULL_PARTITION else text


def _require_columns(message: CreateTable, schema: pa.Schema) -> None:
    if not schema.names:
        raise InvalidInput(
            f"CREATE TABLE {message.table} names no columns, and there is no Hudi table at {message.path} to take "
            "them from. List the columns, or give the LOCATION of an existing table.",
            condition="NO_COLUMNS",
            table=message.table,
            path=message.path,
        )


def _check_settings(table: Table, options: Mapping[str, str]) -> None:
    config = table.config
    facts: dict[str, tuple[str, ...]] = {
        sql_options.RECORD_KEY: config.record_key_fields,
        sql_options.ORDERING: config.ordering_fields,
        sql_options.TABLE_TYPE: (config.table_type,),
    }
    for key, found in facts.items():
        asked = names(options.get(key, ""))
        if asked and asked != found:
            raise InvalidOption(
                f"The table at {table.path} has {', '.join(found) or 'nothing'} for {key}, and the statement says "
                f"{', '.join(asked)}. Leave the property out to take over the table as it is, or use another "
                "location.",
                condition="TABLE_SETTINGS_DIFFER",
                key=key,
                found=list(found),
                expected=list(asked),
            )


def _check_schema(table: Table, asked: pa.Schema) -> None:
    found = {field.name.lower(): field.type for field in table.schema}
    for column in asked:
        if found.get(column.name.lower()) != _stored(column.type):
            raise IncompatibleSchema(
                f"The statement declares column {column.name} as {column.type}; the table at {table.path} has "
                f"{found.get(column.name.lower(), 'no such column')}. Leave the columns out to take over the table's.",
                condition="TABLE_SCHEMA_DIFFERS",
                column=column.name,
                path=table.path,
            )


def _stored(kind: pa.DataType) -> pa.DataType:
    """Hudi stores small integers as int."""
    return pa.int32() if kind in (pa.int8(), pa.int16()) else kind


def _answer(function: Callable[[wire.M], object], kind: type[wire.M]) -> Callable[[str], str]:
    return lambda payload: wire.to_json(function(wire.from_json(kind, payload)))


CATALOG_HANDLERS: dict[str, Callable[[str], str]] = {
    "create_table": _answer(create_table, CreateTable),
    "list_partitions": _answer(list_partitions, ListPartitions),
}
"""The catalog's requests, by kind."""
