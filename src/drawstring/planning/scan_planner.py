"""From a request to a plan: each push-down takes slices out of it, and records the reason."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.model.read_task import ReadTask
from drawstring.planning.aggregates import MetadataAggregation, PartialAnswer, columns_of_aggregation
from drawstring.planning.key_lookup import BY_BLOOM_FILTER, KeyQuestion, without_keys
from drawstring.planning.key_places import BY_RECORD_INDEX, groups_of_keys, has_record_index
from drawstring.planning.partition_facts import PartitionFacts
from drawstring.planning.pruning import MAX_FOOTERS, FileSkipping
from drawstring.planning.row_limit import BY_LIMIT, beyond_limit
from drawstring.planning.scan_plan import BY_PARTITION, ScanPlan, ScanSource, SkipReport
from drawstring.planning.scan_request import Aggregation, ScanRequest, conjunction
from drawstring.planning.slice_statistics import SliceFacts, SliceStatistics
from drawstring.planning.top_n import BY_TOP_N, SortedSlice, TopN
from drawstring.predicates.arrow_filter import column_type
from drawstring.predicates.ast import Predicate, columns_of
from drawstring.predicates.evaluate import Facts, decider

BY_RUNTIME_FILTER = "runtime filter"
MAX_FOOTERS_TO_SORT = 4096
"""How many footers a top-N reads at most; each costs about a millisecond, and saves reading a file."""
MAX_FOOTERS_TO_ANSWER = 16_384
"""How many footers an aggregate reads at most, instead of as many files."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScanPlanner:
    """Plans one request."""

    source: ScanSource
    request: ScanRequest

    def plan(self) -> ScanPlan:
        """Decide what is read; nothing but metadata is touched."""
        with _collector_paused():
            return self._plan()

    def aggregate(self) -> tuple[ScanPlan, PartialAnswer]:
        """The plan of the request, and what metadata proves of its aggregation over the plan's tasks."""
        aggregation = self.request.aggregation
        assert aggregation is not None
        plan = self.plan()
        with _collector_paused():
            answer = self._answer(aggregation, plan.tasks)
        for reason in sorted(set(answer.unproved.values()))[:3]:
            _log.info("aggregates of %s are not answered by metadata alone: %s", self._root, reason)
        return plan, answer

    def facts(
        self, tasks: Sequence[ReadTask], columns: Mapping[str, pa.DataType], limit: int
    ) -> Sequence[SliceFacts]:
        """The statistics of some columns in each task; at most `limit` footers are read for it."""
        state = self.source.state
        sources = SliceStatistics(
            state.storage, state.column_stats, self._logs_have_own_files, max_footers=limit
        )
        return state.known_facts.of(sources, tasks, columns)

    def _plan(self) -> ScanPlan:
        partitions = list(self.source.partitions())
        kept = set(self._matching(partitions, self.request.predicate))
        tasks = [
            task for partition in partitions if partition in kept for task in self.source.tasks(partition)
        ]
        left_out = [
            (found, BY_PARTITION) for p in partitions if p not in kept for found in self.source.slices(p)
        ]
        notes: list[str] = []
        steps = (
            self._by_statistics,
            lambda left: self._by_record_index(left, notes),
            self._by_bloom_filters,
            self._by_runtime_filters,
            lambda left: self._by_rows_needed(left, notes),
        )
        for step in steps:
            reasons = step(tasks)
            left_out += [(t.slice, r) for t, r in zip(tasks, reasons, strict=True) if r is not None]
            tasks = [task for task, reason in zip(tasks, reasons, strict=True) if reason is None]
        return ScanPlan(
            tasks=tuple(tasks),
            schema=requested_schema(self.source.schema, self.request),
            snapshot_id=self.source.snapshot_id,
            skipped=SkipReport(
                partitions=len(partitions),
                partitions_skipped=len(partitions) - len(kept),
                left_out=tuple(left_out),
            ),
            notes=tuple(notes),
        )

    def _matching(self, partitions: Sequence[str], predicate: Predicate | None) -> Sequence[str]:
        """The partitions whose path does not rule the condition out."""
        if predicate is None or not self.source.state.config.partitioning:
            return partitions
        facts = self._partition_facts
        decide = decider(facts.narrowed(predicate))
        return [path for path in partitions if True in decide(facts.all(path))]

    def _by_statistics(self, tasks: Sequence[ReadTask]) -> Sequence[str | None]:
        """Leave out tasks whose files cannot hold a matching row."""
        return self._pruned(tasks, self.request.predicate)

    def _by_record_index(self, tasks: Sequence[ReadTask], notes: list[str]) -> Sequence[str | None]:
        """Leave out tasks whose file group has none of the record keys that are asked for."""
        keys = self._keys
        if keys is None or len(tasks) < 2 or not has_record_index(self.source.state):
            return (None,) * len(tasks)
        groups = groups_of_keys(self.source, keys)
        if isinstance(groups, str):
            _log.info("the record index of %s is not asked: %s", self._root, groups)
            notes.append(f"{BY_RECORD_INDEX}: not asked, for {groups}")
            return (None,) * len(tasks)
        return [None if task.slice.group in groups else BY_RECORD_INDEX for task in tasks]

    def _by_bloom_filters(self, tasks: Sequence[ReadTask]) -> Sequence[str | None]:
        """Leave out tasks whose files hold none of the record keys that are asked for, by their footers."""
        keys = self._keys
        if keys is None or len(tasks) < 2:
            return (None,) * len(tasks)
        left_out = without_keys(self.source.state.storage, tasks, keys)
        return [BY_BLOOM_FILTER if out else None for out in left_out]

    @cached_property
    def _keys(self) -> Sequence[str] | None:
        """The record keys that the condition asks for, if files can be skipped by them."""
        predicate, state = self.request.predicate, self.source.state
        if predicate is None or not state.data_skipping:
            return None
        return KeyQuestion(state.config, self.source.schema).keys(predicate)

    def _by_runtime_filters(self, tasks: Sequence[ReadTask]) -> Sequence[str | None]:
        predicate = conjunction(self.request.runtime_filters)
        if predicate is None:
            return (None,) * len(tasks)
        fitting = set(self._matching([_partition(task) for task in tasks], predicate))
        pruned = self._pruned(tasks, predicate)
        return [
            None if _partition(task) in fitting and reason is None else BY_RUNTIME_FILTER
            for task, reason in zip(tasks, pruned, strict=True)
        ]

    def _pruned(self, tasks: Sequence[ReadTask], predicate: Predicate | None) -> Sequence[str | None]:
        state = self.source.state
        if predicate is None or not state.data_skipping:
            return (None,) * len(tasks)
        # With schema-on-read, statistics go by names that columns had when the files were written.
        asked = [column.path for column in columns_of(predicate)]
        known = [task for task in tasks if not task.mappings or task.keeps_names(asked)]
        skipping = FileSkipping(
            storage=state.storage,
            schema=self.source.schema,
            column_stats=state.column_stats,
            partition_facts=self._partition_facts.values,
            reads_newest=self.source.reads_newest,
            logs_have_own_files=self._logs_have_own_files,
        )
        reasons = iter(skipping.prune([task.slice for task in known], predicate).reasons)
        chosen = set(map(id, known))
        return [next(reasons) if id(task) in chosen else None for task in tasks]

    def _by_rows_needed(self, tasks: Sequence[ReadTask], notes: list[str]) -> Sequence[str | None]:
        needed = self.request.rows_needed
        if needed is None or self.request.runtime_filters:
            # Spark applies runtime filters to the rows: the rows that are kept here may not be the ones that match.
            return (None,) * len(tasks)
        by_order = bool(self.request.order)
        left_out = self._beyond_top_n(tasks, needed) if by_order else self._beyond_limit(tasks, needed)
        reason = BY_TOP_N if by_order else BY_LIMIT
        if tasks and not any(left_out):
            notes.append(f"{reason}: no slice can be left out by what is known of rows and bounds")
        return [reason if out else None for out in left_out]

    def _beyond_limit(self, tasks: Sequence[ReadTask], needed: int) -> list[bool]:
        if self.request.predicate is None:
            return beyond_limit([task.row_count for task in tasks], needed)
        facts = self.facts(tasks, self._columns_of_predicate(), MAX_FOOTERS)
        certain = self._certain(facts)
        return beyond_limit(
            [f.rows if sure else None for f, sure in zip(facts, certain, strict=True)], needed
        )

    def _beyond_top_n(self, tasks: Sequence[ReadTask], needed: int) -> list[bool]:
        key = self.request.order[0]
        arrow = column_type(key.column, self.source.schema)
        columns = self._columns_of_predicate() | {".".join(key.column.path): arrow}
        facts = self.facts(tasks, columns, MAX_FOOTERS_TO_SORT)
        certain = self._certain(facts)
        slices = [
            SortedSlice(each.rows if sure else None, each.column(key.column, arrow))
            for each, sure in zip(facts, certain, strict=True)
        ]
        return TopN(key, needed).left_out(slices)

    def _answer(self, aggregation: Aggregation, tasks: Sequence[ReadTask]) -> PartialAnswer:
        schema = self.source.schema
        types = {".".join(c.path): column_type(c, schema) for c in columns_of_aggregation(aggregation)}
        facts = self.facts(tasks, types | self._columns_of_predicate(), MAX_FOOTERS_TO_ANSWER)
        return MetadataAggregation(aggregation, types).answer(facts, self._certain(facts))

    def _certain(self, facts: Sequence[SliceFacts]) -> list[bool]:
        """Which slices have only rows that satisfy the predicates."""
        predicate = self.request.predicate
        if predicate is None:
            return [True] * len(facts)
        decide, types = decider(predicate), self._types

        def known(each: SliceFacts, by_path: Facts) -> Facts:
            return lambda column: by_path(column) or each.column(column, types.get(column.path[0], pa.null()))

        def is_certain(each: SliceFacts) -> bool:
            # Of the column of which a path was made the path or the files may know more.
            path = _partition(each.task)
            sources = dict.fromkeys((self._partition_facts.values(path), self._partition_facts.all(path)))
            return any(decide(known(each, source)) == {True} for source in sources)

        return list(map(is_certain, facts))

    def _columns_of_predicate(self) -> dict[str, pa.DataType]:
        predicate = self.request.predicate
        if predicate is None:
            return {}
        found = {".".join(c.path): column_type(c, self.source.schema) for c in columns_of(predicate)}
        return {name: arrow for name, arrow in found.items() if not pa.types.is_nested(arrow)}

    @cached_property
    def _partition_facts(self) -> PartitionFacts:
        """The values that a partition path tells for certain."""
        return PartitionFacts(self.source.state, self._types)

    @cached_property
    def _types(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.source.schema}

    @property
    def _logs_have_own_files(self) -> bool:
        config = self.source.state.config
        return config.layout >= 2 and not config.was_upgraded_from_v6

    @property
    def _root(self) -> str:
        return self.source.state.storage.root


def requested_schema(schema: pa.Schema, request: ScanRequest) -> pa.Schema:
    """The schema of the rows that a scan returns."""
    return schema if request.columns is None else pa.schema([schema.field(name) for name in request.columns])


def _partition(task: ReadTask) -> str:
    return task.slice.group.partition_path


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the garbage collector: planning makes many long-lived values and no cycles, so collecting finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
