"""SQL's spellings of Hudi settings, and Hudi's rules for what INSERT means, as write options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from drawstring.config.option import names
from drawstring.config.sql_write_options import BULK_INSERT, INSERT_INTO, INSERT_MODE
from drawstring.config.write_options import OVERWRITE_MODE
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.schema.meta_columns import META_COLUMNS

NAME = "hoodie.table.name"
DATABASE = "hoodie.database.name"
RECORD_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION_PATH = "hoodie.datasource.write.partitionpath.field"
ORDERING = "hoodie.datasource.write.precombine.field"
TABLE_TYPE = "hoodie.datasource.write.table.type"
OPERATION = "hoodie.datasource.write.operation"
HIVE_STYLE = "hoodie.datasource.write.hive_style_partitioning"
REPLACED_PARTITIONS = "hoodie.static.overwrite.partition.paths"
PARTITION_BY = "__partition_columns"

SQL_NAMES = {
    "primaryKey": RECORD_KEY,
    "type": TABLE_TYPE,
    "preCombineField": ORDERING,
    "orderingFields": ORDERING,
    "payloadClass": "hoodie.datasource.write.payload.class",
    "recordMergeMode": "hoodie.write.record.merge.mode",
    "recordMergeStrategyId": "hoodie.write.record.merge.strategy.id",
}
"""Short names of table properties, taken in any letter case."""
_SQL_KEYS = {name.lower(): key for name, key in SQL_NAMES.items()}
_SAME = {
    "hoodie.table.recordkey.fields": RECORD_KEY,
    "hoodie.table.partition.fields": PARTITION_PATH,
    "hoodie.table.ordering.fields": ORDERING,
    "hoodie.table.precombine.field": ORDERING,
    "hoodie.table.type": TABLE_TYPE,
}
"""Table settings beside the write options that set them."""

_TYPES = {
    "cow": "COPY_ON_WRITE",
    "mor": "MERGE_ON_READ",
    "copy_on_write": "COPY_ON_WRITE",
    "merge_on_read": "MERGE_ON_READ",
}


def hoodie_options(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate table properties: SQL's short names become write options, `hoodie.*` stay, the rest goes.

    Raises `InvalidOption` when one setting is given twice with different values.
    """
    options: dict[str, str] = {}
    for key, value in properties.items():
        target = _SQL_KEYS.get(key.lower()) or _SAME.get(key) or (key if key.startswith("hoodie.") else None)
        if target is None:
            continue
        found = _table_type(key, value) if target == TABLE_TYPE else value
        if options.setdefault(target, found) != found:
            raise InvalidOption(
                f"{key} is {value!r}, but another property sets the same thing to {options[target]!r}. "
                "Keep one of them.",
                condition="CONTRADICTING_OPTIONS",
                key=key,
                values=[value, options[target]],
            )
    return options


def table_options(
    properties: Mapping[str, str], *, table: str, database: str, partition_columns: Iterable[str]
) -> dict[str, str]:
    """Write options of a table that SQL creates: its properties, its place in the catalog, SQL's defaults."""
    options = hoodie_options(properties)
    options.setdefault(NAME, table)
    if database:
        options.setdefault(DATABASE, database)
    columns = ",".join(partition_columns)
    if columns:
        options.setdefault(PARTITION_PATH, columns)
    options.setdefault(HIVE_STYLE, "true")
    return options


def check_columns(options: Mapping[str, str], schema: pa.Schema) -> None:
    """Refuse key, ordering and partition columns that the table does not have."""
    known = {name.lower() for name in schema.names}
    for key, role in ((RECORD_KEY, "primary key"), (ORDERING, "ordering"), (PARTITION_PATH, "partition")):
        for column in names(options.get(key, "")):
            if column.partition(":")[0].partition(".")[0].lower() not in known:
                raise InvalidInput(
                    f"The {role} column {column!r} is not among the table's columns: "
                    f"{', '.join(without_meta(schema.names)) or 'none'}. Add it, or name another ({key}).",
                    condition="COLUMN_NOT_FOUND",
                    column=column,
                    role=role,
                    columns=without_meta(schema.names),
                )


def insert_operation(*layers: Mapping[str, str]) -> str:
    """The operation of INSERT INTO; layers go from the strongest to the weakest."""
    explicit = next((layer[OPERATION] for layer in layers if layer.get(OPERATION)), None)
    if explicit:
        return explicit
    if any(INSERT_INTO.raw(layer) for layer in layers):
        return INSERT_INTO.find(*layers)
    if BULK_INSERT.find(*layers):
        return "bulk_insert"
    return "upsert" if INSERT_MODE.find(*layers) == "upsert" else INSERT_INTO.default


def overwrites_table(kind: str, *layers: Mapping[str, str], partitioned: bool) -> bool:
    """Whether INSERT OVERWRITE without a PARTITION clause replaces the whole table.

    Hudi's own option decides, then Spark's mode; an unpartitioned table is always replaced as a whole.
    """
    operation = next((layer[OPERATION] for layer in layers if layer.get(OPERATION)), "")
    if operation in ("insert_overwrite", "insert_overwrite_table"):
        return operation == "insert_overwrite_table"
    if not partitioned:
        return True
    return (OVERWRITE_MODE.find(*layers) or ("DYNAMIC" if kind == "dynamic" else "STATIC")) == "STATIC"


def without_meta(columns: Iterable[str]) -> list[str]:
    """The columns that are not Hudi's own."""
    return [column for column in columns if column not in META_COLUMNS]


def _table_type(key: str, value: str) -> str:
    found = _TYPES.get(value.strip().lower())
    if found is None:
        raise InvalidOption(
            f"Table property {key} is {value!r}; expected 'cow' (copy-on-write) or 'mor' (merge-on-read).",
            condition="INVALID_OPTION_VALUE",
            key=key,
            value=value,
            allowed=["cow", "mor"],
        )
    return found
