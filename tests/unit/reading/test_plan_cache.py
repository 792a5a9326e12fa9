from __future__ import annotations

import numpy as np
import pyarrow as pa

from drawstring.merge.merge_plan import MergePlan
from drawstring.model.read_task import MergeSpec
from drawstring.reading.plan_cache import PlanCache, plan_key
from tests.unit.merge.slices import SCHEMA, Slice


def plan(rows: int) -> MergePlan:
    return MergePlan(np.zeros(rows, dtype=bool), pa.table({}), 0)


def test_a_plan_is_made_once():
    cache = PlanCache()
    first = cache.get("a", lambda: plan(10))
    assert cache.get("a", lambda: plan(20)) is first
    assert (cache.hits, cache.misses) == (1, 1)


def test_the_least_recently_used_plans_go_first():
    cache = PlanCache(max_bytes=250)
    kept = cache.get("a", lambda: plan(100))
    cache.get("b", lambda: plan(100))
    cache.get("a", lambda: plan(1))
    cache.get("c", lambda: plan(100))
    assert cache.get("a", lambda: plan(1)) is kept
    assert len(cache.get("b", lambda: plan(1)).hidden) == 1
    assert cache.size_in_bytes <= 250


def test_a_plan_larger_than_the_cache_is_not_kept():
    cache = PlanCache(max_bytes=50)
    cache.get("a", lambda: plan(100))
    assert cache.size_in_bytes == 0


def test_keys_tell_apart_what_makes_plans_differ():
    made = Slice().base([{"id": "a", "v": 1, "ts": 1}]).upsert([{"id": "a", "v": 2, "ts": 2}])
    tasks = [
        made.task(),
        made.task(MergeSpec("COMMIT_TIME_ORDERING")),
        made.task(max_instant="20260101"),
        made.task(valid_instants=frozenset({"1"})),
        made.task(partition_values={"p": 1}),
    ]
    keys = {
        plan_key(t, root="r", table_schema=SCHEMA, columns=c) for t in tasks for c in (["id"], ["v", "id"])
    }
    assert len(keys) == 10
    assert plan_key(made.task(), root="r", table_schema=SCHEMA, columns=["id"]) in keys
