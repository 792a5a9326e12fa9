"""Tables: the public entry for reading without Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import pyarrow as pa

from drawstring.config.read_options import MERGE_TYPE, QUERY_TYPE, READ_OPTIMIZED, SNAPSHOT, ReadOptions
from drawstring.config.support import check_readable
from drawstring.config.table_config import TableConfig
from drawstring.errors import InvalidOption, UnsupportedTable
from drawstring.inspection import PlanReport, TableReport
from drawstring.inspection.build import plan_report, table_report
from drawstring.planning.incremental import IncrementalRead
from drawstring.planning.snapshot import Snapshot
from drawstring.planning.table_state import TableState, pin
from drawstring.planning.times import instant_time
from drawstring.reading import read_task
from drawstring.storage import Storage, open_storage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from drawstring.timeline.timeline import Timeline

Moment = str | dt.date | dt.datetime
EARLIEST = "earliest"
"""Begins an incremental read before the first commit, archived ones too."""


def open_table(
    uri: str | PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    session: Mapping[str, Any] | None = None,
) -> Table:
    """Open a Hudi table for reading.

    Args:
        uri: the table's base path: a plain path, `file:`, or a URI of a store that pyarrow knows.
        options: `hoodie.*` read options, and `fs.s3a.*` settings of the store.
        session: options that count where `options` says nothing, under whichever of its names.

    Raises:
        TableNotFound: there is no Hudi table.
        UnsupportedTable: it uses something that cannot be read exactly; the condition says what.
        CorruptTable: its properties cannot be read.
    """
    given = {**(session or {}), **(options or {})}
    storage = open_storage(fspath(uri), {key: str(value) for key, value in given.items()})
    config = read_table_config(storage)
    read_options = ReadOptions.of(options, session=session, table=config.properties)
    if read_options.merge_settings:
        config = config.with_properties(read_options.merge_settings)
    check_readable(config, path=storage.root, merges=read_options.query_type != READ_OPTIMIZED)
    _check_merge_type(config, read_options, storage.root)
    return Table(storage, config, read_options)


def _check_merge_type(config: TableConfig, options: ReadOptions, path: str) -> None:
    merges = config.is_merge_on_read and options.query_type != READ_OPTIMIZED
    if merges and options.merge_type != MERGE_TYPE.default:
        raise InvalidOption(
            f"Cannot read {path} with {MERGE_TYPE.key}={options.merge_type}: drawstring always merges logs with "
            "base files. Remove the option, read read_optimized, or read with Apache Hudi.",
            condition="READ_OPTION_NOT_SUPPORTED",
            key=MERGE_TYPE.key,
            value=options.merge_type,
        )


@dataclass(frozen=True)
class Table:
    """A Hudi table. The handle holds settings only: each snapshot looks at the timeline anew."""

    storage: Storage
    config: TableConfig
    options: ReadOptions = field(default_factory=ReadOptions)

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
        """The newest schema, meta columns first."""
        return self.snapshot().schema

    def state(self) -> TableState:
        """Pin the table as it is now."""
        return pin(self.storage, self.config, self.options)

    def snapshot(self, as_of: Moment | None = None, *, query_type: str = SNAPSHOT) -> Snapshot:
        """Pin the table as it is now, or as it was.

        Args:
            as_of: None, an instant of the timeline (a savepoint's too), a date or a time; text in any of
                Hudi's formats.
            query_type: `snapshot`, or `read_optimized` for base files without their logs.
        """
        kind = QUERY_TYPE.parse_value(query_type)
        if kind == "incremental":
            raise InvalidOption(
                "A snapshot is not incremental; call Table.incremental(begin, end).",
                condition="INVALID_OPTION_VALUE",
                key=QUERY_TYPE.key,
                value=query_type,
            )
        check_readable(self.config, path=self.path, merges=kind != READ_OPTIMIZED)
        zone = self.config.timezone
        instant = None if as_of is None else instant_time(as_of, timezone=zone, whole_second=True)
        return Snapshot(self.state(), read_task, instant, kind)

    def incremental(self, begin: Moment, end: Moment | None = None) -> IncrementalRead:
        """Rows committed after `begin`, up to and including `end` (by default the newest commit).

        `begin` may be "earliest". A bound given to the second covers it: its commits are not after `begin`.
        Bounds are completion times from table version 8 on and instant times in version 6, as in Hudi.
        """
        if not self.config.populate_meta_fields:
            raise UnsupportedTable(
                f"Cannot read {self.path} incrementally: hoodie.populate.meta.fields is false, so rows do not say "
                "which commit wrote them. Read snapshots instead.",
                condition="INCREMENTAL_WITHOUT_META_FIELDS",
                operation="incremental",
                path=self.path,
            )
        if self.options.incremental_format == "cdc":
            raise UnsupportedTable(
                f"Cannot read the change data of {self.path}: drawstring returns the latest state of changed rows. "
                "Leave hoodie.datasource.query.incremental.format out.",
                condition="CDC_NOT_SUPPORTED",
                operation="incremental",
                path=self.path,
            )
        check_readable(self.config, path=self.path)
        zone = self.config.timezone
        is_open = isinstance(begin, str) and begin.strip().lower() == EARLIEST
        lower = instant_time("000" if is_open else begin, timezone=zone, whole_second=True)
        upper = None if end is None else instant_time(end, timezone=zone, whole_second=True)
        return IncrementalRead(self.state(), read_task, lower, upper, self.options)

    def inspect(self, as_of: Moment | None = None) -> TableReport:
        """Look at the table from above: timeline, file slices, schema history, indexes; as values."""
        snapshot = self.snapshot(as_of)
        partitions, view = snapshot.partitions(), snapshot.state.view(snapshot.max_instant)
        return table_report(
            TimelineReader(self.storage, self.config),
            timeline=snapshot.state.timeline,
            slices=(found for partition in partitions for found in snapshot.slices(partition)),
            older=(found for partition in partitions for found in view.older_slices(partition)),
            as_of=snapshot.max_instant,
        )

    def explain(
        self,
        *,
        where: str | None = None,
        select: Sequence[str] | None = None,
        as_of: Moment | None = None,
    ) -> PlanReport:
        """Tell what a scan would read, what it would skip, and why; nothing but metadata is touched."""
        snapshot = self.snapshot(as_of)
        scan = snapshot.scan().select(*select) if select else snapshot.scan()
        scan = scan.where(where) if where else scan
        latest = snapshot.latest_instant
        return plan_report(
            scan, path=self.path, where=where, instant=latest.requested_time if latest else None
        )
