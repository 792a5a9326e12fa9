"""Answers to the bridge's questions about reading: load a table, take filters, plan a scan."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from drawstring.planning.aggregates import Declined
from drawstring.spark import wire
from drawstring.spark.read.filters import known_predicate
from drawstring.spark.read.pinned import PinnedTable, plan_message
from drawstring.spark.read.requests import request_from_wire, value_to_wire

_KEPT_SNAPSHOTS = 256
_log = logging.getLogger(__name__)


class Snapshots:
    """Pinned tables by the name of their snapshot; the least recently used are evicted, and opened again on demand."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, PinnedTable] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, table: PinnedTable) -> None:
        """Keep a table."""
        with self._lock:
            self._known[table.snapshot_name] = table
            self._known.move_to_end(table.snapshot_name)
            while len(self._known) > _KEPT_SNAPSHOTS:
                self._known.popitem(last=False)

    def find(self, reference: wire.SnapshotReference) -> PinnedTable:
        """The table that a request is about."""
        with self._lock:
            found = self._known.get(reference.snapshot)
            if found is not None:
                self._known.move_to_end(reference.snapshot)
        if found is None:
            found = PinnedTable.reopen(reference)
            self.add(found)
        return found


_snapshots = Snapshots()


def pinned_table(reference: wire.SnapshotReference) -> PinnedTable:
    """The table that a request is about."""
    return _snapshots.find(reference)


def load_table(payload: str) -> str:
    """Open a table and pin its snapshot."""
    request = wire.from_json(wire.LoadTable, payload)
    table = PinnedTable.open(request.path, request.options, session=request.session)
    _snapshots.add(table)
    return wire.to_json(table.describe())


def push_filters(payload: str) -> str:
    """Class each filter."""
    request = wire.from_json(wire.PushFilters, payload)
    table = _snapshots.find(request.table)
    found = map(known_predicate, request.filters)
    classes = ["rest" if predicate is None else table.classify(predicate) for predicate in found]
    return wire.to_json(wire.FiltersPushed(classes))


def plan_scan(payload: str) -> str:
    """Select the slices of a scan."""
    request = wire.from_json(wire.PlanScan, payload)
    started = time.perf_counter()
    table = _snapshots.find(request.table)
    asked = request_from_wire(request.request)
    plan = table.plan(asked)
    elapsed = round((time.perf_counter() - started) * 1000)
    return wire.to_json(plan_message(table, plan, planning_ms=elapsed, request=asked))


def push_aggregation(payload: str) -> str:
    """Answer an aggregation from metadata, or a part of it, or say why not."""
    request = wire.from_json(wire.PlanScan, payload)
    started = time.perf_counter()
    table = _snapshots.find(request.table)
    answer = table.aggregate(request_from_wire(request.request))
    if answer.reason is not None:
        _log.info("aggregates of %s are left to Spark: %s", request.table.path, answer.reason)
    if isinstance(answer, Declined):
        return wire.to_json(wire.AggregationPushed(None, answer.reason))
    rows = [[value_to_wire(value) for value in row] for row in answer.rows]
    if answer.rest is None:
        return wire.to_json(wire.AggregationPushed(rows))
    elapsed = round((time.perf_counter() - started) * 1000)
    rest = plan_message(table, answer.rest, planning_ms=elapsed)
    return wire.to_json(wire.AggregationPushed(rows, answer.reason, rest))


def summarise_columns(payload: str) -> str:
    """Tell what is known of columns over the slices that a request selects."""
    request = wire.from_json(wire.PlanScan, payload)
    found = _snapshots.find(request.table).column_statistics(request_from_wire(request.request))
    return wire.to_json(
        wire.ColumnsSummarised(
            [
                wire.ColumnStatistics(
                    each.name, value_to_wire(each.lower), value_to_wire(each.upper), each.nulls, each.distinct
                )
                for each in found
            ]
        )
    )


READ_HANDLERS: dict[str, Callable[[str], str]] = {
    "load_table": load_table,
    "push_filters": push_filters,
    "plan_scan": plan_scan,
    "push_aggregation": push_aggregation,
    "summarise_columns": summarise_columns,
}
"""The requests answered here, by kind."""
