"""What a write may say about the table itself: what it is made as, and what an existing one must agree with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.option import Option, boolean, names, one_of, text
from drawstring.config.table_config import COPY_ON_WRITE, MERGE_ON_READ, time_settings

KEY_GENERATORS = ("SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP", "CUSTOM")
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


def _table_version(value: str) -> int:
    """Take a version as number or, like Hudi's own names, as word."""
    found = {"eight": 8, "8": 8, "nine": 9, "9": 9}.get(value.strip().lower())
    if found is None:
        raise ValueError("8 or 9: tables of other versions are written by Apache Hudi")
    return found


TABLE_NAME = Option("hoodie.table.name", text, "", "Name of the table; needed to create one.")
DATABASE_NAME = Option("hoodie.database.name", text, "", "Database of the table.")
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
    "Payload class of older Hudi releases; stands for a merge mode, which must be that of an existing table.",
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
ALL: tuple[Option[Any], ...] = (
    TABLE_NAME,
    DATABASE_NAME,
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
    UNAVAILABLE_VALUE,
    DELETE_FIELD,
    DELETE_MARKER,
    TIMELINE_TIMEZONE,
    CAPTURES_CHANGES,
    CAPTURE_MODE,
)


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

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> TableOptions:
        """Resolve what the layers of options say, the first that says something first."""
        return cls(
            name=TABLE_NAME.find(*layers),
            database=DATABASE_NAME.find(*layers),
            table_type=TABLE_TYPE.find(*layers),
            version=TABLE_VERSION.find(*layers),
            record_key_fields=RECORD_KEY.find(*layers),
            partition_fields=PARTITION_PATH.find(*layers),
            ordering_fields=ORDERING.find(*layers),
            key_generator=KEY_GENERATOR.find(*layers),
            time_settings={
                k: v for layer in reversed(layers) if layer for k, v in time_settings(layer).items()
            },
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
