"""`hoodie.properties` as a validated, typed value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from drawstring.config.merge_rules import MergeRule, merge_rule, ordering_fields
from drawstring.config.option import Option, boolean, integer, names, one_of, text
from drawstring.config.properties import table_checksum
from drawstring.errors import CorruptTable
from drawstring.model.flipped_names import flipped_name
from drawstring.model.read_task import KeySpec, MergeSpec

COPY_ON_WRITE = "COPY_ON_WRITE"
MERGE_ON_READ = "MERGE_ON_READ"

NAME = Option("hoodie.table.name", text, "", "Name of the table.")
DATABASE = Option("hoodie.database.name", text, "", "Database of the table.")
TYPE = Option(
    "hoodie.table.type",
    one_of(COPY_ON_WRITE, MERGE_ON_READ),
    COPY_ON_WRITE,
    "Table type.",
    allowed=(COPY_ON_WRITE, MERGE_ON_READ),
)
VERSION = Option("hoodie.table.version", integer, 0, "Version of the on-disk format.")
INITIAL_VERSION = Option("hoodie.table.initial.version", integer, 0, "Version the table was created with.")
LAYOUT = Option("hoodie.timeline.layout.version", integer, 0, "Layout of the timeline: 1 or 2.")
KEY_FIELDS: Option[tuple[str, ...]] = Option(
    "hoodie.table.recordkey.fields", names, (), "Columns of the record key."
)
PARTITION_FIELDS: Option[tuple[str, ...]] = Option(
    "hoodie.table.partition.fields", names, (), "Columns of the partition path."
)
KEY_GENERATOR_TYPE = Option("hoodie.table.keygenerator.type", text, "", "Kind of key generator.")
KEY_GENERATOR_CLASS = Option("hoodie.table.keygenerator.class", text, "", "Key generator class.")
POPULATE_META = Option("hoodie.populate.meta.fields", boolean, True, "Whether meta columns are filled.")
HIVE_STYLE = Option("hoodie.datasource.write.hive_style_partitioning", boolean, False, "Paths as name=value.")
URL_ENCODE = Option("hoodie.datasource.write.partitionpath.urlencode", boolean, False, "Escaped path values.")
DROP_PARTITION_COLUMNS = Option(
    "hoodie.datasource.write.drop.partition.columns",
    boolean,
    False,
    "Partition columns are not in the files.",
)
SLASH_DATES = Option(
    "hoodie.datasource.write.slash.separated.date.partitioning",
    boolean,
    False,
    "A path yyyy/MM/dd stands for the date yyyy-MM-dd of the only partition column. Such tables are read, not written.",
)
TIMELINE_PATH = Option("hoodie.timeline.path", text, "timeline", "Timeline folder below .hoodie (layout 2).")
HISTORY_PATH = Option("hoodie.timeline.history.path", text, "history", "History folder below the timeline's.")
ARCHIVE_FOLDER = Option("hoodie.archivelog.folder", text, "archived", "Archive folder (layout 1).")
TIMEZONE = Option(
    "hoodie.table.timeline.timezone",
    one_of("LOCAL", "UTC"),
    "LOCAL",
    "Zone of instants.",
    allowed=("LOCAL", "UTC"),
)
METADATA_PARTITIONS: Option[tuple[str, ...]] = Option(
    "hoodie.table.metadata.partitions", names, (), "Partitions of the metadata table that may be read."
)
BASE_FILE_FORMAT = Option(
    "hoodie.table.base.file.format",
    text,
    "PARQUET",
    "Format of base files.",
    aliases=("hoodie.table.ro.file.format",),
)
LOG_FILE_FORMAT = Option(
    "hoodie.table.log.file.format",
    text,
    "HOODIE_LOG",
    "Format of log files.",
    aliases=("hoodie.table.rt.file.format",),
)
TABLE_FORMAT = Option("hoodie.table.format", text, "native", "Whose timeline and metadata the table has.")
CREATE_SCHEMA = Option(
    "hoodie.table.create.schema", text, "", "Avro schema given when the table was created."
)
BOOTSTRAP_BASE_PATH = Option("hoodie.bootstrap.base.path", text, "", "Source of a bootstrapped table.")
CDC_ENABLED = Option("hoodie.table.cdc.enabled", boolean, False, "Whether change data is logged.")
CDC_LOGGING_MODE = Option(
    "hoodie.table.cdc.supplemental.logging.mode",
    text,
    "DATA_BEFORE_AFTER",
    "How much of a row change data holds.",
)
INDEX_DEFINITIONS = Option(
    "hoodie.table.index.defs.path", text, ".hoodie/.index_defs/index.json", "Index definitions."
)
CHECKSUM = Option("hoodie.table.checksum", integer, -1, "Checksum over the table's names.")
_ALL_OPTIONS: tuple[Option[Any], ...] = (
    NAME,
    DATABASE,
    TYPE,
    VERSION,
    INITIAL_VERSION,
    LAYOUT,
    KEY_FIELDS,
    PARTITION_FIELDS,
    KEY_GENERATOR_TYPE,
    KEY_GENERATOR_CLASS,
    POPULATE_META,
    HIVE_STYLE,
    URL_ENCODE,
    DROP_PARTITION_COLUMNS,
    SLASH_DATES,
    TIMELINE_PATH,
    HISTORY_PATH,
    ARCHIVE_FOLDER,
    TIMEZONE,
    METADATA_PARTITIONS,
    BASE_FILE_FORMAT,
    LOG_FILE_FORMAT,
    TABLE_FORMAT,
    CREATE_SCHEMA,
    BOOTSTRAP_BASE_PATH,
    CDC_ENABLED,
    CDC_LOGGING_MODE,
    INDEX_DEFINITIONS,
    CHECKSUM,
)

_STORED_KEYS = frozenset(
    {
        *(key for option in _ALL_OPTIONS for key in (option.key, *option.aliases)),
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.table.partial.update.mode",
        "hoodie.table.legacy.payload.class",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.record.merge.mode",
        "hoodie.record.merge.strategy.id",
        "hoodie.compaction.payload.class",
        "hoodie.compaction.record.merger.strategy",
        "hoodie.record.merge.property.hoodie.payload.delete.field",
        "hoodie.record.merge.property.hoodie.payload.delete.marker",
        "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value",
    }
)
"""Keys that change how a table is read."""
_TIME_PREFIXES = ("hoodie.keygen.timebased.", "hoodie.deltastreamer.keygen.timebased.")
_CLASS_TO_TYPE = {
    "SimpleKeyGenerator": "SIMPLE",
    "ComplexKeyGenerator": "COMPLEX",
    "NonpartitionedKeyGenerator": "NON_PARTITION",
    "TimestampBasedKeyGenerator": "TIMESTAMP",
    "CustomKeyGenerator": "CUSTOM",
    "GlobalDeleteKeyGenerator": "GLOBAL_DELETE",
    "AutoRecordGenWrapperKeyGenerator": "AUTO_RECORD",
    "SqlKeyGenerator": "SPARK_SQL",
    "UuidKeyGenerator": "SPARK_SQL_UUID",
    "MergeIntoKeyGenerator": "SPARK_SQL_MERGE_INTO",
    "HoodieTableMetadataKeyGenerator": "HOODIE_TABLE_METADATA",
}


@dataclass(frozen=True)
class PartitionField:
    """One partition column; `derived` when the path holds something computed from it, `is_time` if that is known to be
    a formatted time.
    """

    name: str
    derived: bool = False
    is_time: bool = False


@dataclass(frozen=True)
class TableConfig:
    """What `hoodie.properties` says, typed.

    1. `partition_fields` are column names without the `:TYPE` that custom key generators append.
    2. `key_generator` is a type name such as SIMPLE, also where the file names a class.
    3. `merge_rule.spec` is what readers merge by; `merge_rule.unknown` names a class not to be run here.
    """

    name: str
    database: str
    table_type: str
    version: int
    layout: int
    initial_version: int
    record_key_fields: tuple[str, ...]
    partitioning: tuple[PartitionField, ...]
    key_generator: str
    merge_rule: MergeRule
    populate_meta_fields: bool
    hive_style: bool
    url_encode: bool
    drop_partition_columns: bool
    slash_separated_dates: bool
    timeline_path: str
    history_path: str
    archive_folder: str
    timezone: str
    metadata_partitions: tuple[str, ...]
    base_file_format: str
    create_schema: str
    time_settings: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], *, source: str = "hoodie.properties"
    ) -> TableConfig:
        """Type the properties; raises `InvalidOption` for bad and `CorruptTable` for missing values."""
        _refuse_flipped(properties, source)
        _require(properties, NAME.key, source)
        _require(properties, VERSION.key, source)
        version = VERSION.find(properties)
        generator = _key_generator(properties)
        return cls(
            name=NAME.find(properties),
            database=DATABASE.find(properties),
            table_type=TYPE.find(properties),
            version=version,
            layout=LAYOUT.find(properties) or (2 if version >= 8 else 1),
            initial_version=INITIAL_VERSION.find(properties) or version,
            record_key_fields=KEY_FIELDS.find(properties),
            partitioning=_partitioning(properties, generator),
            key_generator=generator,
            merge_rule=merge_rule(properties, version=version),
            populate_meta_fields=POPULATE_META.find(properties),
            hive_style=HIVE_STYLE.find(properties),
            url_encode=URL_ENCODE.find(properties),
            drop_partition_columns=DROP_PARTITION_COLUMNS.find(properties),
            slash_separated_dates=SLASH_DATES.find(properties),
            timeline_path=TIMELINE_PATH.find(properties),
            history_path=HISTORY_PATH.find(properties),
            archive_folder=ARCHIVE_FOLDER.find(properties),
            timezone=TIMEZONE.find(properties),
            metadata_partitions=METADATA_PARTITIONS.find(properties),
            base_file_format=BASE_FILE_FORMAT.find(properties).upper(),
            create_schema=CREATE_SCHEMA.find(properties),
            time_settings=time_settings(properties),
            properties=dict(properties),
        )

    @property
    def was_bootstrapped(self) -> bool:
        """Whether the table began with files of another one, which may still hold its rows."""
        return bool(BOOTSTRAP_BASE_PATH.find(self.properties).strip())

    @property
    def is_merge_on_read(self) -> bool:
        """Whether slices may have logs."""
        return self.table_type == MERGE_ON_READ

    @property
    def captures_changes(self) -> bool:
        """Whether commits log change data."""
        return CDC_ENABLED.find(self.properties)

    @property
    def cdc_logging_mode(self) -> str:
        """How much of a row change data holds, where the table has some."""
        return CDC_LOGGING_MODE.find(self.properties).upper()

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """The partition columns' names."""
        return tuple(field.name for field in self.partitioning)

    @property
    def ordering_fields(self) -> tuple[str, ...]:
        """The columns by which versions of a record are ordered."""
        return self.merge.ordering_fields or ordering_fields(self.properties)

    @property
    def merge(self) -> MergeSpec:
        """How records of one key are merged."""
        return self.merge_rule.spec

    @cached_property
    def keys(self) -> KeySpec:
        """How record keys are found."""
        return KeySpec(self.populate_meta_fields, self.record_key_fields, self.key_generator)

    @property
    def timeline_directory(self) -> str:
        """Where the active timeline lies."""
        return f".hoodie/{self.timeline_path}" if self.layout >= 2 else ".hoodie"

    @property
    def history_directory(self) -> str:
        """Where archived instants lie."""
        if self.layout >= 2:
            return f"{self.timeline_directory}/{self.history_path}"
        return f".hoodie/{self.archive_folder}"

    @property
    def was_upgraded_from_v6(self) -> bool:
        """Whether logs named the version-6 way may live beside newer ones."""
        return self.version >= 8 > self.initial_version

    def with_properties(self, changes: Mapping[str, str]) -> TableConfig:
        """A copy with some properties replaced, such as merge settings given by a reader."""
        return replace(TableConfig.from_properties({**self.properties, **changes}))


def verify_checksum(properties: Mapping[str, str], *, source: str) -> None:
    """Compare the stored checksum, if any, with the names it covers; raises `CorruptTable`."""
    if CHECKSUM.raw(properties) is None:
        return
    found, expected = CHECKSUM.find(properties), table_checksum(properties)
    if found != expected:
        raise CorruptTable(
            f"{source} has the checksum {found}; expected {expected} for its database and table name. The "
            "file was cut or edited: restore it from its backup, or correct hoodie.table.checksum.",
            condition="CHECKSUM_MISMATCH",
            path=source,
            found=found,
            expected=expected,
        )


def _refuse_flipped(properties: Mapping[str, str], source: str) -> None:
    """No checksum covers the keys: one in which a bit was flipped would pass for a setting that was never made."""
    found = _damaged_line(properties)
    if found is not None:
        raise CorruptTable(
            f"{source} has {found!r}, which is nearly a key of Hudi's that is missing: the file seems to be damaged. "
            "Restore it from its backup, or correct the line.",
            condition="INVALID_PROPERTY",
            path=source,
            found=found,
        )


def _damaged_line(properties: Mapping[str, str]) -> str | None:
    """A key that is a stored one but for a character, or runs into its value, or a value that runs into a line."""
    flipped = flipped_name(properties.keys(), _STORED_KEYS)
    if flipped is not None:
        return flipped
    missing = [key for key in _STORED_KEYS if key not in properties]
    strange = [key for key in properties if key not in _STORED_KEYS]
    run_on = [k for k in strange for key in missing if k.startswith(key) and k[len(key)] != "."]
    swallowing = [v for v in properties.values() if "hoodie." in v and any(f"{key}=" in v for key in missing)]
    return next(iter(run_on + swallowing), None)


def _require(properties: Mapping[str, str], key: str, source: str) -> None:
    if not properties.get(key):
        raise CorruptTable(
            f"{source} lacks {key}, which every table has; restore the file from its backup.",
            condition="MISSING_PROPERTY",
            path=source,
            key=key,
        )


def _key_generator(properties: Mapping[str, str]) -> str:
    named = KEY_GENERATOR_TYPE.find(properties).upper().removesuffix("_AVRO")
    if named and named != "USER_PROVIDED":
        return named
    simple = KEY_GENERATOR_CLASS.find(properties).rpartition(".")[2]
    simple = simple.replace("Avro", "") if simple.endswith("KeyGenerator") else simple
    return _CLASS_TO_TYPE.get(simple) or (f"USER_PROVIDED:{simple}" if simple else _inferred(properties))


def _inferred(properties: Mapping[str, str]) -> str:
    fields = PARTITION_FIELDS.find(properties)
    if not fields:
        return "NON_PARTITION"
    if any(":" in name for name in fields):
        return "CUSTOM"
    return "SIMPLE" if len(fields) == 1 and len(KEY_FIELDS.find(properties)) == 1 else "COMPLEX"


def _partitioning(properties: Mapping[str, str], generator: str) -> tuple[PartitionField, ...]:
    fields = []
    for entry in PARTITION_FIELDS.find(properties):
        name, _, kind = entry.partition(":")
        is_time = generator == "TIMESTAMP" or (generator == "CUSTOM" and kind.upper() == "TIMESTAMP")
        derived = is_time or kind.upper() == "TIMESTAMP"
        # Version 6 stores the fields of a custom generator without their kinds: which is a time is not known.
        derived = derived or (generator == "CUSTOM" and not kind)
        derived = derived or generator.startswith("USER_PROVIDED")
        fields.append(PartitionField(name.strip(), derived, is_time))
    return tuple(fields)


def time_settings(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of timestamp-based key generators, by their keys without prefix."""
    settings: dict[str, str] = {}
    for prefix in reversed(_TIME_PREFIXES):
        settings.update({k[len(prefix) :]: str(v) for k, v in properties.items() if k.startswith(prefix)})
    return settings
