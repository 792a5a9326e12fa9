"""Skipped slices hold no matching row: each test compares with what a plain read would find."""

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.planning import pruning
from drawstring.planning.pruning import BY_COLUMN_STATS, BY_FOOTER, BY_PARTITION_STATS, FileSkipping
from drawstring.predicates.arrow_filter import filter_batch
from drawstring.predicates.evaluate import facts_of_values
from drawstring.predicates.facts import ColumnFacts
from drawstring.predicates.parse import parse
from drawstring.storage import LocalStorage
from drawstring.storage.memory import MemoryStorage
from drawstring.view.footer_stats import footer_statistics
from drawstring.view.statistics import FileStatistics, comparable_bounds, facts_of_slice
from tests.small_writes import new_table, write

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.int64()), ("s", pa.string()), ("x", pa.float64())])


@pytest.fixture
def storage():
    return MemoryStorage(f"memory://{uuid.uuid4()}")


def write_base(storage, rows, schema=SCHEMA, partition="a", **options):
    """Write a base file and return its slice."""
    file_id = f"{uuid.uuid4()}-0"
    path = f"{partition}/{file_id}_0-0-0_1.parquet"
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    content = sink.getvalue().to_pybytes()
    storage.write(path, content)
    return FileSlice(FileGroupId(partition, file_id), "1", BaseFile(path, len(content), file_id, "1"))


class FakeColumnStats:
    def __init__(self, found, of_partitions=None):
        self.found = found
        self.of_partitions = of_partitions or {}

    def statistics(self, columns, partitions, *, find_empty=True):
        return self.found

    def partition_statistics(self, columns, partitions):
        return self.of_partitions


def skipping(storage, *, column_stats=None, schema=SCHEMA, own_files=True, **more):
    def facts(path):
        return facts_of_values({"p": path}, {"p": pa.string()})

    return FileSkipping(storage, schema, column_stats, facts, own_files, **more)


def with_log(found):
    log = LogFile(f"a/.{found.group.file_id}_2.log.1_0-0-0", 9, found.group.file_id, "2", 1)
    return FileSlice(found.group, found.base_instant, found.base_file, (log,))


def row(n, s="s", x=0.0):
    return {"p": "a", "n": n, "s": s, "x": x}


def test_a_footer_rules_a_file_out(storage):
    slices = [
        write_base(storage, [row(1), row(5)]),
        write_base(storage, [row(10)]),
        write_base(storage, [row(None)]),
    ]
    pruned = skipping(storage).prune(slices, parse("n = 3"))
    assert pruned.is_kept == (True, False, False)
    assert pruned.reasons == (None, BY_FOOTER, BY_FOOTER)
    assert skipping(storage).prune(slices, parse("n is null")).is_kept == (False, False, True)


def test_nothing_is_read_when_the_partition_tells_all_or_files_are_too_many(storage):
    slices = [write_base(storage, [row(1)]), write_base(storage, [row(2)])]
    storage.delete(slices[0].base_file.path)
    assert skipping(storage).prune(slices, parse("p = 'b'")).is_kept == (True, True)
    assert skipping(storage, max_footers=1).prune(slices, parse("n = 9")).is_kept == (True, True)
    assert skipping(storage).prune(slices, parse("n = 9")).is_kept == (True, False)


def test_a_slice_with_a_log_that_is_not_in_the_index_is_kept(storage):
    found = with_log(write_base(storage, [row(1)]))
    assert skipping(storage).prune([found], parse("n = 9")).is_kept == (True,)


def facts(low, high, arrow=None, **more):
    return FileStatistics({"n": ColumnFacts(arrow or pa.int64(), low, high, may_be_null=False, **more)})


def test_with_logs_all_files_must_rule_the_slice_out(storage):
    found = with_log(write_base(storage, [row(1)]))
    base, log = ("a", found.base_file.name), ("a", found.log_files[0].name)

    def kept(index, condition, own_files=True):
        stats = FakeColumnStats(index)
        return (
            skipping(storage, column_stats=stats, own_files=own_files)
            .prune([found], parse(condition))
            .is_kept
        )

    both = {base: facts(1, 1), log: facts(5, 6)}
    assert kept(both, "n = 9") == (False,)
    assert kept(both, "n = 5") == (True,)
    assert kept(both, "n = 9", own_files=False) == (True,)
    assert kept({base: facts(1, 1)}, "n = 9") == (True,)
    assert kept({base: facts(1, 1), log: FileStatistics({})}, "n = 9") == (True,)
    assert kept({base: facts(1, 1), log: FileStatistics({}, is_empty=True)}, "n = 9") == (False,)
    assert kept(both, "n is null") == (True,)


def test_a_row_merged_from_two_files_is_not_lost(storage):
    """A partial update takes `n` from the log and `s` from the base file: no single file has such a row."""
    found = with_log(write_base(storage, [row(1, "old")]))
    text = pa.string()
    index = {
        ("a", found.base_file.name): FileStatistics(
            {"n": ColumnFacts(pa.int64(), 1, 1), "s": ColumnFacts(text, "old", "old")}
        ),
        ("a", found.log_files[0].name): FileStatistics(
            {"n": ColumnFacts(pa.int64(), 5, 5), "s": ColumnFacts(text, "x", "x")}
        ),
    }
    stats = FakeColumnStats(index)
    assert skipping(storage, column_stats=stats).prune([found], parse("n = 5 and s = 'old'")).is_kept == (
        True,
    )


def test_the_index_counts_before_footers(storage):
    found = write_base(storage, [row(1)])
    stats = FakeColumnStats({("a", found.base_file.name): facts(1, 1)})
    pruned = skipping(storage, column_stats=stats).prune([found], parse("n = 9"))
    assert pruned.reasons == (BY_COLUMN_STATS,)


def test_statistics_of_a_partition_rule_all_its_slices_out_of_the_newest_state_only(storage):
    slices = [write_base(storage, [row(1)], partition=path) for path in ("a", "b")]
    stats = FakeColumnStats({}, {"a": facts(1, 5)})
    newest = skipping(storage, column_stats=stats, reads_newest=True, max_footers=0)
    assert newest.prune(slices, parse("n = 9")).is_kept == (False, True)
    assert newest.prune(slices, parse("n = 9")).reasons == (BY_PARTITION_STATS, None)
    assert newest.prune(slices, parse("n = 3")).is_kept == (True, True)
    earlier = skipping(storage, column_stats=stats, max_footers=0)
    assert earlier.prune(slices, parse("n = 9")).is_kept == (True, True)


def test_nan_is_greater_than_any_upper_bound(storage):
    found = write_base(storage, [row(1, x=1.0), row(2, x=float("nan"))])
    assert skipping(storage).prune([found], parse("x > 5")).is_kept == (True,)
    assert skipping(storage).prune([found], parse("x < 0.5")).is_kept == (False,)


def test_a_column_of_another_type_or_missing_keeps_the_file(storage):
    old = pa.schema([("p", pa.string()), ("n", pa.string()), ("x", pa.float32())])
    found = write_base(storage, [{"p": "a", "n": "10", "x": 0.5}], schema=old)
    for condition in ("n = 9", "s = 'q'", "x < 0.1"):
        assert skipping(storage).prune([found], parse(condition)).is_kept == (True,)


def test_statistics_left_out_of_one_row_group_leave_the_column_unknown(storage):
    table = pa.Table.from_pylist([row(1), row(2)], schema=SCHEMA)
    found = write_base(storage, table, row_group_size=1, write_statistics=["s"])
    assert skipping(storage).prune([found], parse("n = 9")).is_kept == (True,)


def test_integers_that_became_floats_are_bounded_as_they_round():
    low, high = comparable_bounds(2**24 + 1, 2**24 + 1, pa.int32(), pa.float32())
    assert low == high == float(np.float32(2**24 + 1))
    assert comparable_bounds(0.5, 0.5, pa.float32(), pa.float64()) == (None, None)
    assert comparable_bounds(float("nan"), 1.0, pa.float64(), pa.float64()) == (None, None)


def test_nested_columns_are_looked_up_by_their_path(storage):
    schema = pa.schema([("st", pa.struct([("a", pa.int32())])), ("l", pa.list_(pa.int32()))])
    found = write_base(storage, [{"st": {"a": 1}, "l": [1]}], schema=schema)
    skip = skipping(storage, schema=schema)
    assert skip.prune([found], parse("st.a = 2")).is_kept == (False,)
    assert skip.prune([found], parse("st.a = 1")).is_kept == (True,)
    assert skip.prune([found], parse("l is null")).is_kept == (True,)


def test_files_without_rows_add_nothing():
    empty = FileStatistics({}, is_empty=True)
    known = FileStatistics({"n": ColumnFacts(pa.int64(), 1, 2, may_be_null=False)})
    column = next(iter(parse_columns("n = 1")))
    assert facts_of_slice([known, empty], has_logs=False)(column) == known.columns["n"]
    assert facts_of_slice([known, None], has_logs=False)(column) is None
    assert facts_of_slice([empty], has_logs=False)(column) is None


def parse_columns(condition):
    from drawstring.predicates.ast import columns_of

    return columns_of(parse(condition))


def test_an_unreadable_footer_is_left_out(storage):
    storage.write("a/x_0_1.parquet", b"no parquet")
    assert footer_statistics(storage, ["a/x_0_1.parquet", "a/missing_0_1.parquet"], {}) == {}


@pytest.mark.parametrize(
    "condition", ["ts = 5", "ts between 3 and 6", "ts > 7", "ts in (2, 8) and v = 'x'", "ts < 0"]
)
def test_many_files_are_ruled_out_at_once_as_one_by_one(tmp_path, monkeypatch, condition):
    new_table(tmp_path, [(f"k{n}", f"c{n}", n, "x") for n in range(9)])
    for turn in (1, 2):
        write(LocalStorage(str(tmp_path)), [(f"k{n}", f"c{n}", n + turn, "y") for n in (turn, 7)])

    newest = drawstring.open_table(str(tmp_path)).snapshot().latest_instant.requested_time

    def planned():
        # As of an instant: statistics of whole partitions speak of now, and leave the work to those of files.
        scan = drawstring.open_table(str(tmp_path)).snapshot(as_of=newest).scan().where(condition)
        plan = scan.plan()
        assert {reason for _, reason in plan.skipped.left_out} == {BY_COLUMN_STATS}
        return {task.slice.base_file.path for task in plan.tasks}

    one_by_one = planned()
    monkeypatch.setattr(pruning, "MANY_SLICES", 1)
    assert planned() == one_by_one
    assert len(one_by_one) < 9


values = {
    "n": st.none() | st.integers(-3, 3),
    "s": st.none() | st.sampled_from(["", "a", "b", "é", "😀", "\uff5e"]),
    "x": st.none() | st.sampled_from([-1.0, 0.0, -0.0, 2.0, float("nan"), float("inf")]),
}
file_rows = st.lists(st.fixed_dictionaries({"p": st.just("a"), **values}), max_size=5)
conditions = st.sampled_from(
    [
        f"{column} {op} {literal}"
        for column, literals in {"n": (0, 2, 9), "s": ("'a'", "'zz'", "'😀'"), "x": (0, 1.5, "1e300")}.items()
        for op in ("=", "!=", "<", "<=", ">", ">=", "<=>")
        for literal in literals
    ]
    + ["n is null", "n is not null", "s like 'a%'", "not s like 'a%'", "n in (2, null)", "not n in (2, 9)"]
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(file_rows, min_size=1, max_size=4), conditions, conditions, st.sampled_from(["and", "or"]))
def test_skipped_files_hold_no_matching_row(storage, files, left, right, how):
    predicate = parse(f"({left}) {how} ({right})")
    slices = [write_base(storage, rows, row_group_size=2) for rows in files]
    pruned = skipping(storage).prune(slices, predicate)
    for rows, is_kept in zip(files, pruned.is_kept, strict=True):
        batch = pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
        assert is_kept or filter_batch(batch, predicate).num_rows == 0
