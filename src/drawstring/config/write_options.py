"""What a write may be told, typed, under Hudi's keys and with Hudi's defaults."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from drawstring.config import (
    bloom_options,
    concurrency_options,
    index_options,
    log_options,
    metadata_options,
    read_options,
    service_options,
    sink_options,
    sql_write_options,
    stream_options,
)
from drawstring.config.bloom_options import BloomOptions
from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.hudi_keys import HudiKeys
from drawstring.config.index_options import IndexOptions
from drawstring.config.log_options import LogOptions
from drawstring.config.metadata_options import MetadataTableOptions
from drawstring.config.option import (
    Option,
    boolean,
    integer,
    lowered,
    names,
    not_negative,
    one_of,
    positive,
    text,
)
from drawstring.config.service_options import ServiceOptions
from drawstring.config.table_config import COPY_ON_WRITE, MERGE_ON_READ, time_settings
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
KEY_GENERATORS = ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM")
SORT_MODES = (
    "NONE",
    "GLOBAL_SORT",
    "PARTITION_SORT",
    "PARTITION_PATH_REPARTITION",
    "PARTITION_PATH_REPARTITION_AND_SORT",
)
CODECS = ("zstd", "snappy", "gzip", "uncompressed", "lz4_raw", "brotli")
PARTIAL_UPDATE_MODES = ("IGNORE_DEFAULTS", "FILL_UNAVAILABLE")
CAPTURE_MODES = ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")
MERGE_MODES = ("EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING")
_GENERATOR_CLASSES = {
    "SimpleKeyGenerator": "SIMPLE",
    "SimpleAvroKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "COMPLEX",
    "ComplexAvroKeyGenerator": "COMPLEX",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "NonpartitionedAvroKeyGenerator": "NON_PARTITION",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "TimestampBasedAvroKeyGenerator": "TIMESTAMP",
    "CustomKeyGenerator": "CUSTOM",
    "CustomAvroKeyGenerator": "CUSTOM",
}


def _key_generator(value: str) -> str:
    """Take a key generator's type or class, and return its type."""
    simple = value.strip().rpartition(".")[2]
    found = _GENERATOR_CLASSES.get(simple, simple.upper().removesuffix("_AVRO"))
    if found not in KEY_GENERATORS:
        raise ValueError(f"one of {', '.join(KEY_GENERATORS)}")
    return found


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("a text that is not blank")
    return value.strip()


def _table_version(value: str) -> int:
    """Take a version as number or, like Hudi's own names, as word."""
    found = {"eight": 8, "8": 8, "nine": 9, "9": 9}.get(value.strip().lower())
    if found is None:
        raise ValueError("8 or 9: tables of other versions are written by Apache Hudi")
    return found


def _columns_of_schema(value: str) -> tuple[str, ...]:
    """Take an Avro record, and return the names of its fields."""
    try:
        return tuple(field["name"] for field in json.loads(value)["fields"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("the JSON of an Avro record") from None


def _flag(key: str, default: bool, doc: str, aliases: tuple[str, ...] = ()) -> Option[bool]:
    return Option(key, boolean, default, doc, aliases=aliases, allowed=("true", "false"))


TABLE_NAME = Option("hoodie.table.name", text, "", "Name of the table; needed to create one.")
DATABASE_NAME = Option("hoodie.database.name", text, "", "Database of the table.")
OPERATION: Option[str | None] = Option(
    "hoodie.datasource.write.operation",
    one_of(*OPERATIONS),
    None,
    "What to do with the rows. Without it rows are upserted, or inserted when no record key is configured.",
    allowed=OPERATIONS,
)
TABLE_TYPE = Option(
    "hoodie.datasource.write.table.type",
    one_of(COPY_ON_WRITE, MERGE_ON_READ),
    COPY_ON_WRITE,
    "Type of a new table.",
    aliases=("hoodie.table.type", "hoodie.datasource.write.storage.type"),
    allowed=(COPY_ON_WRITE, MERGE_ON_READ),
)
TABLE_VERSION: Option[int | None] = Option(
    "hoodie.write.table.version",
    _table_version,
    None,
    "Version of the table's format. New tables have 9; tables of version 8 and 9 are written as they are, and a write "
    "that asks for another version than the table's is refused.",
    allowed=("8", "9"),
)
RECORD_KEY: Option[tuple[str, ...] | None] = Option(
    "hoodie.datasource.write.recordkey.field",
    names,
    None,
    "Columns that make the record key, comma separated. Keys are generated when there are none.",
    aliases=("hoodie.table.recordkey.fields",),
)
PARTITION_PATH: Option[tuple[str, ...] | None] = Option(
    "hoodie.datasource.write.partitionpath.field",
    names,
    None,
    "Columns that make the partition path, comma separated; each with `:simple` or `:timestamp` for the custom "
    "key generator.",
    aliases=("hoodie.table.partition.fields",),
)
ORDERING: Option[tuple[str, ...] | None] = Option(
    "hoodie.datasource.write.precombine.field",
    names,
    None,
    "Columns by which versions of a record are ordered; the highest wins.",
    aliases=("hoodie.table.ordering.fields", "hoodie.table.precombine.field"),
)
KEY_GENERATOR: Option[str | None] = Option(
    "hoodie.datasource.write.keygenerator.type",
    _key_generator,
    None,
    "How key and path are made of their columns; told from the number of columns by default. Times are formatted by "
    "`hoodie.keygen.timebased.*`.",
    aliases=(
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.table.keygenerator.type",
        "hoodie.table.keygenerator.class",
    ),
    allowed=KEY_GENERATORS,
)
HIVE_STYLE: Option[bool | None] = Option(
    "hoodie.datasource.write.hive_style_partitioning",
    boolean,
    None,
    "Partition directories are called column=value. False by default.",
    allowed=("true", "false"),
)
URL_ENCODE: Option[bool | None] = Option(
    "hoodie.datasource.write.partitionpath.urlencode",
    boolean,
    None,
    "Special characters in partition values are escaped. False by default.",
    allowed=("true", "false"),
)
MERGE_MODE: Option[str | None] = Option(
    "hoodie.record.merge.mode",
    one_of(*MERGE_MODES),
    None,
    "Which version of a record wins: the one with the highest ordering value, or the one written last. Told "
    "from the presence of ordering columns by default.",
    aliases=("hoodie.write.record.merge.mode", "hoodie.datasource.write.record.merge.mode"),
    allowed=MERGE_MODES,
)
PAYLOAD_CLASS: Option[str | None] = Option(
    "hoodie.datasource.write.payload.class",
    text,
    None,
    "Payload class of older Hudi releases; stands for a merge mode.",
    aliases=("hoodie.compaction.payload.class",),
)
PARTIAL_UPDATE_MODE: Option[str | None] = Option(
    "hoodie.table.partial.update.mode",
    one_of(*PARTIAL_UPDATE_MODES),
    None,
    "What a record that wins takes from the one that loses, in a new table: values of columns that have their default, "
    "or that are marked as not available.",
    allowed=PARTIAL_UPDATE_MODES,
)
PARTIAL_SCHEMA: Option[tuple[str, ...]] = Option(
    "hoodie.write.partial.update.schema",
    _columns_of_schema,
    (),
    "Avro schema of the columns that an upsert to a merge-on-read table assigns; all others keep their values. The "
    "keys of the rows must be in the table.",
)
UNAVAILABLE_VALUE: Option[str | None] = Option(
    "hoodie.write.partial.update.unavailable.value",
    text,
    None,
    "The text that stands for a value that is not available, in a new table that fills them.",
)
DELETE_FIELD: Option[str | None] = Option(
    "hoodie.payload.delete.field", text, None, "Column of a new table by which rows say that they delete."
)
DELETE_MARKER: Option[str | None] = Option(
    "hoodie.payload.delete.marker", text, None, "Value of that column in rows that delete."
)
COMBINE_BEFORE_INSERT = _flag(
    "hoodie.combine.before.insert", False, "Keep one of several incoming rows of one key when inserting."
)
COMBINE_BEFORE_UPSERT = _flag(
    "hoodie.combine.before.upsert", True, "Keep one of several incoming rows of one key when upserting."
)
MAX_FILE_SIZE = Option(
    "hoodie.parquet.max.file.size", positive, 120 << 20, "Target size of a base file in bytes."
)
SMALL_FILE_LIMIT = Option(
    "hoodie.parquet.small.file.limit",
    integer,
    100 << 20,
    "Base files below this many bytes take further inserts; 0 or less for none.",
)
RECORD_SIZE_ESTIMATE = Option(
    "hoodie.copyonwrite.record.size.estimate",
    positive,
    1024,
    "Bytes of a record in a file, until commits tell better.",
)
CODEC = Option(
    "hoodie.parquet.compression.codec",
    one_of(*CODECS),
    "zstd",
    "Compression of base files. Hudi's default is gzip: zstd makes files as small in a fraction of the time.",
    allowed=CODECS,
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
TIMELINE_TIMEZONE = Option(
    "hoodie.table.timeline.timezone",
    one_of("LOCAL", "UTC"),
    "LOCAL",
    "Time zone of instants in a new table.",
    allowed=("LOCAL", "UTC"),
)
CAPTURES_CHANGES: Option[bool | None] = Option(
    "hoodie.table.cdc.enabled",
    boolean,
    None,
    "A new table captures changes: commits that rewrite base files say what happened to each row. False by default.",
    allowed=("true", "false"),
)
CAPTURE_MODE: Option[str | None] = Option(
    "hoodie.table.cdc.supplemental.logging.mode",
    one_of(*CAPTURE_MODES),
    None,
    "What a new table that captures changes keeps of a row: both versions, the one before, or its key. "
    "DATA_BEFORE_AFTER by default.",
    allowed=CAPTURE_MODES,
)
STATIC_PARTITIONS: Option[tuple[str, ...]] = Option(
    "hoodie.static.overwrite.partition.paths",
    names,
    (),
    "Partition paths that an insert_overwrite replaces even when no row falls into them.",
)
PARTITIONS_TO_DELETE: Option[tuple[str, ...]] = Option(
    "hoodie.datasource.write.partitions.to.delete",
    names,
    (),
    "Partition paths that delete_partition drops; * matches any text.",
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
    TABLE_NAME,
    DATABASE_NAME,
    OPERATION,
    TABLE_TYPE,
    TABLE_VERSION,
    RECORD_KEY,
    PARTITION_PATH,
    ORDERING,
    KEY_GENERATOR,
    HIVE_STYLE,
    URL_ENCODE,
    MERGE_MODE,
    PAYLOAD_CLASS,
    PARTIAL_UPDATE_MODE,
    PARTIAL_SCHEMA,
    UNAVAILABLE_VALUE,
    DELETE_FIELD,
    DELETE_MARKER,
    COMBINE_BEFORE_INSERT,
    COMBINE_BEFORE_UPSERT,
    MAX_FILE_SIZE,
    SMALL_FILE_LIMIT,
    RECORD_SIZE_ESTIMATE,
    CODEC,
    SORT_MODE,
    BULK_INSERT_PARALLELISM,
    NULL_FOR_MISSING,
    TIMELINE_TIMEZONE,
    CAPTURES_CHANGES,
    CAPTURE_MODE,
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
class FileOptions:
    """How files are made; travels to executors."""

    codec: str = CODEC.default
    max_file_size: int = MAX_FILE_SIZE.default
    small_file_limit: int = SMALL_FILE_LIMIT.default
    record_size_estimate: int = RECORD_SIZE_ESTIMATE.default
    bloom: BloomOptions = field(default_factory=BloomOptions)
    logs: LogOptions = field(default_factory=LogOptions)


@dataclass(frozen=True)
class TableOptions:
    """What a write says about the table itself; None where it says nothing."""

    name: str = ""
    database: str = ""
    table_type: str = COPY_ON_WRITE
    version: int | None = None
    record_key_fields: tuple[str, ...] | None = None
    partition_fields: tuple[str, ...] | None = None
    ordering_fields: tuple[str, ...] | None = None
    key_generator: str | None = None
    time_settings: Mapping[str, str] = field(default_factory=dict)
    hive_style: bool | None = None
    url_encode: bool | None = None
    merge_mode: str | None = None
    payload_class: str | None = None
    partial_update_mode: str | None = None
    unavailable_value: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    timezone: str = "LOCAL"
    captures_changes: bool | None = None
    capture_mode: str | None = None


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
    partitions_to_delete: tuple[str, ...] = ()
    overwrite_mode: str | None = None
    commit_metadata: Mapping[str, str] = field(default_factory=dict)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)
    metadata_table: MetadataTableOptions = field(default_factory=MetadataTableOptions)
    sink_batch: SinkBatch | None = None
    """The batch of a streaming write that the rows are; written only if no commit tells of it."""
    services: ServiceOptions = field(default_factory=ServiceOptions)
    shows_progress: bool = True

    @property
    def lock_wait_seconds(self) -> float:
        """How long to wait for the table's lock."""
        return self.concurrency.lock_wait_seconds

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
            table=_table_options(layers),
            files=FileOptions(
                codec=CODEC.find(*layers),
                max_file_size=MAX_FILE_SIZE.find(*layers),
                small_file_limit=SMALL_FILE_LIMIT.find(*layers),
                record_size_estimate=RECORD_SIZE_ESTIMATE.find(*layers),
                bloom=BloomOptions.of(*layers, index_type=index.kind),
                logs=LogOptions.of(*layers),
            ),
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


def _table_options(layers: tuple[Mapping[str, Any] | None, ...]) -> TableOptions:
    return TableOptions(
        name=TABLE_NAME.find(*layers),
        database=DATABASE_NAME.find(*layers),
        table_type=TABLE_TYPE.find(*layers),
        version=TABLE_VERSION.find(*layers),
        record_key_fields=RECORD_KEY.find(*layers),
        partition_fields=PARTITION_PATH.find(*layers),
        ordering_fields=ORDERING.find(*layers),
        key_generator=KEY_GENERATOR.find(*layers),
        time_settings={k: v for layer in reversed(layers) if layer for k, v in time_settings(layer).items()},
        hive_style=HIVE_STYLE.find(*layers),
        url_encode=URL_ENCODE.find(*layers),
        merge_mode=MERGE_MODE.find(*layers),
        payload_class=PAYLOAD_CLASS.find(*layers),
        partial_update_mode=PARTIAL_UPDATE_MODE.find(*layers),
        unavailable_value=UNAVAILABLE_VALUE.find(*layers),
        delete_field=DELETE_FIELD.find(*layers),
        delete_marker=DELETE_MARKER.find(*layers),
        timezone=TIMELINE_TIMEZONE.find(*layers),
        captures_changes=CAPTURES_CHANGES.find(*layers),
        capture_mode=CAPTURE_MODE.find(*layers),
    )
