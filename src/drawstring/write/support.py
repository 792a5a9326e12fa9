"""What drawstring does not write, as data: refused by name before anything is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from drawstring.config.support import Refusal, refuse_first
from drawstring.config.table_config import SLASH_DATES, TableConfig
from drawstring.config.table_options import KEY_GENERATORS
from drawstring.errors import UnsupportedTable
from drawstring.model.file_group import FileSlice
from drawstring.planning.snapshot import refuse_skeleton
from drawstring.planning.table_state import TableState
from drawstring.storage import ArrowStorage, Storage
from drawstring.storage.arrow_fs import no_atomic_create

_BUCKET_FILE_ID = re.compile(r"^0{2}\d{6}-")
"""File groups of a bucket index begin with the number of their bucket."""


def version_not_written(config: TableConfig) -> str | None:
    """The version of a table that is not one of those that are written."""
    return None if config.version in (8, 9) else str(config.version)


def _no_meta_fields(config: TableConfig) -> str | None:
    return None if config.populate_meta_fields else "hoodie.populate.meta.fields=false"


def _dropped_columns(config: TableConfig) -> str | None:
    return ",".join(config.partition_fields) if config.drop_partition_columns else None


def _slash_separated_dates(config: TableConfig) -> str | None:
    return SLASH_DATES.key + "=true" if config.slash_separated_dates else None


def _key_generator(config: TableConfig) -> str | None:
    generator = config.key_generator
    spark_sql = generator in ("SPARK_SQL", "AUTO_RECORD")
    return None if generator in KEY_GENERATORS or spark_sql else generator


def _base_format(config: TableConfig) -> str | None:
    return None if config.base_file_format == "PARQUET" else config.base_file_format


def _merger(config: TableConfig) -> str | None:
    return config.merge_rule.unknown


REFUSALS = (
    Refusal(
        "WRITE_TABLE_VERSION",
        version_not_written,
        "its table version is {found}; drawstring writes versions 8 and 9. Upgrade the table by one write of Apache "
        "Hudi 1.2, which does it where hoodie.write.auto.upgrade is not false",
    ),
    Refusal(
        "WRITE_WITHOUT_META_FIELDS",
        _no_meta_fields,
        "its records carry no keys ({found}). Use Apache Hudi for it",
    ),
    Refusal(
        "WRITE_DROPPED_PARTITION_COLUMNS",
        _dropped_columns,
        "its files do not hold the partition columns ({found}). Use Apache Hudi for it",
    ),
    Refusal(
        "WRITE_SLASH_SEPARATED_DATES",
        _slash_separated_dates,
        "its paths are dates as yyyy/MM/dd ({found}), which drawstring does not make. Use Apache Hudi for it",
    ),
    Refusal(
        "WRITE_KEY_GENERATOR",
        _key_generator,
        "its keys are made by {found}; drawstring makes them by " + ", ".join(KEY_GENERATORS) + ". Use "
        "Apache Hudi for it",
    ),
    Refusal(
        "WRITE_BASE_FILE_FORMAT",
        _base_format,
        "its base files are {found}; drawstring writes PARQUET. Use Apache Hudi for it",
    ),
    Refusal(
        "WRITE_MERGER",
        _merger,
        "its records are merged by {found}, which drawstring does not write. Use Apache Hudi for it",
    ),
)


def require_atomic_create(storage: Storage) -> None:
    """Refuse stores where no lock would be safe, before anything is read or changed."""
    if isinstance(storage, ArrowStorage):
        raise no_atomic_create(storage.root)


def check_writable(state: TableState) -> None:
    """Refuse, by name, a table that drawstring cannot write correctly."""
    refuse_first(REFUSALS, state.config, operation="write", path=state.storage.root, verb="write to")


def refuse_buckets(slices: Iterable[FileSlice], path: str) -> None:
    """Refuse to add rows to partitions whose file groups are the buckets of an index."""
    groups = [found.group.file_id for found in slices]
    if groups and all(_BUCKET_FILE_ID.match(file_id) for file_id in groups):
        raise UnsupportedTable(
            f"Cannot write to {path}: its file groups are buckets ({groups[0]}), which a write with another index "
            "would break. Set hoodie.index.type=BUCKET, with hoodie.bucket.index.num.buckets and "
            "hoodie.bucket.index.hash.field as its other writers do. Nothing was written.",
            condition="WRITE_BUCKET_INDEX",
            operation="write",
            path=path,
            found=groups[0],
        )


def refuse_skeletons(slices: Iterable[FileSlice]) -> None:
    """Refuse to write to groups whose rows lie outside the table: a rewrite would lose them."""
    for found in slices:
        refuse_skeleton(found)
