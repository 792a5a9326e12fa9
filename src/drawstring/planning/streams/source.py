"""A table as a stream: where reading begins, what the next batch takes, and how far behind a query is."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import pyarrow as pa

from drawstring.config.read_options import ReadOptions
from drawstring.config.stream_options import (
    EARLIEST,
    FAIL_ON_DATA_LOSS,
    KEEP_SCHEMA,
    LATEST,
    SNAPSHOT_FIRST,
    START_OFFSET,
    StreamLimits,
    StreamOptions,
)
from drawstring.errors import IncompatibleSchema, InvalidInput
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant
from drawstring.planning.changes.past import PastSlices
from drawstring.planning.incremental import writes_in_range
from drawstring.planning.snapshot import ReadFunction
from drawstring.planning.streams.admission import (
    Amount,
    StreamCommit,
    count_that_fits,
    next_offset,
    remaining,
    total,
    waits,
)
from drawstring.planning.streams.batch import Part, SnapshotRead, StreamBatch
from drawstring.planning.streams.content import StreamContent
from drawstring.planning.streams.offsets import BEFORE_ALL, StreamOffset
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.planning.times import instant_time, moment_of
from drawstring.timeline.commit_metadata import parse_record

Pin = Callable[[str | None], TableState]
"""Looks at the table: as it is now, or as it was when nothing later than a time had completed."""


@dataclass(frozen=True)
class Backlog:
    """What a query has not delivered yet; `seconds` since the oldest of it was committed."""

    commits: int = 0
    amount: Amount = field(default_factory=Amount)
    seconds: float = 0.0


@dataclass(frozen=True)
class TableStream:
    """One table read as a stream.

    1. Commits come in the order of their completion times, in version 6 of their instant times; there a write that is
       still pending holds back what was begun after it, which would otherwise be passed over.
    2. A batch returns the rows that its commits wrote, in their newest version among these commits: the incremental
       read of the range; or, where the read options say so, what they changed. A commit that is larger than a limit
       is divided by file groups.
    3. Table services and rollbacks yield no rows; deleted partitions do in streams of changes.
    4. `schema` is that of the table when the query began, and of all batches; `schema_at` the newest write then.
    """

    pin: Pin
    read: ReadFunction
    options: StreamOptions
    read_options: ReadOptions
    schema: pa.Schema
    schema_at: str | None = None
    _seen: list[TableState] = field(default_factory=list, repr=False, compare=False)
    """What the table was when it was last looked at: one look is enough for a batch and its figures."""
    _told: dict[Instant, StreamCommit] = field(default_factory=dict, repr=False, compare=False)
    """What the commits say that were not delivered when the table was last looked at: completed ones do not change."""
    _snapshots: dict[str, list[tuple[FileGroupId, Amount]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def begin(
        cls,
        pin: Pin,
        read: ReadFunction,
        options: StreamOptions,
        read_options: ReadOptions,
        state: TableState,
    ) -> TableStream:
        """Begin with the schema that the table has in `state`."""
        writes = state.timeline.completed_writes
        schema = TableSchemas(state, None).table_schema
        return cls(pin, read, options, read_options, schema, writes[-1].requested_time if writes else None)

    @cached_property
    def content(self) -> StreamContent:
        """What batches hold."""
        return StreamContent(
            self.read_options, self.schema, self.schema_at, skips_lost=not self.options.fail_on_data_loss
        )

    def initial_offset(self) -> StreamOffset:
        """Where a query without a checkpoint begins."""
        start = self.options.start
        if start.lower() == EARLIEST:
            return StreamOffset()
        state = self.pin(None)
        if start.lower() in (LATEST, SNAPSHOT_FIRST):
            newest = _newest(state)
            is_snapshot = start.lower() == SNAPSHOT_FIRST and newest != BEFORE_ALL
            return StreamOffset(snapshot=newest) if is_snapshot else StreamOffset(newest)
        zone = state.config.timezone
        return StreamOffset(instant_time(start, timezone=zone, whole_second=True, called=START_OFFSET.key))

    def next_offset(
        self,
        start: StreamOffset,
        *,
        limited: bool = True,
        waited_ms: float | None = None,
        until: StreamOffset | None = None,
    ) -> StreamOffset:
        """Where the next batch ends; `start` when there is none.

        Args:
            start: where it begins.
            limited: whether the upper limits count.
            waited_ms: how long ago the last batch was; None where a batch is not put off for want of rows.
            until: the offset beyond which nothing is taken.
        """
        limits = self.options.limits if limited else self.options.limits.unlimited
        state = self._look()
        if start.snapshot is not None:
            return self._next_of_snapshot(start, limits)
        commits = self._commits(state, start)
        if until is not None:
            commits = [commit for commit in commits if commit.time <= until.time]
        available = total(commit.amount for commit in remaining(commits, start))
        if waited_ms is not None and waits(available, limits, waited_ms=waited_ms):
            return start
        return next_offset(commits, start, limits)

    def newest_offset(self, *, look: bool = True) -> StreamOffset:
        """Everything that is there now: where a query ends that takes what is available.

        Args:
            look: whether to look at the table again, or to go by what was last seen of it.
        """
        state = self._seen[0] if self._seen and not look else self.pin(None)
        return StreamOffset(_newest(state))

    def batch(self, start: StreamOffset, end: StreamOffset) -> StreamBatch:
        """The rows between two offsets.

        Raises:
            InvalidInput: a cleaner took files of it (`STREAM_DATA_LOST`), or the table has forgotten the commits of
                `start` (`STREAM_INSTANTS_LOST`).
            IncompatibleSchema: the table has got other columns since the query began (`STREAM_SCHEMA_CHANGED`).
        """
        state = self._last_seen(end)
        self._check_schema(state)
        if start.snapshot is not None:
            return self._batch_of_snapshot(state, start, end)
        commits = self._commits(state, start)
        self._check_known(state, start, commits)
        parts = tuple(self._parts(state, commits, start, end))
        batch = StreamBatch(state, self.read, parts, self.content.schema)
        self._check_present(batch, commits, start)
        return batch

    def backlog(self, position: StreamOffset, *, look: bool = True) -> Backlog:
        """How far behind the table a query is that has delivered everything up to `position`.

        Args:
            position: what was delivered.
            look: whether to look at the table again, or to go by what the last batch saw of it.
        """
        state = self._look() if look else self._last_seen(position)
        if position.snapshot is not None:
            amount = total(self._amounts_of_snapshot(position)[position.done :])
            return Backlog(1, amount, _seconds_since(position.snapshot, state.config.timezone))
        left = [c for c in remaining(self._commits(state, position), position) if c.groups]
        seconds = _seconds_since(left[0].time, state.config.timezone) if left else 0.0
        return Backlog(len(left), total(c.amount for c in left), seconds)

    def _look(self) -> TableState:
        self._seen[:] = [self.pin(None)]
        return self._seen[0]

    def _last_seen(self, end: StreamOffset) -> TableState:
        """The state of the table that was seen last, if it reaches `end`, else a new one."""
        if not self._seen or _newest(self._seen[0]) < end.time:
            return self._look()
        known = end.commit is None or end.commit in self._seen[0].timeline.by_requested_time
        return self._seen[0] if known else self._look()

    def _commits(self, state: TableState, start: StreamOffset) -> list[StreamCommit]:
        """The commits after an offset, from the timeline alone."""
        held_back_from = _first_pending_write(state)
        found = {
            instant: self._told.get(instant) or _commit_of(instant, metadata, self.content)
            for instant, metadata in writes_in_range(state, start.time)
            if held_back_from is None or instant.requested_time < held_back_from
        }
        self._told.clear()
        self._told.update(found)
        return sorted(found.values(), key=lambda commit: commit.time)

    def _parts(
        self, state: TableState, commits: Sequence[StreamCommit], start: StreamOffset, end: StreamOffset
    ) -> list[Part]:
        by_time = {commit.requested_time: commit for commit in commits}
        begun, divided = by_time.get(start.commit or ""), by_time.get(end.commit or "")
        if divided is not None and divided == begun:
            return [self._piece(state, divided, _time_before(divided, commits, start), start.done, end.done)]
        parts, whole_from = [], start.time
        if begun is not None:
            parts.append(self._piece(state, begun, _time_before(begun, commits, start), start.done, None))
            whole_from = begun.time
        parts += self._whole(state, commits, whole_from, end.time)
        if divided is not None:
            parts.append(self._piece(state, divided, _time_before(divided, commits, start), 0, end.done))
        return parts

    def _piece(
        self, state: TableState, commit: StreamCommit, begin: str, first: int, last: int | None
    ) -> Part:
        """Some file groups of a commit.

        Where files of it are gone and the newest ones are read, for every piece from then on, the first piece takes the
        file groups that services moved its rows to. So none reads a row again.
        """
        groups = [group for group, _ in commit.groups]
        taken = frozenset(groups[first:last])
        found = self.content.range(state, self.read, begin, commit.time, taken)
        if self.content.reads_newest_for_lost and not first:
            return Part(found, without=frozenset(groups) - taken)
        return Part(found, taken)

    def _whole(self, state: TableState, commits: Sequence[StreamCommit], begin: str, end: str) -> list[Part]:
        """The range of whole commits; services before its first write have nothing of it to rewrite."""
        inside = [commit for commit in commits if begin < commit.time <= end]
        first = next((index for index, commit in enumerate(inside) if commit.groups), None)
        if first is None:
            return []
        after = inside[first - 1].time if first else begin
        return [Part(self.content.range(state, self.read, after, end))]

    def _next_of_snapshot(self, start: StreamOffset, limits: StreamLimits) -> StreamOffset:
        left = self._amounts_of_snapshot(start)[start.done :]
        count = count_that_fits(left, limits)
        if count < len(left):
            return replace(start, done=start.done + count)
        return StreamOffset(start.snapshot or BEFORE_ALL)

    def _amounts_of_snapshot(self, offset: StreamOffset) -> list[Amount]:
        return [amount for _, amount in self._pieces_of_snapshot(offset.snapshot or BEFORE_ALL)]

    def _pieces_of_snapshot(self, time: str) -> list[tuple[FileGroupId, Amount]]:
        """The file groups of a snapshot, always in the same order: offsets count them."""
        if time not in self._snapshots:
            state = self._seen[0] if self._seen else self._look()
            rows = _rows_by_path(state)
            found = PastSlices.at(state, TableSchemas(state, self.schema_at), time).slices(until=time)
            self._snapshots[time] = [
                (each.group, Amount(len(each.files), each.size, sum(rows[file.path] for file in each.files)))
                for each in found
            ]
        return self._snapshots[time]

    def _batch_of_snapshot(self, state: TableState, start: StreamOffset, end: StreamOffset) -> StreamBatch:
        time = start.snapshot or BEFORE_ALL
        last = end.done if end.snapshot is not None else None
        groups = tuple(group for group, _ in self._pieces_of_snapshot(time)[start.done : last])
        past = PastSlices.at(state, TableSchemas(state, self.schema_at), time)
        shown = partial(self.content.of_snapshot, state=state, instant=time)
        lenient = not self.options.fail_on_data_loss
        commits = self._commits(state, StreamOffset(time))
        parts = [Part(SnapshotRead(past, time, groups, shown, skips_lost=lenient))]
        if end.snapshot is None:
            parts += self._parts(state, commits, StreamOffset(time), end)
        batch = StreamBatch(state, self.read, tuple(parts), self.content.schema)
        self._check_present(batch, commits, start)
        return batch

    def _check_schema(self, state: TableState) -> None:
        if self.options.keep_schema:
            return
        before, now = self.schema, TableSchemas(state, None).table_schema
        if before.equals(now):
            return
        added = [name for name in now.names if name not in before.names]
        gone = [name for name in before.names if name not in now.names]
        changed = [n for n in before.names if n in now.names and before.field(n).type != now.field(n).type]
        raise IncompatibleSchema(
            f"The schema of {state.storage.root} has changed since this query began (added: {added}, removed: "
            f"{gone}, of another type: {changed}). Start the query again: it continues from its checkpoint with the "
            f"new columns, or with the old ones if {KEEP_SCHEMA.key}=true.",
            condition="STREAM_SCHEMA_CHANGED",
            path=state.storage.root,
            added=added,
            removed=gone,
            changed=changed,
        )

    def _check_known(self, state: TableState, start: StreamOffset, commits: Sequence[StreamCommit]) -> None:
        """Miss the commits that the checkpoint tells of: what came after them may be gone with them."""
        if start.time == BEFORE_ALL or start == _given_start(self.options, state) or not commits:
            return
        if not self.options.fail_on_data_loss or not _all_are_after(state, start.time):
            return
        raise InvalidInput(
            f"The checkpoint says that this query has read {state.storage.root} up to {start.time}, but the table's "
            f"timeline and archive begin with {commits[0].time}. {_behind(commits)} The table was created again, or "
            f"its archive was deleted. Start with a new checkpoint folder, or set {FAIL_ON_DATA_LOSS.key}=false to "
            "continue with the commits that are there.",
            condition="STREAM_INSTANTS_LOST",
            path=state.storage.root,
            offset=start.time,
            first=commits[0].time,
        )

    def _check_present(
        self, batch: StreamBatch, commits: Sequence[StreamCommit], start: StreamOffset
    ) -> None:
        try:
            _ = batch.lost_files
        except InvalidInput as error:
            if error.condition not in ("RANGE_WAS_CLEANED", "CHANGES_WERE_CLEANED"):
                raise
            path = error.fields["path"]
            raise InvalidInput(
                f"A cleaner took {path} from {batch.state.storage.root} before this query had read it. "
                f"{_behind(commits)} Let the cleaner keep more commits (hoodie.clean.commits.retained) and raise the "
                f"query's limits, or set {FAIL_ON_DATA_LOSS.key}=false: it then reads what the newest files hold of "
                "these commits, and rows that were deleted since are missing.",
                condition="STREAM_DATA_LOST",
                path=path,
                offset=start.time,
                commits_behind=sum(bool(commit.groups) for commit in commits),
            ) from error


def _behind(commits: Sequence[StreamCommit]) -> str:
    count = sum(bool(commit.groups) for commit in commits)
    if not commits:
        return "No commit has come since."
    return f"The query is {count} commits behind, the oldest of them of {commits[0].time}."


def _time_before(commit: StreamCommit, commits: Sequence[StreamCommit], start: StreamOffset) -> str:
    """Where a range begins that holds nothing but a commit; services before it have nothing of it to rewrite."""
    return max((each.time for each in commits if each.time < commit.time), default=start.time)


def _commit_of(instant: Instant, metadata: CommitMetadata, content: StreamContent) -> StreamCommit:
    time = instant.completion_time or instant.requested_time
    if metadata.operation in SERVICE_OPERATIONS:
        return StreamCommit(instant.requested_time, time)
    amounts: dict[FileGroupId, Amount] = {group: Amount() for group in content.groups(metadata)}
    for stat in metadata.stats:
        group = FileGroupId(stat.partition_path, stat.file_id)
        amounts[group] = amounts[group] + Amount(1, stat.file_size, _rows_of(stat))
    ordered = sorted(amounts.items(), key=lambda item: (item[0].partition_path, item[0].file_id))
    return StreamCommit(instant.requested_time, time, tuple(ordered))


def _rows_of(stat: WriteStat) -> int:
    """Rows that the commit itself wrote; a rewritten base file counts the others among its writes too."""
    changed = stat.num_inserts + stat.num_updates
    is_new = stat.prev_commit in ("", "null") and not stat.num_deletes
    return stat.num_writes if is_new and not changed else changed


def _rows_by_path(state: TableState) -> Mapping[str, int]:
    """How many rows commits say they wrote into each file; the file of a commit that is forgotten counts none."""
    rows: dict[str, int] = defaultdict(int)
    for _, metadata in writes_in_range(state, BEFORE_ALL):
        for stat in metadata.stats:
            is_log = stat.name.startswith(".")
            rows[stat.path] = stat.num_writes + (rows[stat.path] if is_log else 0)
    return rows


def _newest(state: TableState) -> str:
    """When the newest commit that may be delivered completed."""
    held_back_from = _first_pending_write(state)
    writes = state.timeline.completed_writes
    ready = (i for i in writes if held_back_from is None or i.requested_time < held_back_from)
    newest = max((i.completion_time or i.requested_time for i in ready), default=BEFORE_ALL)
    # One that outlasted the others may have been archived before them.
    return max(newest, state.history.newest_completion)


def _given_start(options: StreamOptions, state: TableState) -> StreamOffset | None:
    if options.start.lower() in (EARLIEST, LATEST, SNAPSHOT_FIRST):
        return None
    zone = state.config.timezone
    return StreamOffset(
        instant_time(options.start, timezone=zone, whole_second=True, called=START_OFFSET.key)
    )


def _all_are_after(state: TableState, time: str) -> bool:
    """Whether the table knows no write that completed by then; the archive is read only if it may tell."""

    def is_after(instant: Instant) -> bool:
        return (instant.completion_time or instant.requested_time) > time

    if not all(map(is_after, state.timeline.completed_writes)):
        return False
    return all(is_after(write.instant) for write in state.history.writes)


def _first_pending_write(state: TableState) -> str | None:
    """Version 6 orders commits by when they began, so one that has not ended yet may still come before others."""
    if state.config.layout >= 2:
        return None
    writes = (i for i in state.timeline.pending if i.action in WRITE_ACTIONS)
    return next((i.requested_time for i in writes if not _is_clustering(state, i)), None)


def _is_clustering(state: TableState, instant: Instant) -> bool:
    if instant.action is not Action.REPLACECOMMIT:
        return False
    name = f"{instant.requested_time}.{Action.REPLACECOMMIT.value}.requested"
    path = f"{state.config.timeline_directory}/{name}"
    try:
        plan: Mapping[str, object] = parse_record(state.storage.read(path), source=path) or {}
    except FileNotFoundError:
        return False
    return bool(plan.get("clusteringPlan")) or plan.get("operationType") == "CLUSTER"


def _seconds_since(time: str, timezone: str) -> float:
    moment = moment_of(time, timezone=timezone)
    return max(0.0, (dt.datetime.now(dt.timezone.utc) - moment).total_seconds()) if moment else 0.0
