"""Limits, top-N and aggregates answer as a plain read does, whatever they leave out."""

from __future__ import annotations

import datetime as dt
import math
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.errors import InvalidInput
from drawstring.planning import slice_statistics
from drawstring.planning.row_limit import BY_LIMIT, beyond_limit
from drawstring.planning.scan_planner import BY_RUNTIME_FILTER, ScanPlanner
from drawstring.planning.scan_request import ScanRequest
from drawstring.planning.top_n import BY_TOP_N
from drawstring.predicates.parse import parse
from drawstring.view.footer_stats import footer_statistics
from tests import small_tables

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("p", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("m", pa.decimal128(9, 2)),
    ]
)
COLUMNS = ("n", "x", "s", "d", "m", "p", "id")
NUMBERS = st.one_of(st.none(), st.integers(-5, 5))
FLOATS = st.one_of(st.none(), st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -2.5, 7.0]))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ä", "\ue000", "\U0001f600", "z" * 2000]))
DATES = st.one_of(st.none(), st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 9)))
MONEY = st.one_of(st.none(), st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2)))
ROWS = st.lists(st.tuples(NUMBERS, FLOATS, TEXTS, DATES, MONEY), max_size=4)
GROUPS = st.lists(st.tuples(st.sampled_from(["a", "b"]), ROWS, st.booleans()), min_size=1, max_size=5)
CONDITIONS = (
    None,
    "p = 'a'",
    "p <> 'a'",
    "n > 0",
    "n IS NULL",
    "x >= 1.5",
    "n IS NOT NULL AND p = 'b'",
    "s = 'a'",
)
NO_HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def table_of(rows, first, partition):
    named = [
        dict(zip(("id", "ts", "p", "n", "x", "s", "d", "m"), (first + i, 10, partition, *row), strict=True))
        for i, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(named, schema=SCHEMA)


def build(folder: Path, groups) -> str:
    """A table of the groups; a flag adds a log that changes the first row."""
    found, first = [], 0
    for partition, rows, has_log in groups:
        table = table_of(rows, first, partition)
        first += len(rows)
        changed = [(9, 9.0, "log", dt.date(2025, 1, 1), Decimal("9.00"))] if has_log and rows else None
        updates = table_of(changed, first - len(rows), partition) if changed else None
        found.append(small_tables.Group(partition, table, updates))
    name = f"t{len(os.listdir(folder))}"
    return small_tables.make(folder / name, found, write=lambda t, f: pq.write_table(t, f, row_group_size=2))


def rank(value, descending, nulls_first):
    """Spark's order as a key."""
    if value is None:
        return (-1 if nulls_first else 1, 0, 0)
    nan = isinstance(value, float) and math.isnan(value)
    sign = -1 if descending else 1
    if isinstance(value, str):
        encoded = tuple(value.encode())
        return (0, 0, (*tuple(-b for b in encoded), 1) if descending else encoded)
    number = value.toordinal() if isinstance(value, dt.date) else value
    return (0, sign * nan, 0 if nan else sign * number)


def key_of(values):
    return [repr(abs(v)) if isinstance(v, float) and v == 0 else repr(v) for v in values]


def expected_aggregate(rows, function, column):
    if column == "*":
        return len(rows)
    values = [row[column] for row in rows if row[column] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    chosen = sorted(values, key=lambda value: rank(value, False, True))
    return chosen[0] if function == "min" else chosen[-1]


@settings(max_examples=60, deadline=None, suppress_health_check=NO_HEALTH)
@given(groups=GROUPS, condition=st.sampled_from(CONDITIONS), data=st.data())
def test_answers_are_those_of_a_plain_read(tmp_path, groups, condition, data):
    snapshot = drawstring.open_table(build(tmp_path, groups)).snapshot()
    scan = snapshot.scan() if condition is None else snapshot.scan().where(condition)
    rows = scan.select(*COLUMNS).to_arrow().to_pylist()
    assert scan.count() == len(rows)

    needed, skipped = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 3))
    limited = scan.select("id").limit(needed).offset(skipped).to_arrow()["id"].to_pylist()
    assert len(limited) == max(0, min(needed, len(rows) - skipped))
    assert set(limited) <= {row["id"] for row in rows}
    assert len(set(limited)) == len(limited)

    for column in COLUMNS:
        descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
        ordered = scan.select("id", column) if column != "id" else scan.select("id")
        found = ordered.order_by(column, descending=descending, nulls_first=nulls_first, limit=needed)
        values = found.offset(skipped).to_arrow()[column].to_pylist()
        plain = sorted((row[column] for row in rows), key=lambda v: rank(v, descending, nulls_first))
        assert key_of(values) == key_of(plain[skipped : skipped + needed])

    functions = [f"{name}({column})" for column in COLUMNS for name in ("count", "min", "max")]
    answer = scan.aggregate("count(*)", *functions).to_pylist()
    assert len(answer) == 1
    for text, value in answer[0].items():
        function, column = text.rstrip(")").split("(")
        assert key_of([value]) == key_of([expected_aggregate(rows, function, column)]), text

    grouped = scan.aggregate("count(*)", "max(n)", by=["p"]).to_pylist()
    assert sorted(map(repr, grouped)) == sorted(
        repr({"p": p, "count(*)": len(own), "max(n)": expected_aggregate(own, "max", "n")})
        for p in {row["p"] for row in rows}
        for own in [[row for row in rows if row["p"] == p]]
    )


@pytest.fixture
def clustered(tmp_path):
    """Ten files of ten rows; file k has n from 10 k to 10 k + 9, the last one nothing but nulls."""
    groups = []
    for k in range(10):
        values = [None if k == 9 else 10 * k + i for i in range(10)]
        rows = [(n, None if n is None else float(n), "s", dt.date(2024, 1, 1), None) for n in values]
        groups.append(
            small_tables.Group("a" if k < 5 else "b", table_of(rows, 10 * k, "a" if k < 5 else "b"))
        )
    return small_tables.make(tmp_path / "clustered", groups)


def reasons(scan):
    return scan.plan().skipped.reasons


def files_of(scan):
    return [task.row_count for task in scan.plan().tasks]


def test_a_limit_reads_as_few_files_as_hold_the_rows(clustered):
    scan = drawstring.open_table(clustered).snapshot().scan()
    assert reasons(scan.limit(25)) == {BY_LIMIT: 7}
    assert reasons(scan.limit(25).offset(10)) == {BY_LIMIT: 6}
    assert reasons(scan.where("p = 'a'").limit(10)) == {BY_LIMIT: 4, "partition": 5}
    assert BY_LIMIT not in reasons(scan.limit(1000))
    assert reasons(scan.where("n >= 15 and n < 40").limit(10)) == {BY_LIMIT: 2, "footer": 7}


def test_slices_of_unknown_count_are_read_where_the_others_do_not_suffice():
    assert beyond_limit([3, None, 4], 5) == [False, True, False]
    assert beyond_limit([3, None, 4], 8) == [False, False, False]
    assert beyond_limit([3, 4], 0) == [True, True]
    assert beyond_limit([], 5) == []


def test_a_top_n_reads_the_files_that_may_hold_it(clustered):
    scan = drawstring.open_table(clustered).snapshot().scan()
    first = scan.order_by("n", nulls_first=False, limit=15)
    assert reasons(first) == {BY_TOP_N: 8}
    assert first.to_arrow()["n"].to_pylist() == list(range(15))
    last = scan.order_by("n", descending=True, limit=15)
    assert reasons(last) == {BY_TOP_N: 8}
    assert last.to_arrow()["n"].to_pylist() == list(range(89, 74, -1))
    nulls = scan.order_by("n", limit=10)
    assert reasons(nulls) == {BY_TOP_N: 9}
    assert nulls.to_arrow()["n"].to_pylist() == [None] * 10
    # pyarrow's bounds may hide NaN, which would come first; the file of nulls is another matter.
    assert reasons(scan.order_by("x", descending=True, nulls_first=False, limit=5)) == {BY_TOP_N: 1}


def test_aggregates_are_answered_without_the_files(clustered):
    snapshot = drawstring.open_table(clustered).snapshot()
    expected = [{"p": "a", "max(n)": 49, "count(n)": 50}, {"p": "b", "max(n)": 89, "count(n)": 40}]
    assert snapshot.scan().aggregate("max(n)", "count(n)", by=["p"]).to_pylist() == expected
    snapshot.scan().aggregate("max(n)")
    for file in Path(clustered).rglob("*.parquet"):
        os.truncate(file, 0)
    assert snapshot.scan().count() == 100
    assert snapshot.scan().aggregate("max(n)", "count(n)", by=["p"]).to_pylist() == expected


def test_facts_are_looked_up_once_and_belong_to_the_files_and_columns_that_were_asked_for(
    clustered, monkeypatch
):
    asked = []

    def counted(storage, paths, columns):
        asked.append((len(paths), sorted(columns)))
        return footer_statistics(storage, paths, columns)

    monkeypatch.setattr(slice_statistics, "footer_statistics", counted)

    def ask(*functions, where=None):
        scan = drawstring.open_table(clustered).snapshot().scan()
        return tuple((scan.where(where) if where else scan).aggregate(*functions).to_pylist()[0].values())

    for _ in range(2):
        assert ask("min(n)", "max(n)") == (0, 89)
    assert asked == [(10, ["n"])]
    for _ in range(2):
        assert ask("min(n)", "max(n)", where="p = 'b'") == (50, 89)
        assert ask("min(id)", "max(id)", where="p = 'b'") == (50, 99)
        assert ask("min(n)", "max(n)", where="p = 'a'") == (0, 49)
    assert ask("min(n)", "max(n)") == (0, 89)
    drawstring.open_table(clustered).write(table_of([(500, 0.0, "s", None, None)], 100, "c"))
    assert ask("min(n)", "max(n)") == (0, 500)
    assert ask("min(n)", "max(n)", where="p = 'a'") == (0, 49)


def test_declined_aggregates_say_why(tmp_path, caplog):
    path = build(
        tmp_path, [("a", [(1, 2.0, "t", None, None)], True), ("b", [(1, 2.0, "t", None, None)], False)]
    )
    scan = drawstring.open_table(path).snapshot().scan()
    with caplog.at_level("INFO", logger="drawstring.planning"):
        assert scan.aggregate("max(x)").to_pylist() == [{"max(x)": 9.0}]
    assert "logs have to be merged" in caplog.text
    assert "bounds of x are not exact" in caplog.text


def test_runtime_filters_leave_files_out_and_switch_limits_off(clustered):
    source = drawstring.open_table(clustered).snapshot()
    request = ScanRequest(runtime_filters=(parse("n IN (3, 88)"),), limit=1)
    assert ScanPlanner(source, request).plan().skipped.reasons == {BY_RUNTIME_FILTER: 8}
    by_partition = ScanRequest(runtime_filters=(parse("p = 'b'"),))
    assert ScanPlanner(source, by_partition).plan().skipped.reasons == {BY_RUNTIME_FILTER: 5}


@pytest.mark.parametrize("text", ["sum(n)", "min(*)", "count", "max(nothing)", 3])
def test_other_aggregates_are_refused_by_name(clustered, text):
    with pytest.raises(InvalidInput):
        drawstring.open_table(clustered).snapshot().scan().aggregate(text)


def test_aggregates_of_limited_rows_are_refused(clustered):
    with pytest.raises(InvalidInput, match="AGGREGATE_OF_LIMITED_ROWS"):
        drawstring.open_table(clustered).snapshot().scan().limit(3).count()


def test_a_report_tells_what_metadata_answers_and_why_the_rest_is_read(tmp_path):
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "ts": pa.array([1, 1], pa.int64()),
            "p": ["a", "a"],
        }
    )
    groups = [small_tables.Group("a", rows, logs) for logs in (None, rows.slice(0, 1))]
    table = drawstring.open_table(small_tables.make(tmp_path / "t", groups))
    report = table.explain(aggregate=["count(*)", "max(id)"])
    assert [(each.reason, each.slices) for each in report.skipped] == [("aggregate", 1)]
    assert len(report.tasks) == 1
    assert "logs have to be merged" in report.notes[0]
    limited = table.explain(limit=1, order_by="id DESC")
    assert limited.notes == ("top n: no slice can be left out by what is known of rows and bounds",)
