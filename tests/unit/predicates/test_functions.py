"""Functions of columns: what is known of their results holds for every value that the column may have."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.predicates.ast import Call, Column, Comparison, Computed, In, Literal, Not
from drawstring.predicates.evaluate import ANYTHING, possible_outcomes
from drawstring.predicates.facts import ColumnFacts
from drawstring.predicates.functions import facts_of_call

C = Column(("c",))
UTC = dt.timezone.utc
ZONED, LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def cast(wanted: pa.DataType, operand: Column | Call = C) -> Call:
    return Call("cast", operand, type=wanted)


def extract(field: str, operand: Column | Call = C) -> Call:
    return Call("extract", operand, field=field)


def outcomes(call: Call, op: str, literal, facts: ColumnFacts):
    return possible_outcomes(Computed(call, Comparison(op, C, Literal(literal))), lambda _: facts)


def between(kind: pa.DataType, lower, upper) -> ColumnFacts:
    return ColumnFacts(kind, lower, upper, may_be_null=False)


DAY = dt.date(2024, 2, 29)
CASES = [
    (Call("trim", C, ("sxs",), place=1), "=", "x", between(pa.string(), "s", "s"), ANYTHING),
    (cast(pa.int64()), ">", 9, between(pa.int32(), 1, 9), {False}),
    (cast(pa.float64()), "<", 9.5, between(pa.int32(), 1, 9), {True}),
    (cast(pa.float64()), "=", 2.0**53, between(pa.int64(), 2**53 + 1, 2**53 + 1), {True}),
    (cast(pa.int16()), "=", 1, between(pa.int64(), 0, 2**40), ANYTHING),
    (cast(pa.string()), "=", "12", between(pa.int32(), 12, 12), {True}),
    (cast(pa.string()), "=", "12", between(pa.int32(), 12, 13), ANYTHING),
    (cast(pa.string()), "<", "2024-03", between(pa.date32(), DAY, DAY), {True}),
    (cast(pa.string()), "<", "2024-03", ColumnFacts(pa.date32(), DAY), ANYTHING),
    (cast(pa.int32()), "=", 7, between(pa.string(), "007", "007"), {True}),
    (cast(pa.int32()), "=", 7, between(pa.string(), "7.5", "7.5"), ANYTHING),
    (cast(pa.int32()), "=", 7, between(pa.string(), "\u0667", "\u0667"), ANYTHING),
    (cast(pa.date32()), "=", DAY, between(pa.string(), "2024-02-29", "2024-02-29"), {True}),
    (cast(pa.date32()), "=", DAY, between(pa.string(), "2024-2-29", "2024-2-29"), ANYTHING),
    (
        cast(pa.decimal128(5, 1)),
        "=",
        Decimal("0.2"),
        between(pa.decimal128(5, 2), Decimal("0.15"), Decimal("0.24")),
        {True},
    ),
    (cast(pa.decimal128(3, 1)), "=", Decimal(1), between(pa.int32(), 1, 100), ANYTHING),
    (cast(pa.int32()), "=", 1, between(pa.bool_(), True, True), {True}),
    (extract("YEAR"), "=", 2023, between(pa.date32(), DAY, dt.date(2025, 1, 1)), {False}),
    (extract("MONTH"), "=", 2, between(pa.date32(), DAY, dt.date(2024, 3, 1)), {True, False}),
    (extract("MONTH"), "=", 2, between(pa.date32(), DAY, dt.date(2025, 3, 1)), ANYTHING),
    (extract("DAY"), ">=", 29, between(pa.date32(), DAY, DAY), {True}),
    (
        extract("HOUR"),
        "=",
        5,
        between(LOCAL, dt.datetime(2024, 1, 1, 5), dt.datetime(2024, 1, 1, 5, 59)),
        {True},
    ),
    (
        extract("HOUR"),
        "=",
        5,
        between(ZONED, dt.datetime(2024, 1, 1, 5, tzinfo=UTC), dt.datetime(2024, 1, 1, 5, tzinfo=UTC)),
        ANYTHING,
    ),
    (
        Call("trunc", C, ("MM",)),
        "=",
        dt.date(2024, 2, 1),
        between(pa.date32(), dt.date(2024, 2, 1), DAY),
        {True},
    ),
    (Call("trunc", C, ("dd",)), "=", dt.date(2024, 2, 1), between(pa.date32(), DAY, DAY), ANYTHING),
    (Call("date_add", C, (1,)), "=", dt.date(2024, 3, 1), between(pa.date32(), DAY, DAY), {True}),
    (Call("upper", C), "=", "AB", between(pa.string(), "aB", "aB"), {True}),
    (Call("upper", C), "=", "SS", between(pa.string(), "ß", "ß"), ANYTHING),
    (Call("upper", C), "=", "AB", between(pa.string(), "aa", "ac"), ANYTHING),
    (Call("lower", C), "!=", "ab", between(pa.string(), "AB", "AB"), {False}),
    (Call("substring", C, (1, 2)), "=", "cd", between(pa.string(), "aax", "abz"), {False}),
    (Call("substring", C, (1, 2)), "=", "ab", between(pa.string(), "abx", "abz"), {True}),
    (Call("substring", C, (2, 2)), "=", "ab", between(pa.string(), "abx", "abz"), ANYTHING),
    (Call("substring", C, (2,)), "=", "bx", between(pa.string(), "abx", "abx"), {True}),
    (Call("substring", C, (-1, 1)), "=", "x", between(pa.string(), "abx", "abx"), ANYTHING),
    (Call("trim", C), "=", "a", between(pa.string(), " a ", " a "), {True}),
    (Call("ltrim", C, ("x",)), "=", "a", between(pa.string(), "xxa", "xxa"), {True}),
    (Call("concat", C, ("p", "s"), 1), "=", "pas", between(pa.string(), "a", "a"), {True}),
    (Call("char_length", C), "=", 2, between(pa.string(), "ü€", "ü€"), {True}),
    (Call("upper", cast(pa.string())), "=", "TRUE", between(pa.bool_(), True, True), {True}),
    (Call("nobody knows", C), "=", 1, between(pa.int32(), 1, 1), ANYTHING),
]


@pytest.mark.parametrize(("call", "op", "literal", "facts", "wanted"), CASES)
def test_outcomes_follow_from_what_a_function_makes_of_the_bounds(call, op, literal, facts, wanted):
    assert outcomes(call, op, literal, facts) == wanted


def test_nulls_stay_nulls():
    facts = ColumnFacts(pa.date32(), DAY, DAY)
    assert outcomes(extract("YEAR"), "=", 2024, facts) == {True, None}
    assert outcomes(extract("YEAR"), "=", 2024, ColumnFacts(pa.date32(), all_null=True)) == {None}
    years = Computed(extract("YEAR"), In(C, (2023, 2025)))
    assert possible_outcomes(Not(years), lambda _: between(pa.date32(), DAY, DAY)) == {True}
    assert possible_outcomes(years, lambda _: None) == ANYTHING


@pytest.mark.parametrize("hours", [-18, -12, 0, 14, 18])
def test_a_moment_is_a_day_in_whatever_zone_the_session_has(hours):
    moment = dt.datetime(2024, 1, 1, 7, tzinfo=UTC)
    day = moment.astimezone(dt.timezone(dt.timedelta(hours=hours))).date()
    facts = between(ZONED, moment, moment)
    assert True in outcomes(cast(pa.date32()), "=", day, facts)
    assert outcomes(cast(pa.date32()), "=", day + dt.timedelta(days=3), facts) == {False}
    assert outcomes(extract("YEAR", cast(pa.date32())), ">", 2024, facts) == {False}
    midnight = dt.datetime(2024, 2, 29, tzinfo=dt.timezone(dt.timedelta(hours=hours)))
    assert True in outcomes(cast(ZONED), "=", midnight, between(pa.date32(), DAY, DAY))


FIELDS = {
    "YEAR": pc.year,
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "DAY": pc.day,
    "DAY_OF_YEAR": pc.day_of_year,
    "WEEK": pc.iso_week,
    "YEAR_OF_WEEK": pc.iso_year,
}


@given(
    st.sampled_from(sorted(FIELDS)),
    st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)),
    st.lists(st.integers(0, 500), min_size=1, max_size=5),
)
def test_fields_of_all_days_lie_within_the_bounds(field, first, distances):
    days = [first + dt.timedelta(days=distance) for distance in distances]
    facts = facts_of_call(extract(field), between(pa.date32(), min(days), max(days)))
    if facts is not None:
        found = FIELDS[field](pa.array(days, pa.date32())).to_pylist()
        assert facts.lower <= min(found)
        assert max(found) <= facts.upper
