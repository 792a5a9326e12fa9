"""Merge plans kept for the next query: files of a slice never change, so neither does its plan."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

import pyarrow as pa

from drawstring.merge.merge_plan import MergePlan
from drawstring.model.read_task import ReadTask

DEFAULT_BYTES = 512 * 2**20


class PlanCache:
    """The most recently used merge plans, up to a number of bytes. Safe to share between threads."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self.max_bytes = max_bytes
        self.hits = 0
        self.misses = 0
        self._plans: OrderedDict[Hashable, MergePlan] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], MergePlan]) -> MergePlan:
        """Return the plan kept under `key`, or make it and keep it."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                self.hits += 1
                return plan
            self.misses += 1
        plan = make()
        self._keep(key, plan)
        return plan

    def _keep(self, key: Hashable, plan: MergePlan) -> None:
        size = plan.size_in_bytes
        if size > self.max_bytes:
            return
        with self._lock:
            if key in self._plans:
                return
            self._plans[key] = plan
            self._bytes += size
            while self._bytes > self.max_bytes:
                _, oldest = self._plans.popitem(last=False)
                self._bytes -= oldest.size_in_bytes

    @property
    def size_in_bytes(self) -> int:
        """Memory that the kept plans hold."""
        return self._bytes

    def clear(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._plans.clear()
            self._bytes = 0


def plan_key(task: ReadTask, *, root: str, table_schema: pa.Schema, columns: Sequence[str]) -> Hashable:
    """What a plan depends on: the files, which of their blocks count, how they merge, and the columns."""
    files = [(log.path, log.size) for log in task.slice.log_files]
    if task.slice.base_file is not None:
        files.append((task.slice.base_file.path, task.slice.base_file.size))
    mappings = tuple(sorted(task.mappings.items()))
    values = tuple(sorted((name, repr(value)) for name, value in task.partition_values.items()))
    fields = tuple(str(table_schema.field(name)) for name in columns)
    blocks = (task.valid_instants, task.valid_before, task.max_instant)
    return (root, tuple(files), task.merge, task.keys, blocks, mappings, values, tuple(columns), fields)
