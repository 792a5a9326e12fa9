"""Index definitions (`index.json`): which columns have statistics, and what the record index is like."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from drawstring.config.table_config import INDEX_DEFINITIONS, TableConfig
from drawstring.errors import CorruptTable
from drawstring.schema.meta_columns import COMMIT_TIME, PARTITION_PATH, RECORD_KEY, prepend_meta_columns
from drawstring.storage.base import Storage
from drawstring.write.metadata_table.column_ranges import can_have_range
from drawstring.write.metadata_table.layout import COLUMN_STATS, RECORD_INDEX

MAX_COLUMNS = 32
"""`hoodie.metadata.index.column.stats.max.columns.to.index` of Hudi 1.2, where it does not say otherwise."""
_UNTYPED = "V1"
_ALWAYS = (COMMIT_TIME, PARTITION_PATH, RECORD_KEY)


def default_columns(schema: pa.Schema, most: int = MAX_COLUMNS) -> tuple[str, ...]:
    """Return the columns that a new index has statistics of: three of Hudi's own and the first of the table's."""
    own = [
        field.name for field in schema if not field.name.startswith("_hoodie_") and can_have_range(field.type)
    ]
    return (*_ALWAYS, *own[:most])


def indexed_columns(storage: Storage, config: TableConfig, schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the columns that the statistics must cover, with their types; `schema` is the table's."""
    return typed_columns(defined_columns(storage, config) or default_columns(schema), schema)


def typed_columns(names: Iterable[str], schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return those of the columns that the table has and that can have statistics, with their types."""
    full = prepend_meta_columns(schema)
    found = ((name, _type_of(full, name)) for name in names)
    return {name: arrow for name, arrow in found if arrow is not None and can_have_range(arrow)}


def chosen_columns(given: Sequence[str], schema: pa.Schema | None, most: int) -> tuple[str, ...]:
    """Return the columns of a new index: those that were asked for, else the first of the table's."""
    if given:
        return tuple(dict.fromkeys((*_ALWAYS, *given)))
    return default_columns(schema, most) if schema is not None else ()


def extended_columns(
    defined: Sequence[str], before: pa.Schema | None, after: pa.Schema
) -> tuple[str, ...] | None:
    """Return the columns of an index once a write has changed the schema; None when they stay.

    Hudi takes new columns in by itself, and then holds files without statistics of them for full of nulls. So files
    must have those as soon as the table has such columns. Where somebody chose the columns, they stay chosen.
    """
    wanted = default_columns(after, max(MAX_COLUMNS, len(defined) - len(_ALWAYS)))
    chosen = defined and (before is None or not set(default_columns(before)) <= set(defined))
    missing = [name for name in wanted if name not in defined]
    return (*defined, *missing) if missing and not chosen else None


def definitions_without(
    storage: Storage, config: TableConfig, partitions: Collection[str]
) -> tuple[str, bytes] | None:
    """Return path and content of the definitions without some partitions; None when they name none of them."""
    found = _definitions(storage, config)
    kept = {name: definition for name, definition in found.items() if name not in partitions}
    if kept == found:
        return None
    content = json.dumps({"indexDefinitions": kept}, indent=2)
    return INDEX_DEFINITIONS.find(config.properties), content.encode()


def is_partitioned_record_index(storage: Storage, config: TableConfig) -> bool:
    """Whether keys are indexed by data partition (Hudi 1.1 and later), which drawstring does not keep."""
    definition = _definitions(storage, config).get(RECORD_INDEX) or {}
    return str((definition.get("indexOptions") or {}).get("isPartitioned")).lower() == "true"


def defined_columns(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """Return the columns that the definitions name, whether the table has them or not; none without definitions."""
    definition = _definitions(storage, config).get(COLUMN_STATS)
    return tuple(definition.get("sourceFields") or ()) if definition else ()


def statistics_version(storage: Storage, config: TableConfig) -> str:
    """Return the version of the statistics' records: tables that were of version 8 once keep V1.

    Hudi 1.2 writes by the definition, and no record of the other version can be merged with those that it adds.
    """
    definition = _definitions(storage, config).get(COLUMN_STATS) or {}
    return str(definition.get("version") or (_UNTYPED if config.version < 9 else "V2"))


def has_typed_statistics(storage: Storage, config: TableConfig) -> bool:
    """Whether records of statistics tell the type of their values."""
    return statistics_version(storage, config) != _UNTYPED


def _type_of(schema: pa.Schema, dotted: str) -> pa.DataType | None:
    fields: Any = schema
    for part in dotted.split("."):
        index = fields.get_field_index(part)
        if index < 0:
            return None
        fields = fields.field(index).type
        if not pa.types.is_struct(fields) and not dotted.endswith(part):
            return None
    return fields


def definitions_with(
    storage: Storage, config: TableConfig, partitions: Collection[str], columns: Collection[str]
) -> tuple[str, bytes] | None:
    """Return path and content of the definitions with new partitions; None when none of them is defined there."""
    found = dict(_definitions(storage, config))
    if RECORD_INDEX in partitions:
        found[RECORD_INDEX] = _definition(RECORD_INDEX, "", (), {"isPartitioned": "false"}, "V1")
    if COLUMN_STATS in partitions:
        version = statistics_version(storage, config)
        found[COLUMN_STATS] = _definition(COLUMN_STATS, COLUMN_STATS, columns, {}, version)
    if not {RECORD_INDEX, COLUMN_STATS} & set(partitions):
        return None
    content = json.dumps({"indexDefinitions": found}, indent=2)
    return INDEX_DEFINITIONS.find(config.properties), content.encode()


def _definition(
    name: str, function: str, columns: Collection[str], options: Mapping[str, str], version: str
) -> dict[str, Any]:
    return {
        "indexName": name,
        "indexType": name,
        "indexFunction": function,
        "sourceFields": list(columns),
        "indexOptions": dict(options),
        "version": version,
    }


def _definitions(storage: Storage, config: TableConfig) -> dict[str, Any]:
    path = INDEX_DEFINITIONS.find(config.properties)
    try:
        content = storage.read(path)
    except FileNotFoundError:
        return {}
    try:
        found = json.loads(content)["indexDefinitions"]
        if not all(isinstance(definition, dict) for definition in found.values()):
            raise ValueError("an entry is no definition")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTable(
            f"Cannot read the index definitions {path} of {storage.root}: {error!r}. Restore the file, or drop the "
            "metadata table and let it be made again.",
            condition="INVALID_INDEX_DEFINITIONS",
            path=path,
        ) from error
    return dict(found)
