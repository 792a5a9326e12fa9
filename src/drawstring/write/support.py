"""Which tables drawstring writes, as data: what it would spoil is refused by name before anything is touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drawstring.config.write_options import KEY_GENERATORS
from drawstring.errors import UnsupportedTable
from drawstring.model.file_group import FileSlice
from drawstring.planning.table_state import TableState
from drawstring.storage import ArrowStorage, Storage
from drawstring.storage.arrow_fs import no_atomic_create
from drawstring.write.table_facts import schema_commit

_BUCKET_FILE_ID = re.compile(r"^0{2}\d{6}-")
"""File groups of a bucket index begin with the number of their bucket."""
_METADATA_INFLIGHT = "hoodie.table.metadata.partitions.inflight"


@dataclass(frozen=True)
class WriteRefusal:
    """One feature that is refused: `finds` returns what it found in the table, or None."""

    condition: str
    finds: Callable[[TableState], str | None]
    message: str


def _version(state: TableState) -> str | None:
    return None if state.config.version == 9 else str(state.config.version)


def _merge_on_read(state: TableState) -> str | None:
    return state.config.table_type if state.config.is_merge_on_read else None


def _metadata_table(state: TableState) -> str | None:
    building = state.config.properties.get(_METADATA_INFLIGHT, "").strip()
    return ",".join(state.config.metadata_partitions) or building or None


def _no_meta_fields(state: TableState) -> str | None:
    return None if state.config.populate_meta_fields else "hoodie.populate.meta.fields=false"


def _dropped_columns(state: TableState) -> str | None:
    return ",".join(state.config.partition_fields) if state.config.drop_partition_columns else None


def _key_generator(state: TableState) -> str | None:
    generator = state.config.key_generator
    spark_sql = generator in ("SPARK_SQL", "AUTO_RECORD")
    return None if generator in KEY_GENERATORS or spark_sql else generator


def _base_format(state: TableState) -> str | None:
    return None if state.config.base_file_format == "PARQUET" else state.config.base_file_format


def _change_capture(state: TableState) -> str | None:
    enabled = state.config.properties.get("hoodie.table.cdc.enabled", "false").lower() == "true"
    return "hoodie.table.cdc.enabled=true" if enabled else None


def _merger(state: TableState) -> str | None:
    rule = state.config.merge_rule
    return rule.unknown or rule.spec.partial_update_mode or rule.spec.delete_marker


def _schema_on_read(state: TableState) -> str | None:
    commit = schema_commit(state)
    return "columns with ids" if commit is not None and commit.internal_schema else None


REFUSALS = (
    WriteRefusal(
        "WRITE_TABLE_VERSION",
        _version,
        "its table version is {found}; drawstring writes version 9. Upgrade the table with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_MERGE_ON_READ",
        _merge_on_read,
        "it is a merge-on-read table; drawstring writes copy-on-write tables. Write it with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_WITH_METADATA_TABLE",
        _metadata_table,
        "it has a metadata table ({found}), which this write would leave stale. Write it with Apache Hudi, or "
        "let Hudi remove the metadata table by one write with hoodie.metadata.enable=false",
    ),
    WriteRefusal(
        "WRITE_WITHOUT_META_FIELDS",
        _no_meta_fields,
        "its records carry no keys ({found}). Write it with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_DROPPED_PARTITION_COLUMNS",
        _dropped_columns,
        "its files do not hold the partition columns ({found}). Write it with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_KEY_GENERATOR",
        _key_generator,
        "its keys are made by {found}; drawstring makes them by " + ", ".join(KEY_GENERATORS) + ". Write it "
        "with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_BASE_FILE_FORMAT", _base_format, "its base files are {found}; drawstring writes PARQUET"
    ),
    WriteRefusal(
        "WRITE_CHANGE_CAPTURE",
        _change_capture,
        "it captures changes ({found}), which drawstring does not write. Write it with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_MERGER",
        _merger,
        "its records are merged by {found}, which drawstring does not write. Write it with Apache Hudi",
    ),
    WriteRefusal(
        "WRITE_SCHEMA_ON_READ",
        _schema_on_read,
        "its schema was altered as {found}. Write it with Apache Hudi",
    ),
)


def require_atomic_create(storage: Storage) -> None:
    """Refuse stores where no lock would be safe, before anything is looked at or touched."""
    if isinstance(storage, ArrowStorage):
        raise no_atomic_create(storage.root)


def check_writable(state: TableState) -> None:
    """Refuse, by name, a table that a write of drawstring would spoil."""
    for refusal in REFUSALS:
        found = refusal.finds(state)
        if found is not None:
            raise UnsupportedTable(
                f"Cannot write to {state.storage.root}: {refusal.message.format(found=found)}.",
                condition=refusal.condition,
                operation="write",
                path=state.storage.root,
                found=found,
            )


def refuse_buckets(slices: Iterable[FileSlice], path: str) -> None:
    """Refuse to add rows to partitions whose file groups are the buckets of an index."""
    groups = [found.group.file_id for found in slices]
    if groups and all(_BUCKET_FILE_ID.match(file_id) for file_id in groups):
        raise UnsupportedTable(
            f"Cannot write to {path}: its file groups are buckets ({groups[0]}), which drawstring does not write. "
            "Write it with Apache Hudi.",
            condition="WRITE_BUCKET_INDEX",
            operation="write",
            path=path,
            found=groups[0],
        )
