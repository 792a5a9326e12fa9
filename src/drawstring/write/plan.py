"""Checks a write before it begins: what can be refused without changing the table is refused here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from drawstring.config.index_options import BUCKET, moving_option
from drawstring.config.merge_rules import EVENT_TIME
from drawstring.config.table_config import TableConfig
from drawstring.config.table_options import TableOptions
from drawstring.config.write_options import (
    DELETE,
    DELETE_PARTITION,
    INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    WriteOptions,
)
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.instant import Action
from drawstring.model.read_task import MergeSpec
from drawstring.planning.table_state import TableState
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import IS_DELETED, prepend_meta_columns
from drawstring.write.assignment import Layout
from drawstring.write.change_files import capture_mode
from drawstring.write.column_ids import check_unchanged
from drawstring.write.create import payload_spec, table_properties
from drawstring.write.evolution import incoming_schema, reconcile
from drawstring.write.key_generator import KeyGenerator, is_told_by_keys, key_generator
from drawstring.write.metadata_table.layout import RECORD_INDEX
from drawstring.write.non_blocking import check_non_blocking
from drawstring.write.table_facts import key_sample, table_schema
from drawstring.write.table_names import avro_names

OVERWRITES = (INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE)
_BY_GROUP = (UPSERT, INSERT, DELETE)


@dataclass(frozen=True)
class DeleteMark:
    """Rows delete whose field has this value, as text (`hoodie.payload.delete.field` and `.marker`)."""

    field: str
    marker: str


@dataclass(frozen=True)
class WritePlan:
    """What is to be done with the rows of one write.

    `incoming` is the schema of the rows as they come, `table_schema` the table's after the write and
    `schema_at_start` before it, as Avro text; none of them has meta columns.
    """

    operation: str
    options: WriteOptions
    rule: KeyGenerator
    incoming: pa.Schema
    table_schema: pa.Schema
    ordering: tuple[str, ...]
    table_name: str
    schema_at_start: str = ""
    layout: Layout = Layout.COPY_ON_WRITE
    merge: MergeSpec = field(default_factory=lambda: MergeSpec("COMMIT_TIME_ORDERING"))

    @property
    def action(self) -> Action:
        """The action of its instant."""
        if self.operation in OVERWRITES:
            return Action.REPLACECOMMIT
        return Action.COMMIT if self.layout is Layout.COPY_ON_WRITE else Action.DELTACOMMIT

    @property
    def is_non_blocking(self) -> bool:
        """Whether it stands beside other appends; bulk inserts and overwrites never do, as in Hudi."""
        return self.options.concurrency.is_non_blocking and self.operation in (UPSERT, INSERT, DELETE)

    @property
    def deletes_by(self) -> DeleteMark | None:
        """Which rows delete, beside those that say so by `_hoodie_is_deleted`."""
        merge = self.merge
        if merge.delete_field and merge.delete_marker:
            return DeleteMark(merge.delete_field, merge.delete_marker)
        return None

    @property
    def goes_by_group(self) -> bool:
        """Whether rows are brought to the file groups that hold their keys, that are small, or their buckets."""
        return self.operation in _BY_GROUP or self.options.index.kind == BUCKET

    @property
    def avro_schema(self) -> str:
        """The table's schema as the commit records it."""
        return avro_schema_text(self.table_schema, self.table_name)

    @property
    def log_schema(self) -> str:
        """The schema of records in log files: with meta columns, and of the assigned columns where only some are."""
        schema = self.table_schema
        if self.assigned_columns:
            schema = pa.schema([field for field in schema if field.name in self.assigned_columns])
        return avro_schema_text(prepend_meta_columns(schema), self.table_name)

    @property
    def assigned_columns(self) -> tuple[str, ...]:
        """The columns of a partial update, ordering columns among them; none when rows are whole."""
        given = self.options.assigned_columns
        return tuple(dict.fromkeys((*given, *self.ordering))) if given else ()


def avro_schema_text(schema: pa.Schema, table_name: str) -> str:
    """Return a schema as commits, which leave meta columns out, and log blocks, which have them, record it."""
    record, namespace = avro_names(table_name)
    avro = avro_schema_from_arrow(schema, name=record, namespace=namespace)
    return json.dumps(avro, separators=(",", ":"))


def plan_first_write(rows: pa.Schema, wanted: WriteOptions) -> WritePlan:
    """Check a write that makes its table."""
    config = TableConfig.from_properties(table_properties(wanted.table))
    return _plan(rows, config, None, wanted, sample=None)


def plan_write(rows: pa.Schema, state: TableState, wanted: WriteOptions) -> WritePlan:
    """Check a write to a table as it is."""
    check_settings(wanted.table, state.config, state.storage.root)
    sample = key_sample(state) if is_told_by_keys(state.config) else None
    plan = _plan(rows, state.config, table_schema(state), wanted, sample=sample)
    check_unchanged(state, plan.schema_at_start, plan.avro_schema)
    if plan.operation == UPSERT:
        _check_paths_stay_true(state.config, wanted)
    return plan


def _check_paths_stay_true(config: TableConfig, wanted: WriteOptions) -> None:
    """Refuse to leave rows in partitions whose paths would tell another time than theirs.

    Readers leave partitions out by the time that their paths tell, Apache Hudi's too. They know better only of tables
    with a record index.
    """
    has_record_index = RECORD_INDEX in config.metadata_partitions or wanted.metadata_table.record_index
    stays = wanted.index.is_global and not wanted.index.moves_rows
    if not stays or has_record_index or not any(part.is_time for part in config.partitioning):
        return
    key = moving_option(wanted.index.kind).key
    raise InvalidOption(
        f"An upsert with the index {wanted.index.kind} and {key}=false leaves a row whose time has changed in its old "
        f"partition. The paths of {config.name} are made of times, so readers, Apache Hudi's too, would miss the row "
        f"by conditions on its time. Set {key}=true, or use an index that is not global. Nothing was written.",
        condition="TIME_PATH_NOT_KEPT",
        key=key,
        value="false",
    )


def _plan(
    rows: pa.Schema,
    config: TableConfig,
    schema: pa.Schema | None,
    wanted: WriteOptions,
    *,
    sample: str | None,
) -> WritePlan:
    rule = key_generator(config, key_sample=sample, time_settings=wanted.table.time_settings)
    operation = _operation(wanted, rule)
    require_columns(rows, rule.key_fields, "record key")
    require_columns(rows, rule.partition_fields, "partition path")
    ordering = () if operation == DELETE else _ordering(rows, config)
    _check_assigned(operation, config, schema, wanted.assigned_columns)
    missing_allowed = wanted.null_for_missing or operation == DELETE or bool(wanted.assigned_columns)
    written = reconcile(incoming_schema(rows), schema, null_for_missing=missing_allowed)
    if operation == DELETE and schema is not None:
        written = schema
    at_start = avro_schema_text(schema, config.name) if schema is not None else ""
    check_non_blocking(config, wanted)
    layout = _layout(config, wanted)
    plan = WritePlan(
        operation, wanted, rule, rows, written, ordering, config.name, at_start, layout, config.merge
    )
    _ = plan.avro_schema  # a schema that cannot be recorded is refused here
    return plan


def _layout(config: TableConfig, wanted: WriteOptions) -> Layout:
    if not config.is_merge_on_read:
        return Layout.COPY_ON_WRITE
    return Layout.LOGS if wanted.index.kind == BUCKET else Layout.LOGS_FOR_KNOWN_KEYS


def _check_assigned(
    operation: str, config: TableConfig, schema: pa.Schema | None, columns: tuple[str, ...]
) -> None:
    """Refuse a partial update that nothing could keep: only logs hold some columns of a record."""
    if not columns:
        return
    known = set(schema.names) if schema is not None else set()
    if IS_DELETED in known:
        raise InvalidOption(
            f"A partial update (hoodie.write.partial.update.schema) of a table with a column {IS_DELETED} could not be "
            "read by Apache Hudi 1.2, not even its own: it looks for that column in records that lack it. Write whole "
            "rows. Nothing was written.",
            condition="PARTIAL_UPDATE_NOT_POSSIBLE",
            operation=operation,
            columns=list(columns),
        )
    if config.is_merge_on_read and operation == UPSERT and set(columns) <= known:
        return
    raise InvalidOption(
        "A partial update (hoodie.write.partial.update.schema) assigns columns of an existing merge-on-read table by "
        f"the operation upsert; this is {operation} of {', '.join(columns)}. Nothing was written.",
        condition="PARTIAL_UPDATE_NOT_POSSIBLE",
        operation=operation,
        columns=list(columns),
    )


def _operation(wanted: WriteOptions, rule: KeyGenerator) -> str:
    operation = wanted.operation or (UPSERT if rule.key_fields else INSERT)
    if operation in (UPSERT, DELETE) and not rule.key_fields:
        raise InvalidOption(
            f"The operation {operation} needs a record key: set hoodie.datasource.write.recordkey.field, or use "
            "insert. Nothing was written.",
            condition="RECORD_KEY_MISSING",
            operation=operation,
        )
    if operation == DELETE_PARTITION:
        raise InvalidInput(
            "There is no table to drop partitions of. Nothing was written.", condition="TABLE_NOT_FOUND"
        )
    return operation


def _ordering(rows: pa.Schema, config: TableConfig) -> tuple[str, ...]:
    if config.merge.mode != "EVENT_TIME_ORDERING":
        return ()
    require_columns(rows, config.ordering_fields, "ordering")
    known = {name.lower() for name in rows.names}
    nested = [name for name in config.ordering_fields if name.lower() not in known]
    if nested:
        raise InvalidOption(
            f"The ordering column {nested[0]!r} is a field of a struct; drawstring orders by columns only. "
            "Nothing was written.",
            condition="NESTED_ORDERING_FIELD",
            column=nested[0],
        )
    return config.ordering_fields


def require_columns(rows: pa.Schema, names: tuple[str, ...], role: str) -> None:
    """Raise `InvalidInput` when the rows lack one of the columns."""
    for name in names:
        if field_type(rows, name) is None:
            raise InvalidInput(
                f"The {role} column {name!r} is not among the columns: {', '.join(rows.names) or 'none'}. "
                "Correct the option, or add the column. Nothing was written.",
                condition="COLUMN_NOT_FOUND",
                column=name,
                columns=rows.names,
            )


def field_type(fields: Any, name: str) -> pa.DataType | None:
    """Return the type of a column or of a dotted field; None when there is none. Case is ignored."""
    known = {field.name.lower(): field.type for field in fields}
    if name.lower() in known:
        return known[name.lower()]
    head, _, rest = name.partition(".")
    inner = known.get(head.lower())
    return field_type(inner, rest) if rest and inner is not None and pa.types.is_struct(inner) else None


def check_settings(options: TableOptions, config: TableConfig, path: str) -> None:
    """Refuse options that contradict what the table was made with."""
    pairs: dict[str, tuple[Any, Any]] = {
        "hoodie.table.name": (options.name or None, config.name),
        "hoodie.write.table.version": (options.version, config.version),
        "hoodie.datasource.write.recordkey.field": (options.record_key_fields, config.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": (
            # The custom key generator's fields name their kinds; which they are, the table knows.
            options.partition_fields and tuple(name.partition(":")[0] for name in options.partition_fields),
            config.partition_fields,
        ),
        "hoodie.datasource.write.precombine.field": (options.ordering_fields, config.ordering_fields),
        "hoodie.datasource.write.keygenerator.type": (options.key_generator, config.key_generator),
        "hoodie.datasource.write.hive_style_partitioning": (options.hive_style, config.hive_style),
        "hoodie.datasource.write.partitionpath.urlencode": (options.url_encode, config.url_encode),
        "hoodie.record.merge.mode": (options.merge_mode, config.merge.mode),
        "hoodie.table.cdc.enabled": (options.captures_changes, bool(capture_mode(config))),
        "hoodie.table.cdc.supplemental.logging.mode": (options.capture_mode, capture_mode(config)),
        "hoodie.table.partial.update.mode": (options.partial_update_mode, config.merge.partial_update_mode),
        "hoodie.payload.delete.field": (options.delete_field, config.merge.delete_field),
        "hoodie.payload.delete.marker": (options.delete_marker, config.merge.delete_marker),
    }
    for key, (found, expected) in pairs.items():
        if found is not None and found != expected and (found or expected):
            raise InvalidOption(
                f"Option {key} is {_shown(found)!r}, but the table at {path} was made with {_shown(expected)!r}. "
                "Remove the option, or overwrite the table. Nothing was written.",
                condition="CONFIG_CONFLICT",
                key=key,
                found=_shown(found),
                expected=_shown(expected),
            )
    _check_payload(options, config, path)


def _check_payload(options: TableOptions, config: TableConfig, path: str) -> None:
    """Refuse a payload class of another merge rule than the table's: Hudi 1.2 merges that one write by it."""
    given = options.payload_class
    if not given or given == config.properties.get("hoodie.table.legacy.payload.class"):
        return
    asked = payload_spec(given).mode
    is_event_time = config.merge.mode == EVENT_TIME
    # Without ordering fields event time is commit time; a merge mode beside the class counts, and was compared.
    if options.merge_mode or not config.ordering_fields or (asked == EVENT_TIME) == is_event_time:
        return
    raise InvalidOption(
        f"Option hoodie.datasource.write.payload.class is {given}, which stands for {asked}, but the table at {path} "
        f"merges by {config.merge.mode}. Remove the option, or overwrite the table. Nothing was written.",
        condition="CONFIG_CONFLICT",
        key="hoodie.datasource.write.payload.class",
        found=given,
        expected=config.merge.mode,
    )


def _shown(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)
