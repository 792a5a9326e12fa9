"""By what file groups keep rows together, and when that is not believed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.planning.scan_request import ScanRequest
from drawstring.spark.read.pinned import PinnedTable, hidden_values, plan_message
from drawstring.write.bucket_index import BucketRule, bucket_numbers
from tests import small_tables

RULE = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def rows(ids, partition="a"):
    columns = {"id": pa.array(ids, pa.int64()), "ts": pa.array([1] * len(ids), pa.int64())}
    return pa.table({**columns, "p": [partition] * len(ids)})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    ids = list(range(40))
    numbers = bucket_numbers(pa.array(map(str, ids)), BucketRule(4, ("id",)))
    groups = []
    for bucket in range(4):
        mine = rows([i for i, n in zip(ids, numbers, strict=True) if n == bucket])
        groups.append(small_tables.Group("a", mine, mine.slice(0, 1) if bucket == 2 else None, bucket))
    return small_tables.make(tmp_path_factory.mktemp("grouping") / "t", groups)


def keys(path, options):
    table = PinnedTable.open(path, options, session={})
    request = ScanRequest(grouped=True)
    message = plan_message(table, table.plan(request), planning_ms=0, request=request)
    return table.describe().grouping, [task.key for task in message.tasks]


def test_buckets_group_rows_where_files_agree(path):
    grouping, found = keys(path, RULE)
    assert (grouping.columns, grouping.buckets) == (["id"], 4)
    assert sorted(key[0] for key in found) == [0, 1, 2, 3]


@pytest.mark.parametrize("buckets", ["2", "3", "5", "6", "8", "1024"])
def test_another_number_of_buckets_is_not_believed(path, buckets):
    _, found = keys(path, {**RULE, "hoodie.bucket.index.num.buckets": buckets})
    assert found == [None] * 4


@pytest.mark.parametrize("statistics", [True, False])
def test_buckets_of_nothing_but_logs_are_believed_where_statistics_tell_their_keys(tmp_path, statistics):
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.name": "t",
    }
    path, ids = str(tmp_path / "t"), list(range(40))
    table = drawstring.create_table(path, rows([1]).schema, options=options)
    indexes = {"hoodie.metadata.index.column.stats.enable": str(statistics).lower()}
    table.write(rows(ids), operation="upsert", options={**RULE, **indexes})
    slices = [task.slice for task in drawstring.open_table(path).snapshot().scan().plan().tasks]
    assert not any(each.base_file for each in slices)
    assert sorted(keys(path, RULE)[1], key=str) == ([[0], [1], [2], [3]] if statistics else [None] * 4)
    assert keys(path, {**RULE, "hoodie.bucket.index.num.buckets": "5"})[1] == [None] * 4


@pytest.mark.parametrize(
    "other",
    [
        {"hoodie.index.type": "BLOOM"},
        {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"},
        {"hoodie.bucket.index.num.buckets": "many"},
        {"hoodie.bucket.index.hash.field": "ts"},
    ],
    ids=["bloom", "consistent", "malformed", "no key"],
)
def test_without_simple_buckets_partitions_group_rows(path, other):
    grouping, found = keys(path, {**RULE, **other})
    assert (grouping.columns, grouping.buckets) == (["p"], None)
    assert found == [["a"]] * 4


def test_hidden_columns_tell_where_a_slice_lies(path):
    table = PinnedTable.open(path, {}, session={})
    plan = table.plan(ScanRequest())
    found = hidden_values(table, plan, ["_bucket", "_partition", "_file_group_id", "_instant", "_file"])
    assert sorted(each["_bucket"] for each in found) == [0, 1, 2, 3]
    for each in found:
        assert each["_partition"] == "p=a"
        assert each["_file"].startswith(f"{table.table.path}/p=a/{each['_file_group_id']}")
        assert each["_instant"] == "20260101000000000"


def test_ids_of_other_indexes_show_no_bucket(tmp_path):
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "t"}
    table = drawstring.create_table(str(tmp_path / "t"), rows([1]).schema, options=options)
    table.write(rows([1, 2]), operation="insert")
    pinned = PinnedTable.open(str(tmp_path / "t"), {}, session={})
    assert [each["_bucket"] for each in hidden_values(pinned, pinned.plan(ScanRequest()), ["_bucket"])] == [
        None
    ]
