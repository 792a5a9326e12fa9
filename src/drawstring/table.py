"""Tables: the public API for reading and writing without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import pyarrow as pa

from drawstring.config.arguments import check_delete_marker, check_mapping, check_merge_type, path_text
from drawstring.config.misspelt import warn_of_misspelt_options
from drawstring.config.read_options import (
    AS_OF,
    BEGIN,
    END,
    INCREMENTAL,
    QUERY_TYPE,
    READ_OPTIMIZED,
    SNAPSHOT,
    ReadOptions,
)
from drawstring.config.stream_options import START_OFFSET, StreamOptions
from drawstring.config.support import check_readable
from drawstring.config.table_config import TableConfig
from drawstring.config.table_options import TableOptions
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.errors import InvalidInput, InvalidOption, UnsupportedTable
from drawstring.inspection import PlanReport, TableReport
from drawstring.inspection.build import plan_report, table_report
from drawstring.planning.changes.change_data import ChangeData
from drawstring.planning.changes.changelog import Changelog
from drawstring.planning.incremental import IncrementalRead
from drawstring.planning.scan import ScanSource
from drawstring.planning.snapshot import Snapshot, refuse_skeletons
from drawstring.planning.streams.source import TableStream
from drawstring.planning.table_state import TableState, pin
from drawstring.planning.times import instant_time
from drawstring.reading import read_task
from drawstring.storage import Storage, open_storage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline
from drawstring.write.arrow_input import as_rows, storable_schema
from drawstring.write.create import create_table as create_on_storage
from drawstring.write.create import table_properties
from drawstring.write.evolution import incoming_schema
from drawstring.write.in_process import ArrowRows
from drawstring.write.metadata_table.upkeep import drop_metadata_table, rebuild_metadata_table
from drawstring.write.non_blocking import check_non_blocking
from drawstring.write.pipeline import APPEND, CommitResult, delete_partitions, write_rows
from drawstring.write.plan import require_columns
from drawstring.write.progress import showing
from drawstring.write.rollback import rollback_dead, rollback_pending, writes_to_roll_back
from drawstring.write.services.archiving import archive, plan_of_archive
from drawstring.write.services.cleaning import clean, plan_of_clean
from drawstring.write.services.compacting import BASE_FILES, LOGS, compact, plan_of_compact
from drawstring.write.services.results import ArchiveResult, CleanResult, CompactResult

Moment = str | dt.date | dt.datetime
EARLIEST = "earliest"
"""Begins an incremental read before the first commit, archived ones too."""
BEFORE_ALL = "000"
"""Sorts before every instant."""


def open_table(
    uri: str | PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    session: Mapping[str, Any] | None = None,
) -> Table:
    """Open a Hudi table for reading.

    Args:
        uri: the table's base path: a plain path, a `file:` URI, or a URI of a store that pyarrow knows.
        options: `hoodie.*` read options, and `fs.s3a.*` settings of the store.
        session: weaker options, used for what `options` does not set under any of its names.

    Raises:
        TableNotFound: there is no Hudi table.
        UnsupportedTable: it uses a feature that cannot be read exactly; the condition names it.
        CorruptTable: its properties cannot be read.
    """
    check_mapping("options", options)
    check_mapping("session", session)
    warn_of_misspelt_options(options or ())
    given = {**(session or {}), **(options or {})}
    storage = open_storage(path_text(uri), {key: str(value) for key, value in given.items()})
    config = read_table_config(storage)
    read_options = ReadOptions.of(options, session=session, table=config.properties)
    if read_options.merge_settings:
        config = config.with_properties(read_options.merge_settings)
        check_delete_marker(config)
    check_readable(config, path=storage.root, merges=read_options.query_type != READ_OPTIMIZED)
    check_merge_type(config, read_options, storage.root)
    table = Table(storage, config, read_options)
    if config.was_bootstrapped:
        refuse_skeletons(table.state())
    return table


def create_table(
    uri: str | PathLike[str], schema: pa.Schema, *, options: Mapping[str, Any] | None = None
) -> Table:
    """Create an empty Hudi table and open it.

    Args:
        uri: the table's base path, on a file system that can create files atomically.
        schema: its columns, without Hudi's meta columns.
        options: `hoodie.*` settings: `hoodie.table.name`, record key, partition and ordering fields, …

    Raises:
        InvalidInput: there is a table already, or the schema lacks a column that the options name.
        IncompatibleSchema: the schema has no columns, or one of a type that a table cannot store.
        InvalidOption: settings are missing, or contradict each other.
    """
    check_mapping("options", options)
    if not isinstance(schema, pa.Schema):
        raise InvalidInput(
            f"The schema is a {type(schema).__name__}; expected a pyarrow.Schema.", condition="INVALID_SCHEMA"
        )
    storage = open_storage(path_text(uri), {key: str(value) for key, value in (options or {}).items()})
    write_options = WriteOptions.of(options)
    _check_fields(write_options.table, schema)
    check_non_blocking(TableConfig.from_properties(table_properties(write_options.table)), write_options)
    create_on_storage(
        storage,
        write_options.table,
        schema=incoming_schema(storable_schema(schema)),
        concurrency=write_options.concurrency,
    )
    return open_table(uri)


def _check_fields(options: TableOptions, schema: pa.Schema) -> None:
    """Refuse settings that name columns which the schema lacks: nobody could write to such a table."""
    require_columns(schema, options.record_key_fields or (), "record key")
    # The custom key generator's fields name their kinds.
    partitions = tuple(name.partition(":")[0] for name in options.partition_fields or ())
    require_columns(schema, partitions, "partition path")
    require_columns(schema, options.ordering_fields or (), "ordering")


@dataclass(frozen=True)
class Table:
    """A Hudi table. The handle holds settings only: each snapshot looks at the timeline anew, unless one is pinned."""

    storage: Storage
    config: TableConfig
    options: ReadOptions = field(default_factory=ReadOptions)
    pinned: Timeline | None = None

    @property
    def path(self) -> str:
        """The table's base path."""
        return self.storage.root

    @property
    def name(self) -> str:
        """The table's name."""
        return self.config.name

    @property
    def timeline(self) -> Timeline:
        """The active timeline as it is now."""
        return TimelineReader(self.storage, self.config).load()

    @property
    def schema(self) -> pa.Schema:
        """The newest schema, meta columns first; with `as.of.instant` among the options, that of then."""
        return self.snapshot(query_type=SNAPSHOT).schema

    def state(self) -> TableState:
        """Pin the table as it is now."""
        return pin(self.storage, self.config, self.options, timeline=self.pinned)

    def snapshot(self, as_of: Moment | None = None, *, query_type: str | None = None) -> Snapshot:
        """Pin the table as it is now, or as it was. What is not given here is taken from the table's options.

        Args:
            as_of: an instant of the timeline (a savepoint's too), a date or a time; text in any of Hudi's
                formats.
            query_type: `snapshot`, or `read_optimized` for base files without their logs.
        """
        kind = self.options.query_type if query_type is None else QUERY_TYPE.parse_value(query_type)
        if kind == INCREMENTAL:
            raise InvalidOption(
                f"{QUERY_TYPE.key} is incremental, and a snapshot is not; call Table.incremental(begin, end), or "
                "give query_type='snapshot'.",
                condition="INVALID_OPTION_VALUE",
                key=QUERY_TYPE.key,
                value=kind,
            )
        check_readable(self.config, path=self.path, merges=kind != READ_OPTIMIZED)
        moment = self.options.as_of if as_of is None else as_of
        return Snapshot(self.state(), read_task, self._instant(moment, AS_OF.key), kind)

    def _instant(self, moment: Moment | None, called: str) -> str | None:
        zone = self.config.timezone
        return (
            None if moment is None else instant_time(moment, timezone=zone, whole_second=True, called=called)
        )

    def incremental(self, begin: Moment | None = None, end: Moment | None = None) -> IncrementalRead:
        """Rows committed after `begin`, up to and including `end` (by default the newest commit).

        `begin` may be "earliest". A bound given to the second stands for its end: commits in it are not after `begin`.
        Bounds are completion times from table version 8 on and instant times in version 6, as in Hudi. What is
        not given here is taken from the table's options.
        """
        self._check_incremental("incremental")
        lower, upper = self._range(begin, end)
        return IncrementalRead(self.state(), read_task, lower, upper, self.options)

    def _check_incremental(self, operation: str) -> None:
        if not self.config.populate_meta_fields:
            raise UnsupportedTable(
                f"Cannot read {self.path} incrementally: hoodie.populate.meta.fields is false, so rows do not say "
                "which commit wrote them. Read snapshots instead.",
                condition="INCREMENTAL_WITHOUT_META_FIELDS",
                operation=operation,
                path=self.path,
            )
        check_readable(self.config, path=self.path)

    def _range(self, begin: Moment | None, end: Moment | None) -> tuple[str, str | None]:
        """Both bounds as instant times; what is not given is taken from the table's options."""
        lower = self._begin(self.options.begin if begin is None else begin)
        return lower, self._instant(self.options.end if end is None else end, END.key)

    def _begin(self, moment: Moment | None) -> str:
        if isinstance(moment, str) and moment.strip().lower() == EARLIEST:
            return BEFORE_ALL
        found = self._instant(moment, BEGIN.key)
        if found is None:
            raise InvalidOption(
                f"An incremental read needs a begin, here or as {BEGIN.key}: the instant after which changes are "
                f"returned ({EARLIEST!r} for all).",
                condition="BEGIN_INSTANT_MISSING",
                key=BEGIN.key,
            )
        return found

    def changes(
        self,
        begin: Moment | None = None,
        end: Moment | None = None,
        *,
        net: bool = False,
        commits: bool = False,
    ) -> Changelog:
        """The changes of commits after `begin`, up to and including `end`: rows with their kind (`_rowkind`).

        Args:
            begin: as in `incremental`.
            end: as in `incremental`.
            net: return only the net change of each row over the range, not every step.
            commits: name the commit of each row, in the columns of Spark's CHANGES clause, instead of `_rowkind`.

        Example:
            >>> table.changes(begin="2026-01-01", net=True).to_arrow()
        """
        self._check_incremental("changes")
        lower, upper = self._range(begin, end)
        bare = replace(self.state(), data_skipping=False)
        return Changelog(bare, read_task, lower, upper, net, commits=commits)

    def change_data(self, begin: Moment | None = None, end: Moment | None = None) -> ChangeData:
        """The change data that Hudi's CDC query returns: op, ts_ms, before and after (rows as JSON).

        Args:
            begin: as in `incremental`.
            end: as in `incremental`.

        Raises:
            UnsupportedTable: the table does not capture changes; `changes` works on any table.
        """
        self._check_incremental("change_data")
        self._check_captures_changes()
        lower, upper = self._range(begin, end)
        return ChangeData(replace(self.state(), data_skipping=False), read_task, lower, upper)

    def _check_captures_changes(self) -> None:
        if not self.config.captures_changes:
            raise UnsupportedTable(
                f"Cannot read the change data of {self.path}: the table does not capture changes "
                "(hoodie.table.cdc.enabled). Table.changes computes the changes of any table.",
                condition="CDC_NOT_ENABLED",
                operation="change_data",
                path=self.path,
            )

    def stream(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        session: Mapping[str, Any] | None = None,
        state: TableState | None = None,
    ) -> TableStream:
        """Read the table as a stream: batches of commits, from offsets that a caller keeps.

        Args:
            options: where to begin, limits, and what to do when files are gone (docs/options.md).
            session: options that count where `options` says nothing.
            state: the state of the table whose columns batches have; by default the table as it is now.
        """
        self._check_incremental("stream")
        if self.options.as_of is not None:
            raise InvalidOption(
                f"{AS_OF.key} and a stream exclude each other: a stream also reads what is committed later. "
                f"Remove it; {START_OFFSET.key} says where a stream begins.",
                condition="CONTRADICTING_OPTIONS",
                key=AS_OF.key,
                other=START_OFFSET.key,
            )
        if self.options.is_change_data:
            self._check_captures_changes()
        warn_of_misspelt_options(options or ())
        chosen = StreamOptions.of(options, session)
        now = self._pin_until(None) if state is None else state
        return TableStream.begin(self._pin_until, read_task, chosen, self.options, now)

    def _pin_until(self, completed_until: str | None) -> TableState:
        timeline = TimelineReader(self.storage, self.config).load(completed_until=completed_until)
        return pin(self.storage, self.config, self.options, timeline=timeline)

    def write(
        self, rows: Any, *, operation: str | None = None, options: Mapping[str, Any] | None = None
    ) -> CommitResult:
        """Write Arrow rows to the table, without Spark; returns what the commit did, in numbers.

        Args:
            rows: a pyarrow Table, RecordBatch or RecordBatchReader, or any object that exports an Arrow stream.
            operation: `upsert` (the default where the table has a record key), `insert`, `bulk_insert`,
                `delete` (rows need their keys only), `insert_overwrite`, `insert_overwrite_table`.
            options: `hoodie.*` write options.

        Raises:
            CommitConflict: another writer was first, also in the last retry that the options allow.
            InvalidInput: rows without key, or columns that do not fit.
            IncompatibleSchema: the rows' schema cannot be reconciled with the table's.
            UnsupportedTable: the table uses a feature that drawstring does not write.
        """
        check_mapping("options", options)
        named = {OPERATION.key: operation} if operation is not None else {}
        wanted = WriteOptions.of({**(options or {}), **named})
        return write_rows(ArrowRows(as_rows(rows)), self.storage, mode=APPEND, options=wanted)

    def delete_partitions(self, *paths: str, options: Mapping[str, Any] | None = None) -> CommitResult:
        """Drop partitions by path; `*` matches any text."""
        return delete_partitions(self.storage, paths, options=WriteOptions.of(options))

    def rollback(self, instant: str | None = None, *, options: Mapping[str, Any] | None = None) -> list[str]:
        """Roll back a pending write, or, without an instant, all whose writers are dead; returns their instants.

        A writer of drawstring that is still alive notices when it commits, and retries. `options` name the lock of the
        table's writers, if it is not the default, and say when a writer counts as dead.
        """
        chosen = WriteOptions.of(options).concurrency
        if instant is None:
            return rollback_dead(self.storage, options=chosen)
        rollback_pending(self.storage, instant, options=chosen)
        return [instant]

    def pending_rollbacks(
        self, instant: str | None = None, *, options: Mapping[str, Any] | None = None
    ) -> list[str]:
        """Return what `rollback` would roll back; nothing is changed."""
        return writes_to_roll_back(self.storage, instant, options=WriteOptions.of(options).concurrency)

    def clean(self, *, options: Mapping[str, Any] | None = None, dry_run: bool = False) -> CleanResult:
        """Delete file versions that the retention does not keep; returns what was deleted, or would be.

        Args:
            options: `hoodie.clean.*`: the policy, and how much is retained.
            dry_run: only return what would be deleted.
        """
        wanted = WriteOptions.of(options)
        if dry_run:
            return plan_of_clean(self.storage, wanted.services)
        with showing(f"Cleaning {self.path}", enabled=wanted.shows_progress):
            return clean(self.storage, wanted.services)

    def archive(self, *, options: Mapping[str, Any] | None = None, dry_run: bool = False) -> ArchiveResult:
        """Move old instants from the active timeline to the archive; returns those that were moved, or would be.

        Args:
            options: `hoodie.keep.*` and `hoodie.archive.*`: how many commits stay.
            dry_run: only return what would be moved.
        """
        wanted = WriteOptions.of(options)
        if dry_run:
            return plan_of_archive(self.storage, wanted.services)
        with showing(f"Archiving {self.path}", enabled=wanted.shows_progress):
            return archive(self.storage, wanted.services)

    def compact(
        self,
        *,
        schedule: bool = True,
        run: bool = True,
        only_if_due: bool = False,
        logs_only: bool = False,
        options: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> CompactResult:
        """Merge the log files of a merge-on-read table into new base files; no reader sees a difference.

        Args:
            schedule: make a new plan of all slices that have logs; if false, only pending plans are run.
            run: run plans, pending ones first; if false, the new plan is left for a later run.
            only_if_due: make a plan only if it is due by `hoodie.compact.inline.trigger.strategy`.
            logs_only: merge logs with one another, not into base files, where a group has
                `hoodie.log.compaction.blocks.threshold` log blocks or more.
            options: `hoodie.compact.*`, `hoodie.compaction.*` and `hoodie.log.compaction.*`.
            dry_run: only return what would be merged.
        """
        wanted, kind = WriteOptions.of(options), LOGS if logs_only else BASE_FILES
        if dry_run:
            return plan_of_compact(self.storage, wanted.services, only_if_due=only_if_due, kind=kind)
        with showing(f"Compacting {self.path}", enabled=wanted.shows_progress):
            return compact(
                self.storage,
                wanted.services,
                only_if_due=only_if_due,
                schedules=schedule,
                runs=run,
                files=wanted.files,
                kind=kind,
            )

    def rebuild_metadata(self, options: Mapping[str, Any] | None = None) -> tuple[str, ...]:
        """Rebuild a damaged metadata table from the table's files; returns its indexes.

        It gets the indexes that it had, as far as drawstring keeps them, and those that `options` ask for
        (`hoodie.metadata.…`).
        """
        wanted = WriteOptions.of(options)
        return rebuild_metadata_table(self.storage, wanted.metadata_table, options=wanted.concurrency)

    def drop_metadata(self, *, options: Mapping[str, Any] | None = None) -> bool:
        """Remove the metadata table as Hudi does; False if there is none. By default the next write makes it again."""
        return drop_metadata_table(self.storage, options=WriteOptions.of(options).concurrency)

    def asked(self) -> ScanSource:
        """The source of rows that the options ask for: a snapshot, an incremental read, or changes."""
        if self.options.changelog:
            return self.changes(
                self.options.begin or EARLIEST,
                net=self.options.net_changes,
                commits=self.options.changelog_commits,
            )
        if self.options.is_change_data:
            return self.change_data(self.options.begin or EARLIEST)
        return self.incremental() if self.options.query_type == INCREMENTAL else self.snapshot()

    def inspect(self, as_of: Moment | None = None) -> TableReport:
        """Report the table's timeline, file slices, schema history and indexes, as values.

        Damage is no error here: the report lists the errors that queries would raise, beside what can be read.
        """
        snapshot = self.snapshot(as_of, query_type=SNAPSHOT)
        return table_report(
            TimelineReader(self.storage, self.config),
            timeline=snapshot.state.timeline,
            slices=snapshot.all_slices(),
            older=snapshot.older_slices(),
            as_of=snapshot.max_instant,
            check=snapshot.partitions,
        )

    def explain(
        self,
        *,
        where: str | None = None,
        select: Sequence[str] | None = None,
        as_of: Moment | None = None,
        limit: int | None = None,
        order_by: str | None = None,
        aggregate: Sequence[str] = (),
    ) -> PlanReport:
        """Report what a scan would read, what it would skip, and why; only metadata is read.

        `order_by` is a column, or `"column DESC"`. With aggregates such as `"max(amount)"` the scan reads the
        slices for which metadata does not answer them, and notes say why.
        """
        snapshot = self.snapshot(
            as_of, query_type=None if self.options.query_type != INCREMENTAL else SNAPSHOT
        )
        if isinstance(select, str):
            raise InvalidInput(
                f"Selected is the text {select!r}; expected a list of column names: [{select!r}].",
                condition="UNKNOWN_COLUMN",
                columns=[select],
            )
        scan = snapshot.scan().select(*select) if select else snapshot.scan()
        scan = scan.where(where) if where else scan
        if order_by:
            column, _, direction = order_by.strip().partition(" ")
            scan = scan.order_by(column, descending=direction.strip().lower() == "desc")
        scan = scan if limit is None else scan.limit(limit)
        latest = snapshot.latest_instant
        instant = latest.requested_time if latest else None
        return plan_report(scan, path=self.path, where=where, instant=instant, aggregate=aggregate)
