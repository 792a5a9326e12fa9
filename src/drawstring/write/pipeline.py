"""A whole write: save mode, plan, tasks, commit, and tries again when another writer was first.

The pipeline decides; an executor moves the rows. Spark is one executor, this process the other.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from drawstring.config.index_options import BUCKET
from drawstring.config.write_options import (
    DELETE,
    DELETE_PARTITION,
    INSERT,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    WriteOptions,
)
from drawstring.errors import CommitConflict, CorruptTable, DrawstringError, InvalidInput, InvalidOption
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Action
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import PROPERTIES
from drawstring.write.assignment import Assignment, Layout, Way, assign, assign_buckets
from drawstring.write.base_files import WriteContext
from drawstring.write.bucket_index import bucket_places, bucket_rule, check_buckets
from drawstring.write.change_files import capture_mode
from drawstring.write.choose_index import look_up
from drawstring.write.cleaned_since import conflict_of_missing_file
from drawstring.write.compaction import compact_slices
from drawstring.write.create import create_table
from drawstring.write.executor import Counts, Executor
from drawstring.write.index import LookUp
from drawstring.write.key_generator import check_partition_path
from drawstring.write.merge_group import MergeRules
from drawstring.write.partition_names import warn_of_similar_paths
from drawstring.write.plan import (
    OVERWRITES,
    WritePlan,
    avro_schema_text,
    check_settings,
    plan_first_write,
    plan_write,
)
from drawstring.write.progress import showing
from drawstring.write.replace_table import drop_if_unused, replace_table
from drawstring.write.schema_rule import schema_rule
from drawstring.write.services.after_write import services_after_write
from drawstring.write.services.compacting import RunTasks
from drawstring.write.services.results import ServiceOutcome
from drawstring.write.sink_batches import is_written, recorded_with
from drawstring.write.steps import Steps, step, track
from drawstring.write.support import check_writable, refuse_buckets, refuse_skeletons, require_atomic_create
from drawstring.write.table_facts import average_record_size, load_state, table_schema, visible_slices
from drawstring.write.transaction import Committed, Transaction
from drawstring.write.write_set import WriteSet, appended_groups, existing_groups, groups_of

logger = logging.getLogger(__name__)
APPEND, OVERWRITE, IGNORE, ERROR_IF_EXISTS = "append", "overwrite", "ignore", "errorifexists"
_MODES = {
    "append": APPEND,
    "overwrite": OVERWRITE,
    "ignore": IGNORE,
    "errorifexists": ERROR_IF_EXISTS,
    "error": ERROR_IF_EXISTS,
    "default": ERROR_IF_EXISTS,
}
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 10.0
_RETRIED = frozenset(
    {"CONCURRENT_COMMIT", "CONCURRENT_INSERT", "PENDING_PLAN", "HISTORY_CHANGED", "ROLLED_BACK", "OVERTAKEN"}
    | {"SETTINGS_CHANGED", "INSTANT_TAKEN", "FILES_CLEANED"}
)


@dataclass(frozen=True)
class CommitResult:
    """What a write did. `instant` is None when there was nothing to do (mode `ignore`, a batch written before).

    - `seconds`: how long each step took, services after the write included.
    - `services`: what services after the write did, or failed with; a failure there undoes nothing.
    """

    path: str
    operation: str
    instant: str | None = None
    completion_time: str | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    files_written: int = 0
    groups_replaced: int = 0
    tries: int = 1
    bytes_written: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    services: tuple[ServiceOutcome, ...] = ()


def save_mode(mode: str) -> str:
    """Return one of Spark's save modes by any of its names; raises `InvalidOption` for others."""
    try:
        return _MODES[mode.lower()]
    except (KeyError, AttributeError):
        raise InvalidOption(
            f"The save mode is {mode!r}; expected one of {', '.join(_MODES)}.",
            condition="INVALID_SAVE_MODE",
            mode=mode,
            allowed=list(_MODES),
        ) from None


def write_rows(
    rows: Executor, storage: Storage, *, mode: str = ERROR_IF_EXISTS, options: WriteOptions
) -> CommitResult:
    """Write rows to the table below `storage`, creating it when there is none.

    Either the whole write becomes visible at once, or an error is raised and the table is as it was.
    """
    chosen = save_mode(mode)
    with showing(f"Writing {storage.root}", enabled=options.shows_progress), track() as steps:
        try:
            result = _write_by_mode(rows, storage, chosen, options)
            return _told(_in_order(result, storage, options, rows.compact), steps)
        finally:
            rows.close()


def _write_by_mode(rows: Executor, storage: Storage, chosen: str, wanted: WriteOptions) -> CommitResult:
    require_atomic_create(storage)
    exists = storage.exists(PROPERTIES)
    if exists and chosen == IGNORE:
        return CommitResult(storage.root, wanted.operation or UPSERT)
    if exists and chosen == ERROR_IF_EXISTS:
        raise _table_exists(storage.root)
    if exists and chosen == OVERWRITE and wanted.operation not in OVERWRITES:
        return replace_table(
            storage, lambda fresh: _write_new(rows, fresh, wanted), options=wanted.concurrency
        )
    if exists:
        return _write_existing(rows, storage, wanted)
    return _write_first(rows, storage, wanted, chosen)


def _in_order(
    result: CommitResult, storage: Storage, options: WriteOptions, run_tasks: RunTasks
) -> CommitResult:
    """Run the services that are due after a write; whatever they end in, the write stands."""
    if result.instant is None:
        return result
    outcomes = services_after_write(storage, options.services, files=options.files, run_tasks=run_tasks)
    return replace(result, services=outcomes)


def _told(result: CommitResult, steps: Steps) -> CommitResult:
    """Return the result with the time of each step, and tell the log."""
    told = replace(result, seconds=steps.seconds)
    if told.instant is not None:
        logger.info(
            "Committed %s of %s as %s (try %d): %d rows inserted, %d updated, %d deleted, %d files, %d bytes; %s",
            told.operation,
            told.path,
            told.instant,
            told.tries,
            told.inserted,
            told.updated,
            told.deleted,
            told.files_written,
            told.bytes_written,
            ", ".join(f"{name} {seconds:.3f} s" for name, seconds in told.seconds.items()),
        )
    return told


def _table_exists(path: str) -> InvalidInput:
    return InvalidInput(
        f"There is a table at {path} already, and the save mode is errorifexists. Use mode('append') to add "
        "to it or mode('overwrite') to replace it. Nothing was written.",
        condition="TABLE_EXISTS",
        path=path,
    )


def _write_first(rows: Executor, storage: Storage, wanted: WriteOptions, mode: str) -> CommitResult:
    """Make the table and write to it; where another job makes it at the same moment, go by the save mode."""
    try:
        return _write_new(rows, storage, wanted)
    except InvalidInput as error:
        if error.condition != "TABLE_EXISTS" or mode not in (APPEND, IGNORE):
            raise
    if mode == IGNORE:
        return CommitResult(storage.root, wanted.operation or UPSERT)
    return _write_existing(rows, storage, wanted)


def _write_new(rows: Executor, storage: Storage, wanted: WriteOptions) -> CommitResult:
    plan = plan_first_write(rows.schema, wanted)
    create_table(storage, wanted.table, concurrency=wanted.concurrency)
    try:
        return _tried(lambda: _attempt(rows, storage, plan), plan.operation, wanted, rows.can_repeat)
    except BaseException:
        drop_if_unused(storage, options=wanted.concurrency)
        raise


def _write_existing(rows: Executor, storage: Storage, wanted: WriteOptions) -> CommitResult:
    state = load_state(storage)
    check_writable(state)
    if wanted.operation == DELETE_PARTITION:
        check_settings(wanted.table, state.config, storage.root)
        named = wanted.partitions_to_delete
        # A list that came out empty names none; it does not ask for those of the rows.
        patterns = _paths_of_rows(rows, state, wanted) if named is None else named
        return _delete_partitions(storage, patterns, wanted)
    plan = plan_write(rows.schema, state, wanted)
    return _tried(lambda: _attempt(rows, storage, plan), plan.operation, wanted, rows.can_repeat)


def _paths_of_rows(rows: Executor, state: TableState, wanted: WriteOptions) -> tuple[re.Pattern[str], ...]:
    """The partitions that rows lie in, which `delete_partition` drops where no option names others, as in Hudi."""
    operation = DELETE if state.config.record_key_fields else INSERT
    plan = plan_write(rows.schema, state, replace(wanted, operation=operation, null_for_missing=True))
    rows.prepare(plan, "")
    return tuple(re.compile(re.escape(path)) for path in rows.count_rows())


def _tried(
    attempt: Callable[[], CommitResult], operation: str, options: WriteOptions, can_repeat: Callable[[], bool]
) -> CommitResult:
    """Run a write until no other writer is in its way, or its tries are used up."""
    tries = 0
    while True:
        tries += 1
        try:
            return replace(attempt(), tries=tries)
        except CommitConflict as error:
            last = tries > options.concurrency.conflict_retries
            if last or not _is_retried(error, operation) or not can_repeat():
                raise
            pause = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2 ** (tries - 1)) * random.uniform(
                0.2, 1.0
            )
            _tell_of_retry(error, tries, pause)
            time.sleep(pause)


def _tell_of_retry(error: CommitConflict, tries: int, pause: float) -> None:
    """Where many write they conflict all the time, and the next try mends it: one line of the log for each write."""
    level = logging.INFO if tries == 1 else logging.DEBUG
    logger.log(level, "%s Trying again in %.2f s (try %d).", error.message, pause, tries + 1)


def _is_retried(error: CommitConflict, operation: str) -> bool:
    """Overwrites are not: what they put in place of the old rows may have been computed from them."""
    return error.condition in _RETRIED and operation not in OVERWRITES


def _attempt(rows: Executor, storage: Storage, plan: WritePlan) -> CommitResult:
    """Run a checked write; what another writer changed since the check, such as the schema, is taken in."""
    with step("beginning"):
        transaction = Transaction.begin(
            storage,
            operation=plan.operation.upper(),
            action=plan.action,
            options=plan.options.concurrency,
            metadata_table=plan.options.metadata_table,
        )
    try:
        if is_written(transaction.state, plan.options.sink_batch):
            transaction.abort()
            return CommitResult(storage.root, plan.operation)
        # The rows had every column when they were checked: what they lack now, others added since.
        lenient = replace(plan.options, null_for_missing=True)
        plan = plan_write(rows.schema, transaction.state, lenient)
        metadata, write_set = _Write(rows, plan, transaction).run()
    except BaseException as error:
        conflict = _conflict_behind(error, transaction)
        transaction.abort()
        if conflict is not None:
            raise conflict from error
        raise
    return _finish(transaction, metadata, write_set, plan.operation, plan.options)


def _conflict_behind(error: BaseException, transaction: Transaction) -> CommitConflict | None:
    """Whether a write failed because files that it reads were cleaned since it began; Spark's errors do not say."""
    refused = isinstance(error, DrawstringError) and not isinstance(error, CorruptTable)
    if refused or not isinstance(error, Exception):
        return None
    with suppress(DrawstringError, OSError):
        now = load_state(transaction.state.storage)
        return conflict_of_missing_file(transaction.state, now, transaction.requested_time)
    return None


def _finish(
    transaction: Transaction,
    metadata: CommitMetadata,
    write_set: WriteSet,
    operation: str,
    options: WriteOptions,
) -> CommitResult:
    with step("committing"):
        outcome = transaction.commit(metadata, write_set, schema_rule=schema_rule(options.concurrency))
    if not isinstance(outcome, Committed):
        raise outcome.error
    stats = metadata.stats
    return CommitResult(
        transaction.state.storage.root,
        operation,
        outcome.instant.requested_time,
        outcome.instant.completion_time,
        inserted=sum(stat.num_inserts for stat in stats),
        updated=sum(stat.num_updates for stat in stats),
        deleted=sum(stat.num_deletes for stat in stats),
        files_written=len(stats),
        bytes_written=sum(stat.file_size for stat in stats),
        groups_replaced=sum(len(ids) for ids in metadata.replaced.values()),
    )


def _partial_insert(counts: Counts) -> InvalidInput:
    count = sum(counts.inserts.values())
    return InvalidInput(
        f"A partial update has {count} rows whose keys are not in the table, so that nothing tells their other "
        "columns. Take them out, or upsert them whole. Nothing was written.",
        condition="PARTIAL_UPDATE_OF_NEW_KEYS",
        rows=count,
    )


class _Write:
    """The rows of one transaction on their way to files."""

    def __init__(self, rows: Executor, plan: WritePlan, transaction: Transaction) -> None:
        self._rows, self._plan, self._state = rows, plan, transaction.state
        self._searched: frozenset[str] = frozenset()
        self._context = WriteContext(
            storage=transaction.state.storage,
            requested_time=transaction.requested_time,
            schema=prepend_meta_columns(plan.table_schema),
            files=plan.options.files,
            key_fields=plan.rule.key_fields,
            avro_schema=plan.log_schema,
            assigned_columns=plan.assigned_columns,
            change_capture=capture_mode(transaction.state.config),
        )

    def run(self) -> tuple[CommitMetadata, WriteSet]:
        """Write the files; return what the commit will say, and what the write touched."""
        operation = self._plan.operation
        with step("making keys"):
            self._rows.prepare(self._plan, self._context.requested_time)
        stats = self._write_by_group() if self._plan.goes_by_group else self._append()
        self._warn_of_similar_paths(stats)
        metadata = CommitMetadata(
            operation=operation.upper(),
            stats=tuple(stats),
            replaced=self._replaced(stats) if operation in OVERWRITES else {},
            extra={**recorded_with(self._plan.options), "schema": self._plan.avro_schema},
        )
        return metadata, self._write_set(metadata)

    def _write_set(self, metadata: CommitMetadata) -> WriteSet:
        overwrites = self._plan.operation in OVERWRITES
        partitions = (
            set(metadata.replaced) | {s.partition_path for s in metadata.stats} if overwrites else set()
        )
        index = self._plan.options.index
        return WriteSet(
            groups=existing_groups(metadata),
            partitions=frozenset(partitions),
            buckets=bucket_places(groups_of(metadata)) if index.kind == BUCKET else frozenset(),
            # A key has one bucket, in which readers merge what several writers say of it.
            checks_new_keys=self._plan.operation == UPSERT and not self._plan.is_non_blocking,
            keys_are_global=index.is_global,
            schema_at_start=self._plan.schema_at_start,
            schema_written=self._plan.avro_schema,
            appended=appended_groups(metadata),
            sink_batch=self._plan.options.sink_batch,
            non_blocking=self._plan.is_non_blocking,
            searched=self._searched,
        )

    def _append(self) -> list[WriteStat]:
        with step("writing files"):
            return self._rows.append(self._context)

    def _write_by_group(self) -> list[WriteStat]:
        by_key = self._plan.operation in (UPSERT, DELETE)
        rules = self._merge_rules(by_key=by_key)
        with step("counting rows"):
            paths = self._rows.count_rows()
        overwrites = self._plan.operation in OVERWRITES
        slices = visible_slices(self._state, () if overwrites else map(check_partition_path, paths))
        refuse_skeletons(slices)
        if by_key:
            everywhere = self._plan.options.index.is_global
            self._searched = frozenset(self._state.view(None).partitions() if everywhere else paths)
        if self._plan.options.index.kind == BUCKET:
            return self._write_buckets(slices, rules)
        refuse_buckets(slices, self._state.storage.root)
        with step("finding keys"):
            lookup = (
                look_up(self._state, self._plan, slices) if by_key else LookUp(self._state.storage, slices)
            )
            counts = self._rows.locate(lookup)
        if self._plan.operation == DELETE:
            counts = Counts(counts.updates, {})
        if self._plan.assigned_columns and counts.inserts:
            raise _partial_insert(counts)
        return self._write_counted(counts, lookup.slices, rules)

    def _write_buckets(self, slices: tuple[FileSlice, ...], rules: MergeRules) -> list[WriteStat]:
        rule = bucket_rule(self._plan.options.index, self._plan.rule.key_fields)
        check_buckets(slices, rule, self._state.storage.root)
        numbers = self._rows.count_buckets(rule)
        overwrites, deletes = self._plan.operation in OVERWRITES, self._plan.operation == DELETE
        # What takes the place of other files is base files, as Hudi does it.
        layout = Layout.COPY_ON_WRITE if overwrites else self._plan.layout
        assignment = assign_buckets(
            numbers,
            slices,
            rule,
            layout=layout,
            only_existing=deletes,
            shared=self._plan.options.concurrency.is_non_blocking and not overwrites,
            taken=self._state.visibility(None).replaced,
        )
        return self._written(assignment, rules)

    def _write_counted(
        self, counts: Counts, slices: tuple[FileSlice, ...], rules: MergeRules
    ) -> list[WriteStat]:
        files = self._plan.options.files
        assignment = assign(
            counts.updates,
            counts.inserts,
            slices,
            files=files,
            record_size=average_record_size(self._state, at_least=max(1, files.small_file_limit)),
            layout=self._plan.layout,
        )
        return self._written(assignment, rules)

    def _written(self, assignment: Assignment, rules: MergeRules) -> list[WriteStat]:
        if not assignment.buckets:
            return []
        with step("writing files", len(assignment.buckets)):
            return self._rows.write_groups(self._context, self._with_tasks(assignment, rules), rules)

    def _with_tasks(self, assignment: Assignment, rules: MergeRules) -> Assignment:
        """Tell how base files are read that are rewritten, where the files alone do not tell."""
        schemas = TableSchemas(self._state, None)
        if schemas.history is None and rules.merge is None:
            return assignment
        facts = TaskFacts(self._state, schemas)
        buckets = [
            replace(b, reads=facts.task(b.slice)) if b.way is Way.REWRITE and b.slice else b
            for b in assignment.buckets
        ]
        return replace(assignment, buckets=tuple(buckets))

    def _merge_rules(self, *, by_key: bool) -> MergeRules:
        options = self._plan.options
        combine = options.combine_before_upsert if by_key else options.combine_before_insert
        merge = self._plan.merge if self._plan.merge.partial_update_mode else None
        return MergeRules(by_key, combine, self._plan.ordering, merge)

    def _replaced(self, stats: list[WriteStat]) -> dict[str, tuple[str, ...]]:
        operation, options = self._plan.operation, self._plan.options
        whole = operation == INSERT_OVERWRITE_TABLE or options.overwrite_mode == "STATIC"
        touched = {stat.partition_path for stat in stats} | set(options.static_partitions)
        if whole and not options.static_partitions:
            touched = set(self._state.view(None).partitions())
        self._searched = frozenset(touched)
        return _groups(self._state, sorted(touched))

    def _warn_of_similar_paths(self, stats: list[WriteStat]) -> None:
        view = self._state.view(None)
        new = {stat.partition_path for stat in stats}
        if any(not view.slices(path) for path in new):
            warn_of_similar_paths(self._state.storage.root, new, view.partitions())


def delete_partitions(
    storage: Storage, partitions: tuple[str, ...], *, options: WriteOptions | None = None
) -> CommitResult:
    """Drop partitions: every file group of the paths is replaced by nothing; of a path `*` alone matches other text."""
    wanted = options or WriteOptions.of({})
    require_atomic_create(storage)
    with showing(f"Dropping partitions of {storage.root}", enabled=wanted.shows_progress), track() as steps:
        result = _delete_partitions(storage, partitions, wanted)
        return _told(_in_order(result, storage, wanted, compact_slices), steps)


def _delete_partitions(
    storage: Storage, partitions: tuple[str | re.Pattern[str], ...], wanted: WriteOptions
) -> CommitResult:
    patterns = [_pattern(path) if isinstance(path, str) else path for path in partitions]
    return _tried(lambda: _drop_partitions(storage, patterns, wanted), DELETE_PARTITION, wanted, lambda: True)


def _pattern(path: str) -> re.Pattern[str]:
    """What `*` is for any text in, and everything else for itself: paths may have brackets and question marks."""
    return re.compile(".*".join(map(re.escape, path.split("*"))), re.DOTALL)


def _drop_partitions(
    storage: Storage, patterns: Sequence[re.Pattern[str]], wanted: WriteOptions
) -> CommitResult:
    transaction = Transaction.begin(
        storage,
        operation=DELETE_PARTITION.upper(),
        action=Action.REPLACECOMMIT,
        options=wanted.concurrency,
        metadata_table=wanted.metadata_table,
    )
    try:
        if is_written(transaction.state, wanted.sink_batch):
            transaction.abort()
            return CommitResult(storage.root, DELETE_PARTITION)
        state = transaction.state
        found = state.view(None).partitions()
        chosen = [path for path in found if any(pattern.fullmatch(path) for pattern in patterns)]
        schema = table_schema(state)
        text = avro_schema_text(schema, state.config.name) if schema else ""
        replaced = _groups(state, chosen)
        extra = {**recorded_with(wanted), **({"schema": text} if text else {})}
        metadata = CommitMetadata(DELETE_PARTITION.upper(), (), replaced, extra)
        groups = {FileGroupId(path, file_id) for path, ids in replaced.items() for file_id in ids}
        write_set = WriteSet(
            frozenset(groups), frozenset(chosen), False, text, text, sink_batch=wanted.sink_batch
        )
    except BaseException:
        transaction.abort()
        raise
    return _finish(transaction, metadata, write_set, DELETE_PARTITION, wanted)


def _groups(state: TableState, partitions: list[str]) -> dict[str, tuple[str, ...]]:
    view = state.view(None)
    found = {path: tuple(s.group.file_id for s in view.slices(path)) for path in partitions}
    return {path: ids for path, ids in found.items() if ids}
