"""Writing a DataFrame to a table: save modes, operations and their order, the transaction around them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.config.table_config import TableConfig
from drawstring.config.write_options import (
    DELETE,
    DELETE_PARTITION,
    INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    TableOptions,
    WriteOptions,
)
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileSlice
from drawstring.model.instant import Action
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY, prepend_meta_columns
from drawstring.spark.types import arrow_schema
from drawstring.spark.write import jobs
from drawstring.spark.write.keys import column, data_type, key_column, path_column, require_columns
from drawstring.spark.write.swap import replace_table
from drawstring.storage import Storage, open_storage
from drawstring.storage.table_properties import PROPERTIES
from drawstring.write.assignment import assign
from drawstring.write.base_files import WriteContext
from drawstring.write.create import create_table, table_properties
from drawstring.write.evolution import incoming_schema, reconcile
from drawstring.write.key_generator import KeyGenerator, check_partition_path, is_derivable, key_generator
from drawstring.write.merge_group import DELETED, POSITION, MergeRules
from drawstring.write.support import check_writable, require_atomic_create
from drawstring.write.table_names import avro_names
from drawstring.write.table_state import TableState
from drawstring.write.transaction import Committed, Transaction
from drawstring.write.twins import warn_of_twins

APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS = "append", "overwrite", "ignore", "errorifexists"
_MODES = {
    "append": APPEND,
    "overwrite": OVERWRITE,
    "ignore": IGNORE,
    "errorifexists": ERROR_IF_EXISTS,
    "error": ERROR_IF_EXISTS,
    "default": ERROR_IF_EXISTS,
}
_OVERWRITES = (INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE)
_IS_DELETED = "_hoodie_is_deleted"


@dataclass(frozen=True)
class CommitResult:
    """What a write did. `instant` is None when there was nothing to do (mode `ignore`)."""

    path: str
    operation: str
    instant: str | None = None
    completion_time: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files_written: int = 0
    groups_replaced: int = 0


def write_dataframe(
    df: DataFrame,
    *,
    path: str,
    mode: str = ERROR_IF_EXISTS,
    options: Mapping[str, Any] | None = None,
    replaced_partitions: tuple[str, ...] = (),
) -> CommitResult:
    """Write rows to the table at `path`, creating it when there is none.

    `mode` is one of Spark's save modes, `options` are Hudi's; `replaced_partitions` are paths that an
    insert_overwrite replaces beside those that the option for it lists, and may hold commas. Either the whole
    write becomes visible at once, or an error is raised and the table is as it was.
    """
    wanted, save_mode = WriteOptions.of(options), _save_mode(mode)
    wanted = replace(wanted, static_partitions=(*wanted.static_partitions, *replaced_partitions))
    storage = _writable_storage(path)
    exists = storage.exists(PROPERTIES)
    if exists and save_mode == IGNORE:
        return CommitResult(path, wanted.operation or UPSERT)
    if exists and save_mode == ERROR_IF_EXISTS:
        raise InvalidInput(
            f"There is a table at {path} already, and the save mode is errorifexists. Use mode('append') to add "
            "to it or mode('overwrite') to replace it. Nothing was written.",
            condition="TABLE_EXISTS",
            path=path,
        )
    if exists and save_mode == OVERWRITE and wanted.operation not in _OVERWRITES:
        return replace_table(storage, lambda fresh: _write_new(df, fresh, wanted, path))
    if exists:
        return _write_existing(df, storage, wanted, path)
    return _write_new(df, storage, wanted, path)


def delete_partitions(path: str, partitions: tuple[str, ...], *, lock_wait: float = 60.0) -> CommitResult:
    """Drop partitions: every file group of the paths (`*` matches any text) is replaced by nothing."""
    state = TableState.load(_writable_storage(path))
    chosen = [p for p in state.view.partitions() if any(fnmatchcase(p, pattern) for pattern in partitions)]
    return _replace_only(path, chosen, DELETE_PARTITION, lock_wait)


def truncate_table(path: str, *, lock_wait: float = 60.0) -> CommitResult:
    """Take every row out of the table; its files stay until they are cleaned."""
    state = TableState.load(_writable_storage(path))
    return _replace_only(path, list(state.view.partitions()), DELETE_PARTITION, lock_wait)


def _writable_storage(path: str) -> Storage:
    storage = open_storage(path)
    require_atomic_create(storage)
    return storage


def _save_mode(mode: str) -> str:
    try:
        return _MODES[mode.lower()]
    except KeyError:
        raise InvalidOption(
            f"The save mode is {mode!r}; expected one of {', '.join(_MODES)}.",
            condition="INVALID_SAVE_MODE",
            mode=mode,
            allowed=list(_MODES),
        ) from None


def _write_new(df: DataFrame, storage: Storage, wanted: WriteOptions, path: str) -> CommitResult:
    config = TableConfig.from_properties(table_properties(wanted.table))
    plan = _plan(df, config, None, wanted, key_sample=None)
    create_table(storage, wanted.table)
    try:
        return _run(plan, storage, path, lambda state: _plan_for(df, state, wanted, path))
    except BaseException:
        _drop_if_unused(storage)
        raise


def _drop_if_unused(storage: Storage) -> None:
    """Take back a table that this write made, unless somebody else has begun to use it."""
    if not TableState.load(storage).timeline.ascending_instants:
        storage.delete(".hoodie", recursive=True)
        if not list(storage.list()):
            storage.delete("", recursive=True)


def _write_existing(df: DataFrame, storage: Storage, wanted: WriteOptions, path: str) -> CommitResult:
    state = TableState.load(storage)
    check_writable(state)
    if wanted.operation == DELETE_PARTITION:
        _check_settings(wanted.table, state.config, path)
        return delete_partitions(path, wanted.partitions_to_delete, lock_wait=wanted.lock_wait_seconds)
    plan = _plan_for(df, state, wanted, path)
    return _run(plan, storage, path, lambda found: _plan_for(df, found, wanted, path))


def _plan_for(df: DataFrame, state: TableState, wanted: WriteOptions, path: str) -> _Plan:
    _check_settings(wanted.table, state.config, path)
    return _plan(df, state.config, state.schema, wanted, key_sample=state.key_sample)


def _check_settings(options: TableOptions, config: TableConfig, path: str) -> None:
    """Refuse options that contradict what the table was made with."""
    pairs: dict[str, tuple[Any, Any]] = {
        "hoodie.table.name": (options.name or None, config.name),
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


def _shown(value: Any) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True)
class _Plan:
    """A write that has been checked: everything that can be refused without touching the table was."""

    df: DataFrame
    operation: str
    options: WriteOptions
    rule: KeyGenerator
    table_schema: pa.Schema
    ordering: tuple[str, ...]
    table_name: str

    @property
    def action(self) -> Action:
        return Action.REPLACECOMMIT if self.operation in _OVERWRITES else Action.COMMIT


def _plan(
    df: DataFrame,
    config: TableConfig,
    schema: pa.Schema | None,
    wanted: WriteOptions,
    *,
    key_sample: str | None,
) -> _Plan:
    rule = key_generator(config, key_sample=key_sample, time_settings=wanted.table.time_settings)
    operation = _operation(wanted, rule)
    require_columns(df, rule.key_fields, "record key")
    require_columns(df, rule.partition_fields, "partition path")
    ordering = () if operation == DELETE else _ordering(df, config)
    incoming = incoming_schema(arrow_schema(df.schema.json()))
    missing_allowed = wanted.null_for_missing or operation == DELETE
    table_schema = reconcile(incoming, schema, null_for_missing=missing_allowed)
    table_schema = schema if operation == DELETE and schema is not None else table_schema
    avro_schema_text(table_schema, config.name)
    return _Plan(df, operation, wanted, rule, table_schema, ordering, config.name)


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


def _ordering(df: DataFrame, config: TableConfig) -> tuple[str, ...]:
    if config.merge.mode != "EVENT_TIME_ORDERING":
        return ()
    require_columns(df, config.ordering_fields, "ordering")
    known = {name.lower(): name for name in df.columns}
    nested = [name for name in config.ordering_fields if name.lower() not in known]
    if nested:
        raise InvalidOption(
            f"The ordering column {nested[0]!r} is a field of a struct; drawstring orders by columns only. "
            "Nothing was written.",
            condition="NESTED_ORDERING_FIELD",
            column=nested[0],
        )
    return config.ordering_fields


def _run(plan: _Plan, storage: Storage, path: str, plan_again: Callable[[TableState], _Plan]) -> CommitResult:
    """Run a checked write; what another writer changed since the check, such as the schema, is taken in."""
    transaction = Transaction.begin(
        storage,
        operation=plan.operation.upper(),
        action=plan.action,
        lock_wait=plan.options.lock_wait_seconds,
    )
    try:
        plan = plan_again(transaction.state)
        metadata = _Job(plan, transaction).run()
    except BaseException as error:
        transaction.abort()
        raise jobs.as_drawstring_error(error) or error from None
    return _finish(transaction, metadata, path, plan.operation)


def _finish(transaction: Transaction, metadata: CommitMetadata, path: str, operation: str) -> CommitResult:
    outcome = transaction.commit(metadata)
    if not isinstance(outcome, Committed):
        raise outcome.error
    stats = metadata.stats
    return CommitResult(
        path,
        operation,
        outcome.instant.requested_time,
        outcome.instant.completion_time,
        inserted=sum(stat.num_inserts for stat in stats),
        updated=sum(stat.num_updates for stat in stats),
        deleted=sum(stat.num_deletes for stat in stats),
        files_written=len(stats),
        groups_replaced=sum(len(ids) for ids in metadata.replaced.values()),
    )


def _replace_only(path: str, partitions: list[str], operation: str, lock_wait: float) -> CommitResult:
    storage = open_storage(path)
    transaction = Transaction.begin(
        storage, operation=operation.upper(), action=Action.REPLACECOMMIT, lock_wait=lock_wait
    )
    try:
        state = transaction.state
        schema = avro_schema_text(state.schema, state.config.name) if state.schema else ""
        replaced = _groups(state, partitions)
        metadata = CommitMetadata(operation.upper(), (), replaced, {"schema": schema} if schema else {})
    except BaseException:
        transaction.abort()
        raise
    return _finish(transaction, metadata, path, operation)


def _groups(state: TableState, partitions: list[str]) -> dict[str, tuple[str, ...]]:
    found = {p: tuple(s.group.file_id for s in state.view.slices(p)) for p in partitions}
    return {path: ids for path, ids in found.items() if ids}


def avro_schema_text(schema: pa.Schema, table_name: str) -> str:
    """Return a table's schema, without meta columns, as commits record it."""
    record, namespace = avro_names(table_name)
    avro = avro_schema_from_arrow(schema, name=record, namespace=namespace)
    return json.dumps(avro, separators=(",", ":"))


class _Job:
    """The Spark side of one transaction."""

    def __init__(self, plan: _Plan, transaction: Transaction) -> None:
        self._plan, self._state = plan, transaction.state
        self._context = WriteContext(
            storage=transaction.state.storage,
            requested_time=transaction.requested_time,
            schema=prepend_meta_columns(plan.table_schema),
            files=plan.options.files,
            key_fields=plan.rule.key_fields,
        )

    def run(self) -> CommitMetadata:
        operation = self._plan.operation
        by_bucket = operation in (UPSERT, INSERT, DELETE)
        stats = self._write_by_bucket() if by_bucket else self._write_as_rows_come()
        written = {stat.partition_path for stat in stats}
        warn_of_twins(self._state.storage.root, written, self._state.view.partitions())
        return CommitMetadata(
            operation=operation.upper(),
            stats=tuple(stats),
            replaced=self._replaced(stats) if operation in _OVERWRITES else {},
            extra={"schema": avro_schema_text(self._plan.table_schema, self._plan.table_name)},
        )

    def _own_columns(self) -> DataFrame:
        df = self._plan.df
        names = {name.lower(): name for name in self._plan.table_schema.names}
        return df.select([column(df, n).alias(names[n.lower()]) for n in df.columns if n.lower() in names])

    def _keyed(self) -> DataFrame:
        """The rows with key and path in front, their own columns as they are."""
        df, rule = self._plan.df, self._plan.rule
        names = {name.lower(): name for name in self._plan.table_schema.names}
        own = [column(df, name).alias(names[name.lower()]) for name in df.columns if name.lower() in names]
        if self._plan.operation == DELETE:
            own = []
        key = key_column(df, rule, self._context.requested_time).alias(RECORD_KEY)
        return df.select(key, path_column(df, rule).alias(PARTITION_PATH), *self._deleted(df), *own)

    def _deleted(self, df: DataFrame) -> list[Any]:
        if self._plan.operation not in (UPSERT, INSERT, DELETE):
            return []
        if self._plan.operation == DELETE:
            return [F.lit(True).alias(DELETED)]
        is_flag = isinstance(data_type(df.schema, _IS_DELETED), T.BooleanType)
        flag = F.coalesce(column(df, _IS_DELETED), F.lit(False)) if is_flag else F.lit(False)
        # Numbered before any shuffle: of equal rows of one key the last in the input's own order wins.
        return [flag.alias(DELETED), F.monotonically_increasing_id().alias(POSITION)]

    def _write_as_rows_come(self) -> list[WriteStat]:
        options = self._plan.options
        # Unless Spark itself needs keys and paths, tasks make them: that saves handing two texts per row over.
        incoming = arrow_schema(self._own_columns().schema.json())
        as_is = options.sort_mode == "NONE" and not options.combine_before_insert
        if as_is and is_derivable(self._plan.rule, incoming):
            context = replace(self._context, rule=self._plan.rule)
            return jobs.write_as_they_come(self._own_columns(), context)
        rows = self._keyed()
        if options.combine_before_insert:
            rows = jobs.latest_of_each_key(rows, self._plan.ordering)
        return jobs.write_as_they_come(self._arranged(rows), self._context)

    def _arranged(self, rows: DataFrame) -> DataFrame:
        mode, count = self._plan.options.sort_mode, self._plan.options.bulk_insert_parallelism
        if mode == "GLOBAL_SORT":
            ranged = (PARTITION_PATH, RECORD_KEY)
            rows = rows.repartitionByRange(count, *ranged) if count else rows.repartitionByRange(*ranged)
            return rows.sortWithinPartitions(*ranged)
        if mode.startswith("PARTITION_PATH_REPARTITION"):
            rows = rows.repartition(count, PARTITION_PATH) if count else rows.repartition(PARTITION_PATH)
        if mode == "PARTITION_SORT" and count:
            rows = rows.coalesce(count)
        if mode in ("PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"):
            rows = rows.sortWithinPartitions(PARTITION_PATH, RECORD_KEY)
        return rows

    def _write_by_bucket(self) -> list[WriteStat]:
        # The rows are evaluated once, and what later steps decide holds for the very same rows.
        with _persisted(self._keyed()) as keyed:
            inserts = jobs.survey(keyed, self._plan.rule.key_fields)
            slices = self._state.slices(check_partition_path(path) for path in inserts)
            if self._plan.operation == INSERT or not slices:
                rules = self._merge_rules(by_key=self._plan.operation != INSERT)
                return self._write_located(jobs.locate(keyed, None), jobs.Counts({}, inserts), slices, rules)
            with _persisted(jobs.find_keys(keyed, self._state.storage, slices)) as known:
                located = jobs.locate(keyed, known)
                return self._write_located(
                    located, jobs.count_rows(located), slices, self._merge_rules(by_key=True)
                )

    def _write_located(
        self, located: DataFrame, counts: jobs.Counts, slices: tuple[FileSlice, ...], rules: MergeRules
    ) -> list[WriteStat]:
        if self._plan.operation == DELETE:
            located, counts = located.filter(F.col(jobs.FILE_ID).isNotNull()), replace(counts, inserts={})
        files = self._plan.options.files
        assignment = assign(
            counts.updates,
            counts.inserts,
            slices,
            files=files,
            record_size=self._state.average_record_size(at_least=max(1, files.small_file_limit)),
        )
        if not assignment.buckets:
            return []
        return jobs.write_buckets(located, self._context, assignment, rules)

    def _merge_rules(self, *, by_key: bool) -> MergeRules:
        options = self._plan.options
        combine = options.combine_before_upsert if by_key else options.combine_before_insert
        return MergeRules(by_key, combine, self._plan.ordering)

    def _replaced(self, stats: list[WriteStat]) -> dict[str, tuple[str, ...]]:
        operation, options = self._plan.operation, self._plan.options
        whole = operation == INSERT_OVERWRITE_TABLE or options.overwrite_mode == "STATIC"
        if whole and not options.static_partitions:
            return _groups(self._state, list(self._state.view.partitions()))
        touched = {stat.partition_path for stat in stats} | set(options.static_partitions)
        return _groups(self._state, sorted(touched))


@contextmanager
def _persisted(df: DataFrame) -> Iterator[DataFrame]:
    kept = df.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()
