"""The changelog of a range of commits: each row that was inserted, deleted or updated, with its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Instant
from drawstring.model.read_task import ChangeCommit, ChangeSpec, ReadTask
from drawstring.planning.changes.groups import net_groups, touched_groups
from drawstring.planning.changes.past import PastSlices
from drawstring.planning.incremental import writes_in_range
from drawstring.planning.scan import Scan
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.planning.tasks_by_partition import TasksByPartition
from drawstring.planning.times import moment_of
from drawstring.schema.row_kinds import change_columns, is_taken_back


@dataclass(frozen=True)
class Changelog(TasksByPartition):
    """What the commits after `begin`, up to and including `end`, changed.

    1. Rows have the table's columns and `_rowkind`: `+I` inserted, `-U` and `+U` before and after an update, `-D`
       deleted. Rows that were taken back carry the meta columns they had. With `commits` they name the commit, a net
       change the last one of the range that touched its file group.
    2. Commits follow each other by completion time (version 6: instant time); of one commit, what it took back comes
       before what it put there.
    3. Only file groups that the commits touched are read, as they were before and after. Table services change
       nothing. A replaced file group is deleted row by row.
    4. With `net`, each row appears with its outcome over the whole range only: as it was before and is after, where
       that is another version. Rows that log compaction gave other commit times are among them.

    A scan of it reads every step, in any order. Invariant: `state` does not skip files by statistics, which tell of
    rows after a commit only.
    """

    state: TableState
    read: ReadFunction
    begin: str
    end: str | None = None
    net: bool = False
    schema_at: str | None = None
    """The instant whose schema rows have, where it is not the newest one."""
    skips_cleaned: bool = False
    """Whether file groups whose files are gone are left out and counted, instead of being an error."""
    commits: bool = False
    """Whether rows name their commit, in the columns of Spark's CHANGES clause, instead of `_rowkind`."""
    only: frozenset[FileGroupId] | None = None
    """The file groups whose changes are wanted, if not all; not with `net`, which compares some together."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's newest schema and the columns that tell of changes."""
        return changelog_schema(self._schemas.table_schema, commits=self.commits)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Read everything into one table.

        Args:
            columns: the columns to read, all by default; `_rowkind` may be among them.
        """
        batches = self.to_batches(columns)
        return pa.Table.from_batches(batches, schema=self._requested(columns))

    def to_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read, one commit at a time; net changes one file group at a time."""
        requested = self._requested(columns)
        needed = list(dict.fromkeys([*requested.names, change_columns(commits=self.commits)[0].name]))
        for table in self._outcomes(needed) if self.net else self._steps(needed):
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
        kind = ("net" if self.net else "changes") + ("-by-commit" if self.commits else "")
        return f"{self.state.timeline.fingerprint}:{kind}:{self.begin}..{self.end or ''}"

    def _made(self) -> Iterator[ReadTask]:
        return self._net_tasks() if self.net else self._step_tasks()

    def _step_tasks(self) -> Iterator[ReadTask]:
        """Each file group before and after each commit."""
        for instant, metadata in self.writes:
            for group in self.groups_of(metadata):
                task = self.or_skipped(partial(self.comparison, group, instant))
                if task is not None:
                    yield task

    def groups_of(self, metadata: CommitMetadata) -> list[FileGroupId]:
        """The file groups of a commit whose changes are wanted, in a fixed order."""
        return [group for group in touched_groups(metadata) if self.only is None or group in self.only]

    def or_skipped(self, made: Callable[[], ReadTask | None]) -> ReadTask | None:
        """Make a task; None if its files were cleaned and the read allows that, which is counted."""
        try:
            return made()
        except InvalidInput as error:
            if not self.skips_cleaned or error.condition != "CHANGES_WERE_CLEANED":
                raise
            self.cleaned.append(error.fields["path"])
            return None

    @cached_property
    def cleaned(self) -> list[str]:
        """Files that were gone when tasks were made."""
        return []

    def _net_tasks(self) -> Iterator[ReadTask]:
        """The file groups before and after the whole range, those together among which rows may have moved."""
        if not self.writes:
            return
        begin, end = self.begin, _time(self.writes[-1][0])
        for groups in net_groups(writes_in_range(self.state, self.begin, self.end), self.writes):
            task = self.or_skipped(partial(self._net_task, groups, begin, end))
            if task is not None:
                yield task

    def _net_task(self, groups: Sequence[FileGroupId], begin: str, end: str) -> ReadTask | None:
        before = [self._past.task(group, until=begin, inclusive=True) for group in groups]
        after = [self._past.task(group, until=end, inclusive=True) for group in groups]
        touched = (i for i, metadata in reversed(self.writes) if set(touched_groups(metadata)) & set(groups))
        return _comparison(before, after, self._named(next(touched)))

    def _outcomes(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for partition in self.partitions():
            for task in self.tasks(partition):
                yield self._rows(task, columns)

    def _steps(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        for instant, metadata in self.writes:
            found = [self.group_changes(group, instant, columns) for group in self.groups_of(metadata)]
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
        return TableSchemas(self.state, self.schema_at)

    @cached_property
    def _past(self) -> PastSlices:
        first = self.writes[0][0].requested_time if self.writes else None
        start = self.state.timeline.start
        # Rows from before the first commit may lie in files of archived ones.
        is_first = first is not None and (start is None or first <= start)
        reaches_back = is_first or (first is not None and self.state.reaches_archive(self.begin))
        instants = tuple(self.state.reader.instants())
        return PastSlices(self.state, instants, self._schemas, with_archive=reaches_back)

    def group_changes(
        self, group: FileGroupId, instant: Instant, columns: Sequence[str]
    ) -> tuple[pa.Table, pa.Table]:
        """The rows that a commit removed from one group and those that it added; the kind is among the columns."""
        rows = self._rows(self.comparison(group, instant), columns)
        taken = is_taken_back(rows, commits=self.commits)
        return rows.filter(taken), rows.filter(pc.invert(taken))

    def comparison(self, group: FileGroupId, instant: Instant) -> ReadTask | None:
        """The comparison of a group before and after a commit; None where it has rows on neither side."""
        before = self._past.task(group, until=_time(instant), inclusive=False)
        task = _comparison([before], [self.after(group, instant)], self._named(instant))
        return task and replace(task, keep_commit_times=frozenset({instant.requested_time}))

    def _named(self, instant: Instant) -> ChangeCommit | None:
        return commit_of(_time(instant), self.state) if self.commits else None

    def after(self, group: FileGroupId, instant: Instant) -> ReadTask | None:
        """Reads a group as a commit left it."""
        return self._past.task(group, until=_time(instant), inclusive=True)

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


def changelog_schema(rows: pa.Schema, *, commits: bool) -> pa.Schema:
    """The columns of a table, and those that tell of changes; raises `InvalidInput` where it has one of these."""
    told = change_columns(commits=commits)
    taken = [field.name for field in told if field.name in rows.names]
    if taken:
        raise InvalidInput(
            f"The table has a column {taken[0]!r}, a name that changelogs use for a column of their own. Rename the "
            "column, or read incrementally.",
            condition="CHANGELOG_COLUMN_TAKEN",
            column=taken[0],
        )
    return pa.schema([*rows, *told])


def commit_of(time: str, state: TableState) -> ChangeCommit:
    """The commit of a time as changes name it."""
    moment = moment_of(time, timezone=state.config.timezone)
    return ChangeCommit(time, round(moment.timestamp() * 1_000_000) if moment else None)


def _comparison(
    before: Sequence[ReadTask | None], after: Sequence[ReadTask | None], commit: ChangeCommit | None = None
) -> ReadTask | None:
    old = tuple(task for task in before if task is not None)
    new = tuple(task for task in after if task is not None)
    shown = next(iter((*new, *old)), None)
    return shown and ReadTask(shown.slice, change=ChangeSpec(old, new, commit=commit))


def _time(instant: Instant) -> str:
    return instant.completion_time or instant.requested_time
