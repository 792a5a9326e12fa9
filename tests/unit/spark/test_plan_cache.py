"""Merge plans on disk."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from drawstring.spark.worker.plan_cache import KeptPlan, PlanCache

PLAN = KeptPlan(3, b"\x05", pa.table({"a": [1, 2], "b": ["x", None]}))


@pytest.fixture
def cache(tmp_path):
    return PlanCache(str(tmp_path))


def refuse() -> KeptPlan:
    raise AssertionError("the plan was to be found")


def test_a_kept_plan_is_found_again(cache):
    cache.find_or_make("k", ["a", "b"], lambda: PLAN)
    found = cache.find_or_make("k", ["b"], refuse)
    assert (found.hidden_bits, found.winners.to_pydict()) == (b"\x05", {"a": [1, 2], "b": ["x", None]})
    assert [batch.to_pydict() for batch in found.batches(["b"])] == [{"b": ["x", None]}]


def test_a_plan_without_the_columns_is_made_again(cache):
    cache.find_or_make("k", ["a"], lambda: KeptPlan(3, b"\x05", PLAN.winners.select(["a"])))
    assert cache.find_or_make("k", ["a", "b"], lambda: PLAN).winners.column_names == ["a", "b"]
    assert cache.find_or_make("k", ["b"], refuse).winners.column_names == ["a", "b"]


def test_a_damaged_file_is_no_plan(cache, tmp_path):
    cache.find_or_make("k", ["a"], lambda: PLAN)
    (tmp_path / "k").write_bytes(b"ARROW1")
    assert cache.find_or_make("k", ["a"], lambda: PLAN) is PLAN


def test_plans_used_longest_ago_make_room(tmp_path):
    cache = PlanCache(str(tmp_path), max_bytes=1)
    for age, key in enumerate(["old", "new"]):
        cache.find_or_make(key, ["a"], lambda: PLAN)
        os.utime(tmp_path / key, (age + 1, age + 1))
    cache.find_or_make("newest", ["a"], lambda: PLAN)
    assert sorted(os.listdir(tmp_path)) == ["newest"]


def test_a_folder_that_is_gone_costs_only_time(tmp_path):
    cache = PlanCache(str(tmp_path / "gone"))
    assert cache.find_or_make("k", ["a"], lambda: PLAN) is PLAN
