"""The changelog of a range of commits: each row that came, went or was replaced, with its kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.instant import Instant
from drawstring.model.read_task import ChangeSpec, ReadTask
from drawstring.planning.changes.net import net_changes
from drawstring.planning.changes.past import PastSlices
from drawstring.planning.incremental import writes_in_range
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.schema.row_kinds import BEFORE, DELETE, ROW_KIND

_IDENTITY = (PARTITION_PATH, RECORD_KEY)


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

    A scan of it reads every step, in any order. Invariant: `state` does not skip files by statistics, which tell of
    rows after a commit only.
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
        needed = list(dict.fromkeys([*requested.names, *_IDENTITY, ROW_KIND]))
        tables = self._steps(needed)
        if self.net:
            found = list(tables)
            tables = iter([net_changes(pa.concat_tables(found), _IDENTITY)] if found else [])
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

    def scan(self) -> Scan:
        """Start a scan of every step, to be refined."""
        return Scan(self)

    @property
    def reads_newest(self) -> bool:
        """Changes are read from slices of the past."""
        return False

    @property
    def snapshot_id(self) -> str:
        """Names what is seen."""
        return f"{self.state.timeline.fingerprint}:changes:{self.begin}..{self.end or ''}"

    def partitions(self) -> Sequence[str]:
        """Partitions that the commits touched."""
        return sorted(self._tasks)

    def slices(self, partition: str) -> list[FileSlice]:
        """The newer slice of each comparison."""
        return [task.slice for task in self.tasks(partition)]

    def tasks(self, partition: str) -> list[ReadTask]:
        """The comparisons of one partition."""
        return self._tasks.get(partition, [])

    @cached_property
    def _tasks(self) -> dict[str, list[ReadTask]]:
        found: dict[str, list[ReadTask]] = defaultdict(list)
        for instant, metadata in self.writes:
            for group in touched_groups(metadata):
                task = self._task(group, instant)
                if task is not None:
                    found[group.partition_path].append(task)
        return dict(found)

    def _steps(self, columns: Sequence[str]) -> Iterator[pa.Table]:
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
        """What a commit took back of one group, and what it put there; `_rowkind` is among the columns."""
        rows = self._rows(self._task(group, instant), columns)
        taken = pc.is_in(rows.column(ROW_KIND), value_set=pa.array([BEFORE, DELETE]))
        return rows.filter(taken), rows.filter(pc.invert(taken))

    def _task(self, group: FileGroupId, instant: Instant) -> ReadTask | None:
        """The comparison of a group before and after a commit; None where it has rows on neither side."""
        before = self._past.task(group, until=_time(instant), inclusive=False)
        after = self._past.task(group, until=_time(instant), inclusive=True)
        newer = after or before
        if newer is None:
            return None
        commit = frozenset({instant.requested_time})
        return ReadTask(newer.slice, keep_commit_times=commit, change=ChangeSpec(before, after))

    def rows_after(self, group: FileGroupId, instant: Instant, columns: Sequence[str]) -> pa.Table:
        """The rows of a group as a commit left them."""
        return self._rows(self._past.task(group, until=_time(instant), inclusive=True), columns)

    def _rows(self, task: ReadTask | None, columns: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.schema.field(name) for name in columns])
        if task is None:
            return schema.empty_table()
        batches = self.read(
            task,
            storage=self.state.storage,
            table_schema=self.schema if task.change is not None else self._schemas.table_schema,
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
