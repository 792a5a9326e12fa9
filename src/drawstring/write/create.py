"""New tables, on disk as Hudi 1.2 makes them: table version 9, timeline layout 2."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.merge_rules import COMMIT_TIME, EVENT_TIME, PAYLOADS
from drawstring.config.properties import format_properties, table_checksum
from drawstring.config.table_config import TableConfig
from drawstring.config.table_options import TableOptions
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.read_task import MergeSpec
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.change_images import BOTH
from drawstring.schema.time_partitions import PREFIX, TimePartition
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import PROPERTIES, is_table
from drawstring.write.locks import configured_lock
from drawstring.write.support import require_atomic_create
from drawstring.write.table_names import avro_names

TABLE_VERSION = "9"
_DIRECTORIES = (
    ".hoodie/timeline/history",
    ".hoodie/.schema",
    ".hoodie/.temp",
    ".hoodie/.aux/.bootstrap/.partitions",
    ".hoodie/.aux/.bootstrap/.fileids",
)
_EXTRACTORS = "org.apache.hudi.hive."
_MERGE_PROPERTY = "hoodie.record.merge.property."


def create_table(
    storage: Storage,
    options: TableOptions,
    *,
    schema: pa.Schema | None = None,
    concurrency: ConcurrencyOptions | None = None,
) -> TableConfig:
    """Make a new, empty table; its settings file is published last and only once.

    With `schema` (without meta columns) the table is as `CREATE TABLE` makes it: the schema is kept in the
    settings. `concurrency` names the lock. Raises `InvalidOption` when settings are missing or contradict each other,
    `InvalidInput` when there is a table already.
    """
    require_atomic_create(storage)
    properties = table_properties(options, schema=schema)
    now = dt.datetime.now(dt.timezone.utc).isoformat()
    content = format_properties(properties, comment=f"Properties saved on {now}")
    # Under the lock, so that nobody who takes back an empty table of theirs takes this one.
    with configured_lock(storage, concurrency or ConcurrencyOptions()):
        for directory in _DIRECTORIES:
            storage.make_directory(directory)
        created = not is_table(storage) and storage.create_if_absent(PROPERTIES, content)
    if not created:
        raise InvalidInput(
            f"Cannot create a table at {storage.root}: there is one already. Append to it, or drop it first.",
            condition="TABLE_EXISTS",
            path=storage.root,
        )
    return TableConfig.from_properties(properties)


def table_properties(options: TableOptions, *, schema: pa.Schema | None = None) -> dict[str, str]:
    """Return what `hoodie.properties` of a new table holds."""
    _check(options)
    properties = {
        "hoodie.table.name": options.name,
        "hoodie.table.type": options.table_type,
        "hoodie.table.version": TABLE_VERSION,
        "hoodie.table.initial.version": TABLE_VERSION,
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.archivelog.folder": "history",
        "hoodie.table.format": "native",
        "hoodie.table.base.file.format": "PARQUET",
        "hoodie.table.keygenerator.type": key_generator(options),
        "hoodie.populate.meta.fields": "true",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.datasource.write.hive_style_partitioning": _text(options.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": _text(options.url_encode),
        "hoodie.partition.metafile.use.base.format": "false",
        "hoodie.table.multiple.base.file.formats.enable": "false",
        "hoodie.table.cdc.enabled": _text(options.captures_changes),
        "hoodie.table.timeline.timezone": options.timezone,
        **_field_properties(options),
        **merge_properties(options),
    }
    if options.captures_changes:
        properties["hoodie.table.cdc.supplemental.logging.mode"] = options.capture_mode or BOTH
    if options.database:
        properties["hoodie.database.name"] = options.database
    if schema is not None:
        record, namespace = avro_names(options.name)
        avro = avro_schema_from_arrow(schema, name=record, namespace=namespace)
        properties["hoodie.table.create.schema"] = json.dumps(avro, separators=(",", ":"))
    properties["hoodie.table.checksum"] = str(table_checksum(properties))
    return properties


def key_generator(options: TableOptions) -> str:
    """Return the key generator that was asked for, or the one that the numbers of fields imply."""
    if options.key_generator:
        return options.key_generator
    partitions, keys = options.partition_fields or (), options.record_key_fields or ()
    if not partitions:
        return "NON_PARTITION"
    if any(":" in field for field in partitions):
        return "CUSTOM"
    # Generated keys count as one field.
    return "SIMPLE" if len(partitions) == 1 and len(keys) <= 1 else "COMPLEX"


def merge_properties(options: TableOptions) -> dict[str, str]:
    """Return the settings that say how versions of a record are merged, as Hudi keeps them since version 9."""
    spec = _merge_spec(options)
    found = {
        "hoodie.record.merge.mode": spec.mode,
        "hoodie.table.partial.update.mode": spec.partial_update_mode,
        "hoodie.table.legacy.payload.class": options.payload_class,
        f"{_MERGE_PROPERTY}hoodie.payload.delete.field": spec.delete_field,
        f"{_MERGE_PROPERTY}hoodie.payload.delete.marker": spec.delete_marker,
        f"{_MERGE_PROPERTY}hoodie.write.partial.update.unavailable.value": spec.unavailable_value,
    }
    return {key: value for key, value in found.items() if value}


def _merge_spec(options: TableOptions) -> MergeSpec:
    default = MergeSpec(EVENT_TIME if options.ordering_fields else COMMIT_TIME)
    spec = payload_spec(options.payload_class) if options.payload_class else default
    if bool(options.delete_field) != bool(options.delete_marker):
        raise InvalidOption(
            "A delete marker is a column and the value that marks a row as deleted: set both "
            "hoodie.payload.delete.field and hoodie.payload.delete.marker, or neither.",
            condition="DELETE_MARKER_INCOMPLETE",
        )
    return replace(
        spec,
        mode=options.merge_mode or spec.mode,
        partial_update_mode=options.partial_update_mode or spec.partial_update_mode,
        delete_field=options.delete_field or spec.delete_field,
        delete_marker=options.delete_marker or spec.delete_marker,
        unavailable_value=options.unavailable_value or spec.unavailable_value,
    )


def payload_spec(name: str) -> MergeSpec:
    """Return what one of Hudi's own payload classes means; raises `InvalidOption` for others."""
    spec = PAYLOADS.get(name.rpartition(".")[2])
    if spec is None:
        raise InvalidOption(
            f"Option hoodie.datasource.write.payload.class is {name}, which is not supported for writing; expected one "
            f"of {', '.join(PAYLOADS)}. Set hoodie.record.merge.mode instead.",
            condition="PAYLOAD_NOT_SUPPORTED",
            payload_class=name,
        )
    return spec


def _field_properties(options: TableOptions) -> dict[str, str]:
    lists: Mapping[str, tuple[str, ...] | None] = {
        "hoodie.table.recordkey.fields": options.record_key_fields,
        "hoodie.table.partition.fields": options.partition_fields,
        "hoodie.table.ordering.fields": options.ordering_fields or _merge_spec(options).ordering_fields,
    }
    found = {key: ",".join(fields) for key, fields in lists.items() if fields}
    found["hoodie.table.partition_extractor_class"] = _EXTRACTORS + _extractor(options)
    if key_generator(options) in ("TIMESTAMP", "CUSTOM"):
        # Hudi keeps them for its timestamp-based generator only; a custom one could not be written again without.
        found |= {PREFIX + key: value for key, value in options.time_settings.items()}
    return found


def _extractor(options: TableOptions) -> str:
    fields = options.partition_fields or ()
    if not fields:
        return "NonPartitionedExtractor"
    if len(fields) > 1:
        return "MultiPartKeysValueExtractor"
    return "HiveStylePartitionValueExtractor" if options.hive_style else "SinglePartPartitionValueExtractor"


def _check(options: TableOptions) -> None:
    if not options.name:
        raise InvalidOption(
            "Cannot create a table without a name: set hoodie.table.name.",
            condition="TABLE_NAME_MISSING",
            key="hoodie.table.name",
        )
    if options.version not in (None, int(TABLE_VERSION)):
        raise InvalidOption(
            f"Cannot create a table of version {options.version}: drawstring makes tables of version {TABLE_VERSION}. "
            "Remove hoodie.write.table.version, or let Apache Hudi create the table; drawstring writes to it then.",
            condition="TABLE_VERSION_NOT_CREATED",
            version=options.version,
        )
    _check_generator(options)


def _check_generator(options: TableOptions) -> None:
    generator, partitions = key_generator(options), options.partition_fields or ()
    keys = options.record_key_fields or ()
    kinds = [field.partition(":")[2].upper() for field in partitions]
    plain = not any(kinds)
    fits = {
        "NON_PARTITION": not partitions,
        "SIMPLE": plain and len(partitions) == 1 and len(keys) <= 1,
        "COMPLEX": plain,
        "TIMESTAMP": plain and len(partitions) == 1 and len(keys) <= 1,
        "CUSTOM": all(kind in ("SIMPLE", "TIMESTAMP") for kind in kinds),
    }
    if not fits[generator]:
        raise InvalidOption(
            f"The key generator {generator} does not fit the record key fields {list(keys)} and partition "
            f"fields {list(partitions)}. Expected NON_PARTITION without partition fields, SIMPLE or TIMESTAMP with "
            "one of each, CUSTOM with field:SIMPLE or field:TIMESTAMP, else COMPLEX.",
            condition="KEY_GENERATOR_MISMATCH",
            key_generator=generator,
        )
    if generator == "TIMESTAMP" or "TIMESTAMP" in kinds:
        TimePartition.of(options.time_settings)


def _text(flag: bool | None) -> str:
    return "true" if flag else "false"
