"""Facts never exclude a row that Arrow's exact evaluation keeps, and that agrees with a plain reference."""

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.errors import InvalidInput
from drawstring.predicates.arrow_filter import filter_batch, selection, to_expression
from drawstring.predicates.ast import (
    Always,
    And,
    Column,
    Comparison,
    Contains,
    EndsWith,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
)
from drawstring.predicates.evaluate import facts_of_values, may_match, must_match, possible_outcomes
from drawstring.predicates.facts import ColumnFacts
from drawstring.predicates.parse import parse
from tests.support.row_evaluator import outcome as reference
from tests.support.row_evaluator import sort_key as key

NAN = float("nan")
OPS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
UTC = pa.timestamp("us", tz="UTC")


ints = st.integers(-4, 4)
floats = st.sampled_from([-1.5, 0.0, 1.0, 2.5, NAN, float("inf"), -float("inf")])
texts = st.sampled_from(["", "a", "ab", "abc", "b", "é", "\uff5e", "😀"])
columns = {"i": (pa.int32(), ints), "f": (pa.float64(), floats), "s": (pa.string(), texts)}


def leaves():
    def of(name):
        column, values = Column((name,)), columns[name][1]
        options = [
            st.builds(
                Comparison, st.sampled_from(OPS), st.just(column), st.builds(Literal, st.none() | values)
            ),
            st.builds(In, st.just(column), st.lists(st.none() | values, min_size=1, max_size=3).map(tuple)),
            st.just(IsNull(column)),
        ]
        if name == "s":
            options += [st.builds(kind, st.just(column), texts) for kind in (StartsWith, EndsWith, Contains)]
        return st.one_of(options)

    return st.one_of([of(name) for name in columns] + [st.builds(Always, st.booleans())])


def compound(inner):
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, inner)


predicates = st.recursive(leaves(), compound, max_leaves=6)
rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in columns.items()}),
    min_size=1,
    max_size=6,
)


def batch_of(rows_):
    return pa.RecordBatch.from_pylist(
        rows_, schema=pa.schema([(name, t) for name, (t, _) in columns.items()])
    )


def facts_of(rows_):
    def facts(column):
        name = column.path[0]
        present = [row[name] for row in rows_ if row[name] is not None]
        nulls = len(present) < len(rows_)
        if not present:
            return ColumnFacts(columns[name][0], all_null=True)
        upper = None if name == "f" else max(present)
        lower = min(present, key=key)
        return ColumnFacts(columns[name][0], None if key(lower)[0] else lower, upper, may_be_null=nulls)

    return facts


@settings(max_examples=400, deadline=None)
@given(predicates, rows)
def test_arrow_answers_as_the_reference(predicate, rows_):
    batch = batch_of(rows_)
    expected = [reference(predicate, row) for row in rows_]
    assert selection(batch, predicate).to_pylist() == expected
    kept = [row for row, outcome in zip(rows_, expected, strict=True) if outcome]
    assert filter_batch(batch, predicate).num_rows == len(kept)
    table = pa.Table.from_batches([batch])
    assert table.filter(to_expression(predicate, batch.schema)).num_rows == len(kept)


@settings(max_examples=400, deadline=None)
@given(predicates, rows)
def test_facts_cover_every_outcome_of_their_rows(predicate, rows_):
    expected = {reference(predicate, row) for row in rows_}
    outcomes = possible_outcomes(predicate, facts_of(rows_))
    assert expected <= outcomes
    assert possible_outcomes(predicate, lambda _: None) >= expected


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, min_size=1), st.sampled_from(OPS), texts)
def test_bounds_in_javas_order_of_texts_exclude_nothing_wrongly(values, op, literal):
    ordered = sorted(values, key=lambda text: text.encode("utf-16-be"))
    facts = ColumnFacts(pa.string(), ordered[0], ordered[-1], may_be_null=False)
    for predicate in (Comparison(op, Column(("s",)), Literal(literal)), StartsWith(Column(("s",)), literal)):
        expected = {reference(predicate, {"s": value}) for value in values}
        assert expected <= possible_outcomes(predicate, lambda _: facts)


decimals = st.decimals(-1000, 1000, allow_nan=False, places=2)
numbers_by_type = {
    pa.float64(): st.floats(-1000, 1000) | decimals.map(float) | st.just(float(2**53)),
    pa.float32(): st.floats(-1000, 1000, width=32),
    pa.decimal128(10, 2): decimals,
    pa.int64(): st.integers(-1000, 1000) | st.integers(2**53 - 3, 2**53 + 3),
}
number_literals = (
    decimals | decimals.map(float) | st.integers(-3, 3) | st.sampled_from([2**53 + 1, 2.0**53, 10**400])
)


@settings(max_examples=500, deadline=None)
@given(st.data(), st.sampled_from(list(numbers_by_type)), st.sampled_from(OPS))
def test_bounds_exclude_no_number_that_a_literal_of_another_type_matches(data, arrow, op):
    values = data.draw(st.lists(numbers_by_type[arrow], min_size=1, max_size=3))
    literal = data.draw(number_literals | st.sampled_from(values))
    batch = pa.record_batch([pa.array(values, arrow)], ["c"])
    stored = batch.column(0).to_pylist()
    facts = ColumnFacts(arrow, min(stored), max(stored), may_be_null=False)
    for predicate in (Comparison(op, Column(("c",)), Literal(literal)), In(Column(("c",)), (literal,))):
        found = set(selection(batch, predicate).to_pylist())
        assert found <= possible_outcomes(predicate, lambda _: facts)


def test_a_decimal_literal_finds_the_double_that_reads_the_same():
    facts = ColumnFacts(pa.float64(), 0.1, 0.3, may_be_null=False)
    for condition in ("c = 0.1", "c = 0.3", "c >= 0.3", "c <= 0.1", "c in (0.3)"):
        assert may_match(parse(condition), lambda _: facts), condition


def test_partition_values_decide_exactly_and_other_columns_stay_open():
    facts = facts_of_values({"day": date(2024, 1, 2), "p": None}, {"day": pa.date32(), "p": pa.string()})
    assert must_match(parse("day = '2024-01-02'"), facts)
    assert not may_match(parse("day > date '2024-01-02'"), facts)
    assert not may_match(parse("p = 'x'"), facts)
    assert must_match(parse("p is null"), facts)
    assert may_match(parse("day = '2024-01-02' and other = 3"), facts)
    assert not may_match(parse("day = '2023-01-02' and other = 3"), facts)
    assert may_match(parse("day = 'not a day'"), facts)


@pytest.mark.parametrize(
    ("arrow", "values", "condition", "kept"),
    [
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2")], "c = 1.5", 1),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2")], "c < 1.505", 1),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2")], "c in (2, 7)", 1),
        (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("2")], "c >= 1.5e0", 2),
        (pa.int32(), [1, 2], "c > 1.5", 1),
        (pa.int32(), [1, 2], "c < 99999999999999999999", 2),
        (pa.int32(), [1, 2], "c in (2, 99999999999)", 1),
        (pa.int32(), [1, 2], "c in (2, 1.5)", 1),
        (pa.int64(), [1, 2], "c = '2'", 1),
        (pa.float32(), [0.1, NAN], "c > 0.1", 2),
        (pa.date32(), [date(2024, 1, 1)], "c >= '2024-01-01'", 1),
        (pa.date32(), [date(2024, 1, 1)], "c in ('2024-01-01')", 1),
        (UTC, [datetime(2024, 1, 1, tzinfo=timezone.utc)], "c = timestamp '2024-01-01 00:00:00'", 1),
        (pa.timestamp("us"), [datetime(2024, 1, 1)], "c = '2024-01-01 00:00:00'", 1),
        (pa.bool_(), [True, False], "c", 1),
        (pa.binary(), [b"a", b"b"], "c = X'61'", 1),
    ],
)
def test_literals_take_the_type_of_the_column(arrow, values, condition, kept):
    batch = pa.record_batch([pa.array([*values, None], arrow)], ["c"])
    assert filter_batch(batch, parse(condition)).num_rows == kept


def test_nested_columns_are_reached_ignoring_case():
    batch = pa.RecordBatch.from_pylist([{"S": {"X": 1}}, {"S": {"X": 2}}, {"S": None}])
    assert filter_batch(batch, parse("s.x = 2")).to_pylist() == [{"S": {"X": 2}}]
    table = pa.Table.from_batches([batch])
    assert table.filter(to_expression(parse("s.x = 2"), batch.schema)).num_rows == 1


def test_unknown_columns_and_incomparable_literals_are_errors_when_rows_are_filtered():
    batch = pa.RecordBatch.from_pylist([{"a": 1}])
    with pytest.raises(InvalidInput, match="Existing columns: a"):
        filter_batch(batch, parse("b = 1"))
    with pytest.raises(InvalidInput, match="Cannot compare"):
        filter_batch(batch, parse("a = 'x'"))
