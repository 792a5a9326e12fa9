"""A table pinned for Spark: one snapshot, its description, and scans of it as messages."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from drawstring.errors import DrawstringError, InvalidInput, InvalidOption
from drawstring.model.file_group import BaseFile, LogFile
from drawstring.model.read_task import ReadTask
from drawstring.planning.aggregates import Declined
from drawstring.planning.column_summaries import ColumnSummary, column_summaries
from drawstring.planning.partition_facts import PartitionFacts
from drawstring.planning.scan_plan import ScanPlan, ScanSource
from drawstring.planning.scan_planner import ScanPlanner
from drawstring.planning.scan_request import ScanRequest
from drawstring.predicates.ast import Predicate, columns_of
from drawstring.predicates.evaluate import possible_outcomes
from drawstring.schema.change_images import CHANGE_DATA
from drawstring.spark import wire
from drawstring.spark.read.grouping import Grouping, grouping_of, shown_buckets
from drawstring.spark.read.projections import AS_IS, Projections
from drawstring.spark.read.requests import value_to_wire
from drawstring.spark.read.task_codec import context_to_wire, task_to_wire
from drawstring.spark.types import spark_schema
from drawstring.storage.settings import store_settings
from drawstring.table import EARLIEST, Table, open_table
from drawstring.timeline.timeline import Timeline

NATIVE, MERGE, ARROW = "native", "merge", "arrow"
_SPARK_PREFIX = "spark."
_ONLY_WORKERS = "drawstring.store.only.workers"
"""Set by the bridge where Hadoop has no file system for the table's path."""
_FIRST_DAY = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class PinnedTable:
    """One read of a table: what was asked for, and the snapshot or range of commits that answers it.

    `store` are the settings of the store (`fs.*`) that the read was given; with `only_workers` Spark's own reader
    cannot reach it. `refusal` is what a batch read ends in; a stream may be read.
    """

    table: Table
    source: ScanSource
    store: Mapping[str, str] = field(default_factory=dict)
    only_workers: bool = False
    refusal: InvalidOption | None = None

    @classmethod
    def open(
        cls,
        path: str,
        options: Mapping[str, str],
        *,
        session: Mapping[str, str],
        timeline: Timeline | None = None,
    ) -> PinnedTable:
        """Open the table and pin what the options ask for, in the timeline of now or in one seen before."""
        table = open_table(path, options=options, session=_without_prefix(session))
        table = replace(table, pinned=timeline)
        store = store_settings({**session, **options})
        source, refusal = _asked_of(table)
        return cls(table, source, store, session.get(_ONLY_WORKERS) == "true", refusal)

    @classmethod
    def reopen(cls, reference: wire.SnapshotReference) -> PinnedTable:
        """Open a snapshot again that was evicted; later commits are not included."""
        timeline = Timeline.from_text(reference.timeline)
        found = cls.open(reference.path, reference.options, session=reference.session, timeline=timeline)
        if found.snapshot_name != reference.snapshot:
            raise InvalidInput(
                f"The snapshot {reference.snapshot} cannot be opened again: the properties of the table at "
                f"{reference.path} have changed since it was loaded. Load the table again.",
                condition="SNAPSHOT_FORGOTTEN",
                path=reference.path,
                snapshot=reference.snapshot,
            )
        return found

    @cached_property
    def snapshot_name(self) -> str:
        """The name of what is read, by table state and every setting: equal names mean equal rows and plans."""
        settings = sorted((name, repr(value)) for name, value in self._row_options.items())
        digest = hashlib.sha256(repr((settings, sorted(self.store.items()))).encode()).hexdigest()[:16]
        return f"{self.table.path}@{self.source.snapshot_id}:{digest}"

    @property
    def _row_options(self) -> dict[str, Any]:
        """The options of the read in a fixed order, without the one that only chooses between V2 and V1."""
        options = self.table.options
        return {**vars(options), "use_dsv2": None, "pushdowns": sorted(options.pushdowns)}

    def describe(self) -> wire.TableLoaded:
        """The table as Spark sees it."""
        config = self.table.config
        return wire.TableLoaded(
            name=config.name,
            path=self.table.path,
            snapshot=self.snapshot_name,
            timeline=self.source.state.timeline.to_text(),
            schema=spark_schema(self.source.schema),
            partition_columns=[] if self._is_change_data else list(config.partition_fields),
            properties=dict(config.properties),
            use_v2=self.table.options.use_dsv2,
            pushdowns=[] if self._is_change_data else sorted(self.table.options.pushdowns),
            grouping=None if self._is_change_data else _grouping_message(self.grouping),
            instant=self._latest,
            only_streams=self.refusal is not None,
        )

    def _check_batch(self) -> None:
        if self.refusal is not None:
            raise self.refusal

    @property
    def _is_change_data(self) -> bool:
        """Whether the columns are those of change data, none of which is the table's."""
        return bool(self.source.schema.equals(CHANGE_DATA))

    def classify(self, predicate: Predicate) -> str:
        """`partition` when the partition paths alone decide it for every row, else `data`."""
        self._check_batch()
        columns = {column.path[0].lower() for column in columns_of(predicate)}
        exact = {field.name.lower() for field in self.table.config.partitioning if not field.derived}
        told = exact | {name.lower() for name in self._partition_facts.bounded}
        if not columns or not columns <= told:
            return "data"
        return "partition" if all(map(self._decider(predicate), self.source.partitions())) else "data"

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Select the slices that may hold rows that the request asks for."""
        self._check_batch()
        return ScanPlanner(self.source, request).plan()

    def aggregate(self, request: ScanRequest) -> Answer | Declined:
        """The rows of an aggregation, groups first, over the slices for which metadata proves them."""
        self._check_batch()
        try:
            plan, answer = ScanPlanner(self.source, request).aggregate()
        except (DrawstringError, TypeError) as error:
            return Declined(str(error))
        rows = [[*group, *values] for group, values in answer.groups.items()]
        if not answer.unproved:
            return Answer(rows)
        reason = f"{len(answer.unproved)} of {len(plan.tasks)} slices: {min(answer.unproved.values())}"
        if len(answer.unproved) == len(plan.tasks) or answer.leaves_out_rows:
            return Declined(reason)
        rest = tuple(task for position, task in enumerate(plan.tasks) if position in answer.unproved)
        return Answer(rows, replace(plan, tasks=rest), reason)

    def column_statistics(self, request: ScanRequest) -> list[ColumnSummary]:
        """What is known of the request's columns over the whole plan."""
        self._check_batch()
        planner = ScanPlanner(self.source, request)
        return column_summaries(planner, planner.plan().tasks)

    @property
    def _latest(self) -> str | None:
        latest = getattr(self.source, "latest_instant", None)
        return None if latest is None else str(latest.requested_time)

    @cached_property
    def grouping(self) -> Grouping | None:
        """What the rows of a file group have in common."""
        return grouping_of(self.table.config, self.table.options, self.source.schema)

    def keys(self, plan: ScanPlan) -> list[tuple[Any, ...]] | None:
        """What the rows of each task have in common; None if that is not certain."""
        return list(map(self.grouping.key, plan.tasks)) if self.grouping and self._keeps_groups else None

    @cached_property
    def _keeps_groups(self) -> bool:
        """Asked of the whole table, so that filters, which may come while a query runs, change no answer."""
        planner = ScanPlanner(self.source, ScanRequest())
        return self.grouping is not None and self.grouping.is_kept(planner.plan().tasks, planner.facts)

    @cached_property
    def context_schema(self) -> str:
        """The table's schema for workers."""
        return base64.b64encode(self.source.schema.serialize().to_pybytes()).decode()

    def file_path(self, file: BaseFile | LogFile) -> str:
        """A file's absolute path."""
        return f"{self.table.path.rstrip('/')}/{file.path}"

    def _decider(self, predicate: Predicate) -> Callable[[str], bool]:
        facts = self._partition_facts

        def decides(path: str) -> bool:
            outcomes = possible_outcomes(predicate, facts.all(path))
            return True not in outcomes or len(outcomes) == 1

        return decides

    @cached_property
    def _partition_facts(self) -> PartitionFacts:
        return PartitionFacts(self.source.state, self._types)

    @cached_property
    def _types(self) -> dict[str, Any]:
        return {field.name: field.type for field in self.source.schema}


def _asked_of(table: Table) -> tuple[ScanSource, InvalidOption | None]:
    """What the options ask for, and why a batch read of it is refused: Spark loads a table for a stream alike.

    Where a stream begins has an option of its own, so an incremental one names no begin.
    """
    try:
        return table.asked(), None
    except InvalidOption as error:
        if error.condition != "BEGIN_INSTANT_MISSING":
            raise
        return table.incremental(EARLIEST), error


@dataclass(frozen=True)
class Answer:
    """The rows of an aggregation; where there is a `rest`, metadata does not speak for its tasks, for a `reason`."""

    rows: list[list[Any]]
    rest: ScanPlan | None = None
    reason: str | None = None


def plan_message(
    table: PinnedTable, plan: ScanPlan, *, planning_ms: int, request: ScanRequest | None = None
) -> wire.ScanPlanned:
    """A plan for the bridge; what workers need of a slice is sent for slices that workers read."""
    contexts, projections = _Contexts(table.context_schema), Projections(table.source)
    constants = _Constants()
    projections.look_up(plan.tasks)
    tasks = [
        _task_message(
            table, task, contexts, constants, None if table.only_workers else projections.index(task)
        )
        for task in plan.tasks
    ]
    if request is not None and request.hidden_columns:
        tasks = _with_hidden(tasks, hidden_values(table, plan, request.hidden_columns))
    if request is not None and request.grouped and (keys := table.keys(plan)) is not None:
        tasks = [
            replace(task, key=list(map(value_to_wire, key))) for task, key in zip(tasks, keys, strict=True)
        ]
    return wire.ScanPlanned(
        tasks=tasks,
        contexts=contexts.found,
        projections=projections.found,
        constants=constants.found,
        rows=plan.row_count,
        estimated_rows=_estimated_rows(plan),
        bytes=sum(task.bytes for task in tasks),
        files=sum(_file_count(task) for task in plan.tasks),
        skipped=dict(plan.skipped.reasons),
        notes=list(plan.notes),
        planning_ms=planning_ms,
    )


def hidden_values(table: PinnedTable, plan: ScanPlan, names: Iterable[str]) -> list[dict[str, Any]]:
    """Values of metadata columns that all rows of a task have, one mapping for each task."""
    buckets = shown_buckets(plan.tasks, table.grouping)
    wanted = set(names)
    return [
        {name: value for name, value in _hidden(table, task, bucket).items() if name in wanted}
        for task, bucket in zip(plan.tasks, buckets, strict=True)
    ]


def _hidden(table: PinnedTable, task: ReadTask, bucket: int | None) -> dict[str, Any]:
    found = task.slice
    return {
        "_file": table.file_path(found.base_file or found.log_files[0]),
        "_partition": found.group.partition_path,
        "_bucket": bucket,
        "_file_group_id": found.group.file_id,
        "_instant": found.base_instant,
    }


def _with_hidden(tasks: list[wire.TaskMessage], values: list[dict[str, Any]]) -> list[wire.TaskMessage]:
    return [replace(task, hidden=found) for task, found in zip(tasks, values, strict=True)]


def _grouping_message(grouping: Grouping | None) -> wire.Grouping | None:
    if grouping is None:
        return None
    return wire.Grouping(list(grouping.columns), grouping.rule.buckets if grouping.rule else None)


def _estimated_rows(plan: ScanPlan) -> int | None:
    """Rows of the plan; those of slices whose count is unknown go by the size of the others."""
    known = [task for task in plan.tasks if task.row_count is not None and task.slice.size]
    bytes_known = sum(task.slice.size for task in known)
    rows = sum(task.row_count or 0 for task in known)
    if not plan.tasks or not bytes_known or not rows:
        return plan.row_count
    return max(1, round(rows * plan.size_in_bytes / bytes_known))


def read_mode(task: ReadTask, projection: int | None) -> str:
    """How a slice is read: by Spark alone, by Spark with a merge plan, or by a worker.

    `projection` is that of the base file; None when a worker must read it.
    """
    if projection is None:
        return ARROW
    return MERGE if task.slice.log_files else NATIVE


class _Contexts:
    """The contexts of a plan's tasks, each once."""

    def __init__(self, schema: str) -> None:
        self.found: list[Any] = []
        self._schema = schema
        self._known: dict[Any, int] = {}

    def index(self, task: ReadTask) -> int:
        blocks = (task.valid_instants, task.valid_before, task.max_instant)
        key = (task.merge, task.keys, blocks, task.keep_commit_times)
        if key not in self._known:
            self._known[key] = len(self.found)
            self.found.append({"table_schema": self._schema, "facts": context_to_wire(task)})
        return self._known[key]


class _Constants:
    """The values that partition paths tell, once per partition."""

    def __init__(self) -> None:
        self.found: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def index(self, task: ReadTask) -> int:
        if not task.partition_values:
            return -1
        if _partition(task) not in self._known:
            self._known[_partition(task)] = len(self.found)
            self.found.append({name: _constant(value) for name, value in task.partition_values.items()})
        return self._known[_partition(task)]


def _constant(value: Any) -> Any:
    return (value - _FIRST_DAY).days if isinstance(value, dt.date) else value


def _task_message(
    table: PinnedTable,
    task: ReadTask,
    contexts: _Contexts,
    constants: _Constants,
    projection: int | None,
) -> wire.TaskMessage:
    mode = read_mode(task, projection)
    file = task.slice.base_file or task.slice.log_files[0]
    return wire.TaskMessage(
        mode=mode,
        path=table.file_path(file),
        size=file.size,
        bytes=task.slice.size,
        context=-1 if mode == NATIVE else contexts.index(task),
        payload=None if mode == NATIVE else task_to_wire(task),
        rows=task.row_count,
        projection=AS_IS if projection is None else projection,
        # Workers know the values from the payload.
        constants=-1 if mode == ARROW else constants.index(task),
    )


def _partition(task: ReadTask) -> str:
    return task.slice.group.partition_path


def _file_count(task: ReadTask) -> int:
    return len(task.slice.log_files) + (task.slice.base_file is not None)


def _without_prefix(session: Mapping[str, str]) -> dict[str, str]:
    """Session settings by Hudi's names; `spark.hoodie.*` is how spark-defaults.conf spells them."""
    plain = {key: value for key, value in session.items() if not key.startswith(_SPARK_PREFIX)}
    prefixed = {k[len(_SPARK_PREFIX) :]: v for k, v in session.items() if k.startswith(_SPARK_PREFIX)}
    return {**prefixed, **plain}
