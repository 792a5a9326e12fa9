"""The options of writes, typed, under Hudi's keys and with Hudi's defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from drawstring.config import (
    bloom_options,
    concurrency_options,
    file_options,
    index_options,
    log_options,
    metadata_options,
    read_options,
    service_options,
    sink_options,
    sql_write_options,
    stream_options,
    table_options,
)
from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.file_options import FileOptions
from drawstring.config.hudi_keys import HudiKeys
from drawstring.config.index_options import IndexOptions
from drawstring.config.metadata_options import MetadataTableOptions
from drawstring.config.option import (
    Option,
    boolean,
    lowered,
    names,
    not_negative,
    one_of,
)
from drawstring.config.service_options import ServiceOptions
from drawstring.config.table_options import TableOptions
from drawstring.config.unknown_keys import warn_of_unknown
from drawstring.model.sink_batch import SinkBatch

BULK_INSERT = "bulk_insert"
INSERT = "insert"
UPSERT = "upsert"
DELETE = "delete"
INSERT_OVERWRITE = "insert_overwrite"
INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
DELETE_PARTITION = "delete_partition"
OPERATIONS = (
    UPSERT,
    INSERT,
    BULK_INSERT,
    DELETE,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    DELETE_PARTITION,
)
SORT_MODES = (
    "NONE",
    "GLOBAL_SORT",
    "PARTITION_SORT",
    "PARTITION_PATH_REPARTITION",
    "PARTITION_PATH_REPARTITION_AND_SORT",
)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("a text that is not blank")
    return value.strip()


def _columns_of_schema(value: str) -> tuple[str, ...]:
    """Take an Avro record, and return the names of its fields."""
    try:
        return tuple(field["name"] for field in json.loads(value)["fields"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("the JSON of an Avro record") from None


def _flag(key: str, default: bool, doc: str, aliases: tuple[str, ...] = ()) -> Option[bool]:
    return Option(key, boolean, default, doc, aliases=aliases, allowed=("true", "false"))


OPERATION: Option[str | None] = Option(
    "hoodie.datasource.write.operation",
    one_of(*OPERATIONS),
    None,
    "What to do with the rows. Without it rows are upserted, or inserted when no record key is configured.",
    allowed=OPERATIONS,
)
PARTIAL_SCHEMA: Option[tuple[str, ...]] = Option(
    "hoodie.write.partial.update.schema",
    _columns_of_schema,
    (),
    "Avro schema of the columns that an upsert to a merge-on-read table assigns; all others keep their values. The "
    "keys of the rows must be in the table.",
)
COMBINE_BEFORE_INSERT = _flag(
    "hoodie.combine.before.insert", False, "Keep one of several incoming rows of one key when inserting."
)
COMBINE_BEFORE_UPSERT = _flag(
    "hoodie.combine.before.upsert", True, "Keep one of several incoming rows of one key when upserting."
)
SORT_MODE = Option(
    "hoodie.bulkinsert.sort.mode",
    one_of(*SORT_MODES),
    "NONE",
    "How bulk_insert arranges rows before writing.",
    allowed=SORT_MODES,
)
BULK_INSERT_PARALLELISM = Option(
    "hoodie.bulkinsert.shuffle.parallelism",
    not_negative,
    0,
    "Tasks of a bulk_insert that arranges its rows; 0 leaves it to Spark.",
)
NULL_FOR_MISSING = _flag(
    "hoodie.write.set.null.for.missing.columns",
    False,
    "Columns that the rows lack become null, instead of the write being refused.",
)
STATIC_PARTITIONS: Option[tuple[str, ...]] = Option(
    "hoodie.static.overwrite.partition.paths",
    names,
    (),
    "Partition paths that an insert_overwrite replaces even when no row falls into them.",
)
PARTITIONS_TO_DELETE: Option[tuple[str, ...] | None] = Option(
    "hoodie.datasource.write.partitions.to.delete",
    names,
    None,
    "Partition paths that delete_partition drops; * matches any text. Without it, the partitions of the rows.",
)
COMMIT_METADATA_PREFIX = Option(
    "hoodie.datasource.write.commitmeta.key.prefix",
    _not_blank,
    "_",
    "Options whose keys begin with this text are recorded in the commit, by keys in lower case.",
)
OVERWRITE_MODE: Option[str | None] = Option(
    "hoodie.datasource.overwrite.mode",
    one_of("STATIC", "DYNAMIC"),
    None,
    "Whether an overwrite replaces the whole table or the partitions that the rows fall into.",
    allowed=("STATIC", "DYNAMIC"),
)
PROGRESS = _flag(
    "hoodie.write.progress.enable",
    True,
    "Show a progress bar while a write or service runs for longer than a second, where standard error is a terminal. "
    "drawstring's own.",
)
ALL: tuple[Option[Any], ...] = (
    *table_options.ALL,
    OPERATION,
    PARTIAL_SCHEMA,
    COMBINE_BEFORE_INSERT,
    COMBINE_BEFORE_UPSERT,
    *file_options.ALL,
    SORT_MODE,
    BULK_INSERT_PARALLELISM,
    NULL_FOR_MISSING,
    STATIC_PARTITIONS,
    PARTITIONS_TO_DELETE,
    COMMIT_METADATA_PREFIX,
    OVERWRITE_MODE,
    PROGRESS,
    *concurrency_options.ALL,
    *bloom_options.ALL,
    *index_options.ALL,
    *log_options.ALL,
    *service_options.ALL,
    *metadata_options.ALL,
    *sql_write_options.ALL,
    *sink_options.ALL,
)
"""Every write option that is honoured."""


@lru_cache(maxsize=1)
def hudi_keys() -> HudiKeys:
    """Every key of Hudi, with what drawstring does with it in a write."""
    return HudiKeys(honoured=ALL, of_reads=(*read_options.ALL, *stream_options.ALL))


@dataclass(frozen=True)
class WriteOptions:
    """The options of one write.

    Example:
        >>> WriteOptions.of({"hoodie.datasource.write.operation": "INSERT"}).operation
        'insert'
    """

    table: TableOptions
    files: FileOptions
    index: IndexOptions = field(default_factory=IndexOptions)
    operation: str | None = None
    combine_before_insert: bool = False
    combine_before_upsert: bool = True
    sort_mode: str = "NONE"
    bulk_insert_parallelism: int = 0
    null_for_missing: bool = False
    assigned_columns: tuple[str, ...] = ()
    static_partitions: tuple[str, ...] = ()
    partitions_to_delete: tuple[str, ...] | None = None
    overwrite_mode: str | None = None
    commit_metadata: Mapping[str, str] = field(default_factory=dict)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    metadata_table: MetadataTableOptions = field(default_factory=MetadataTableOptions)
    sink_batch: SinkBatch | None = None
    """The batch of a streaming write that the rows are; written only if no commit tells of it."""
    services: ServiceOptions = field(default_factory=ServiceOptions)
    shows_progress: bool = True

    @classmethod
    def of(
        cls, call: Mapping[str, Any] | None = None, *, session: Mapping[str, Any] | None = None
    ) -> WriteOptions:
        """Resolve the options: call, then session, then default.

        Raises `InvalidOption` for values that are malformed or not supported.
        """
        layers = (lowered(call), lowered(session))
        known = hudi_keys()
        unknown = known.check(*layers)
        recorded = _commit_metadata(layers, unknown)
        warn_of_unknown((name for name in unknown if name not in recorded), known.names)
        index = IndexOptions.of(*layers)
        return cls(
            table=TableOptions.of(*layers),
            files=FileOptions.of(*layers, index_type=index.kind),
            index=index,
            operation=OPERATION.find(*layers),
            combine_before_insert=COMBINE_BEFORE_INSERT.find(*layers),
            combine_before_upsert=COMBINE_BEFORE_UPSERT.find(*layers),
            sort_mode=SORT_MODE.find(*layers),
            bulk_insert_parallelism=BULK_INSERT_PARALLELISM.find(*layers),
            null_for_missing=NULL_FOR_MISSING.find(*layers),
            assigned_columns=PARTIAL_SCHEMA.find(*layers),
            static_partitions=STATIC_PARTITIONS.find(*layers),
            partitions_to_delete=PARTITIONS_TO_DELETE.find(*layers),
            overwrite_mode=OVERWRITE_MODE.find(*layers),
            commit_metadata=recorded,
            concurrency=ConcurrencyOptions.of(*layers),
            services=ServiceOptions.of(*layers),
            shows_progress=PROGRESS.find(*layers),
            metadata_table=MetadataTableOptions.of(*layers),
        )


def _commit_metadata(layers: tuple[Mapping[str, str], ...], names: tuple[str, ...]) -> dict[str, str]:
    """Of the options that are nobody's, those that the commit is to record."""
    prefix = COMMIT_METADATA_PREFIX.find(*layers).lower()
    values = {name: value for layer in reversed(layers) for name, value in layer.items()}
    return {name: values[name] for name in names if name.startswith(prefix)}
