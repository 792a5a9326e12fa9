"""A whole write: save mode, plan, tasks, commit, and retries after conflicts.

The pipeline decides what is written where; an executor moves the rows. Spark is one executor, this process the other.
"""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from drawstring.config.write_options import DELETE, DELETE_PARTITION, INSERT, UPSERT, WriteOptions
from drawstring.errors import CommitConflict, CorruptTable, DrawstringError, InvalidInput, InvalidOption
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Action
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.storage.table_properties import is_table
from drawstring.write.cleaned_since import conflict_of_missing_file
from drawstring.write.compaction import compact_slices
from drawstring.write.conflicts import rolled_back
from drawstring.write.create import create_table
from drawstring.write.executor import Executor
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
from drawstring.write.row_write import RowWrite, groups_in
from drawstring.write.schema_rule import schema_rule
from drawstring.write.services.after_write import services_after_write
from drawstring.write.services.compacting import RunTasks
from drawstring.write.services.results import ServiceOutcome
from drawstring.write.sink_batches import is_written, recorded_with
from drawstring.write.steps import Steps, step, track
from drawstring.write.support import check_writable, require_atomic_create
from drawstring.write.table_facts import load_state, table_schema
from drawstring.write.transaction import Committed, Transaction
from drawstring.write.write_set import WriteSet

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
    exists = is_table(storage)
    if exists and chosen == IGNORE:
        return CommitResult(storage.root, wanted.operation or UPSERT)
    if exists and chosen == ERROR_IF_EXISTS:
        raise _table_exists(storage.root)
    if exists and chosen == OVERWRITE and wanted.operation not in OVERWRITES:
        result = replace_table(
            storage, lambda fresh: _write_new(rows, fresh, wanted), options=wanted.concurrency
        )
        return replace(result, path=storage.root)
    if exists:
        return _write_existing(rows, storage, wanted)
    return _write_first(rows, storage, wanted, chosen)


def _in_order(
    result: CommitResult, storage: Storage, options: WriteOptions, run_tasks: RunTasks
) -> CommitResult:
    """Run the services that are due after a write; if one fails, the write is committed all the same."""
    if result.instant is None:
        return result
    outcomes = services_after_write(storage, options.services, files=options.files, run_tasks=run_tasks)
    return replace(result, services=outcomes)


def _told(result: CommitResult, steps: Steps) -> CommitResult:
    """Return the result with the time of each step, and log it."""
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
    """Create the table and write to it; if another job creates it at the same moment, the save mode decides."""
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
        # An empty list names no partition; only a missing one stands for those of the rows.
        patterns = _paths_of_rows(rows, state, wanted) if named is None else named
        return _delete_partitions(storage, patterns, wanted)
    plan = plan_write(rows.schema, state, wanted)
    return _tried(lambda: _attempt(rows, storage, plan), plan.operation, wanted, rows.can_repeat)


def _paths_of_rows(rows: Executor, state: TableState, wanted: WriteOptions) -> tuple[re.Pattern[str], ...]:
    """The partitions of the rows, which `delete_partition` drops if no option names others, as in Hudi."""
    operation = DELETE if state.config.record_key_fields else INSERT
    plan = plan_write(rows.schema, state, replace(wanted, operation=operation, null_for_missing=True))
    rows.prepare(plan, "")
    return tuple(re.compile(re.escape(path)) for path in rows.count_rows())


def _tried(
    attempt: Callable[[], CommitResult], operation: str, options: WriteOptions, can_repeat: Callable[[], bool]
) -> CommitResult:
    """Run a write until it does not conflict with another one, or its retries are used up."""
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
    """With many writers conflicts are normal and a retry resolves them: a write logs only the first at INFO."""
    level = logging.INFO if tries == 1 else logging.DEBUG
    logger.log(level, "%s Trying again in %.2f s (try %d).", error.message, pause, tries + 1)


def _is_retried(error: CommitConflict, operation: str) -> bool:
    """Overwrites are not retried: their rows may have been computed from the rows that they replace."""
    return error.condition in _RETRIED and operation not in OVERWRITES


def _attempt(rows: Executor, storage: Storage, plan: WritePlan) -> CommitResult:
    """Run a checked write, on the table as other writers have changed it since the check."""
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
        # The rows had every column when they were checked: others have added those that they lack now.
        lenient = replace(plan.options, null_for_missing=True)
        plan = plan_write(rows.schema, transaction.state, lenient)
        metadata, write_set = RowWrite(rows, plan, transaction).run()
    except BaseException as error:
        conflict = _conflict_behind(error, transaction)
        transaction.abort()
        if conflict is not None:
            raise conflict from error
        raise
    return _finish(transaction, metadata, write_set, plan.operation, plan.options)


def _conflict_behind(error: BaseException, transaction: Transaction) -> CommitConflict | None:
    """Return the conflict that explains why a write failed; errors of storage, or of Spark, do not tell.

    Either the files that it reads were cleaned since it began, or its table was overwritten, and its instant with it.
    """
    refused = isinstance(error, DrawstringError) and not isinstance(error, CorruptTable)
    if refused or not isinstance(error, Exception):
        return None
    with suppress(DrawstringError, OSError):
        now = load_state(transaction.state.storage)
        if not transaction.is_pending(now):
            return rolled_back(now.storage, transaction.requested_time)
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


def delete_partitions(
    storage: Storage, partitions: tuple[str, ...], *, options: WriteOptions | None = None
) -> CommitResult:
    """Drop partitions: every file group of the paths is replaced by nothing. In a path only `*` is a wildcard."""
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
    """A pattern in which only `*` is special: paths may have brackets and question marks."""
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
        metadata, write_set = _dropped(transaction.state, patterns, wanted)
    except BaseException:
        transaction.abort()
        raise
    return _finish(transaction, metadata, write_set, DELETE_PARTITION, wanted)


def _dropped(
    state: TableState, patterns: Sequence[re.Pattern[str]], wanted: WriteOptions
) -> tuple[CommitMetadata, WriteSet]:
    """What the commit says, and what the write touches, when the partitions of some patterns are dropped."""
    found = state.view(None).partitions()
    chosen = [path for path in found if any(pattern.fullmatch(path) for pattern in patterns)]
    schema = table_schema(state)
    text = avro_schema_text(schema, state.config.name) if schema else ""
    replaced = groups_in(state, chosen)
    extra = {**recorded_with(wanted), **({"schema": text} if text else {})}
    write_set = WriteSet(
        groups=frozenset(FileGroupId(path, file_id) for path, ids in replaced.items() for file_id in ids),
        partitions=frozenset(chosen),
        schema_at_start=text,
        schema_written=text,
        sink_batch=wanted.sink_batch,
        patterns=tuple(patterns),
    )
    return CommitMetadata(DELETE_PARTITION.upper(), (), replaced, extra), write_set
