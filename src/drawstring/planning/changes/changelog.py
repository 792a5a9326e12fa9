"""The changelog of a range of commits: each row that came, went or was replaced, with its kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Instant
from drawstring.model.read_task import ReadTask
from drawstring.planning.changes.compare import ROW_KIND, changed_rows, net_changes
from drawstring.planning.changes.past import PastSlices
from drawstring.planning.incremental import writes_in_range
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY

_COMPARED = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH)


@dataclass(frozen=True)
class Changelog:
    """What the commits after `begin`, up to and including `end`, changed.

    1. Rows have the table's columns and `_rowkind`: `+I` inserted, `-U` and `+U` before and after an update, `-D`
       deleted. Rows that were taken back carry the meta columns they had.
    2. Commits follow each other by completion time (version 6: instant time); of one commit, what it took back comes
       before what it put there.
    3. Only file groups that the commits touched are read, as they were before and after. Table services change
       nothing. A replaced file group is deleted row by row.
    4. With `net`, each row appears with its outcome over the whole range only.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None
    net: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's newest schema and `_rowkind`."""
        return self._schemas.table_schema.append(pa.field(ROW_KIND, pa.string()))

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read everything into one table.

        Args:
            columns: the columns to read, all by default; `_rowkind` may be among them.
        """
        batches = self.to_batches(columns)
        return pa.Table.from_batches(batches, schema=self._requested(columns))

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read, one commit at a time; net changes are known at the end only."""
        requested = self._requested(columns)
        needed = [name for name in requested.names if name != ROW_KIND]
        needed = list(dict.fromkeys([*needed, *_COMPARED]))
        tables = self._changes(needed)
        if self.net:
            found = list(tables)
            tables = iter(
                [net_changes(pa.concat_tables(found), (PARTITION_PATH, RECORD_KEY))] if found else []
            )
        for table in tables:
            yield from table.select(requested.names).cast(requested).to_batches()

    def _requested(self, columns: Sequence[str] | None) -> pa.Schema:
        names = self.schema.names if columns is None else list(columns)
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            raise InvalidInput(
                f"No column {', '.join(map(repr, missing))} in the changes; their columns are "
                f"{', '.join(self.schema.names)}.",
                condition="UNKNOWN_COLUMN",
                columns=missing,
            )
        return pa.schema([self.schema.field(name) for name in names])

    def _changes(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for instant, metadata in self.writes:
            found = [self.group_changes(group, instant, columns) for group in touched_groups(metadata)]
            yield from (taken for taken, _ in found)
            yield from (added for _, added in found)

    @cached_property
    def writes(self) -> list[tuple[Instant, CommitMetadata]]:
        """The commits that may have changed rows, in order."""
        found = writes_in_range(self.state, self.begin, self.end)
        changing = [write for write in found if write[1].operation not in SERVICE_OPERATIONS]
        return sorted(changing, key=lambda write: _time(write[0]))

    @cached_property
    def _schemas(self) -> TableSchemas:
        return TableSchemas(self.state, None)

    @cached_property
    def _past(self) -> PastSlices:
        first = self.writes[0][0].requested_time if self.writes else None
        start = self.state.timeline.start
        # Rows from before the first commit may lie in files of archived ones.
        reaches_back = first is not None and (start is None or first <= start)
        instants = tuple(self.state.reader.instants())
        return PastSlices(self.state, instants, self._schemas, with_archive=reaches_back)

    def group_changes(
        self, group: FileGroupId, instant: Instant, columns: Sequence[str]
    ) -> tuple[pa.Table, pa.Table]:
        """What a commit took back of one group, and what it put there."""
        before = self._past.task(group, until=_time(instant), inclusive=False)
        after = self._past.task(group, until=_time(instant), inclusive=True)
        return changed_rows(self._rows(before, columns), self._rows(after, columns))

    def rows_after(self, group: FileGroupId, instant: Instant, columns: Sequence[str]) -> pa.Table:
        """The rows of a group as a commit left them."""
        return self._rows(self._past.task(group, until=_time(instant), inclusive=True), columns)

    def _rows(self, task: ReadTask | None, columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([self._schemas.table_schema.field(name) for name in columns])
        if task is None:
            return schema.empty_table()
        batches = self.read(
            task,
            storage=self.state.storage,
            table_schema=self._schemas.table_schema,
            columns=columns,
            predicate=None,
        )
        return pa.Table.from_batches(batches, schema=schema)


def touched_groups(metadata: CommitMetadata) -> list[FileGroupId]:
    """The file groups that a commit wrote to or replaced, in a fixed order."""
    written = {FileGroupId(stat.partition_path, stat.file_id) for stat in metadata.stats}
    replaced = {FileGroupId(partition, i) for partition, ids in metadata.replaced.items() for i in ids}
    return sorted(written | replaced, key=lambda group: (group.partition_path, group.file_id))


def _time(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time
