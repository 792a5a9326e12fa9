"""Random conditions, orders, limits and aggregates over real tables, against plain Python over all their rows.

Tables are copy-on-write and merge-on-read, with and without logs, with column statistics and without; some are random
themselves (`random_tables`). Conditions compare columns with values that the table has, or nearly has.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from decimal import Context, Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drawstring
from drawstring.predicates.ast import (
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
    Predicate,
    StartsWith,
)
from tests.support import random_tables
from tests.support.row_evaluator import Row, aggregated, matching, ordered, sort_key, value_of

GOLDEN = (
    "v9_mor_column_stats",
    "v9_mor_log_only",
    "v9_cow_types",
    "v9_mor_no_meta",
    "v6_mor_compacted",
    "v2_mor_types",
    "v9_cow_two_level",
    "v9_mor_typed_partition_date",
    "v9_mor_on_read",
    "v9_mor_on_read_nested",
)
SEEDS = range(4)
MANY_SEEDS = range(100, 160)
OPS = ("=", "!=", "<", "<=", ">", ">=", "<=>")
_COMPARABLE = (int, float, str, bytes, dt.date, Decimal)


class Subject:
    """A table, and all its rows as read without any condition."""

    def __init__(self, path: str) -> None:
        self.snapshot = drawstring.open_table(path).snapshot()
        table = self.snapshot.scan().to_arrow()
        self.rows: list[Row] = table.to_pylist()
        self.paths = [path for field in table.schema for path in _paths(field, ())]
        self.values = {path: [value_of(row, path) for row in self.rows] for path in self.paths}


def _paths(field: pa.Field, above: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Columns that compare, also within structs; their names are free of dots."""
    kind = field.type
    if pa.types.is_struct(kind):
        return [path for inner in kind for path in _paths(inner, (*above, field.name))]
    return [] if pa.types.is_nested(kind) or pa.types.is_time(kind) else [(*above, field.name)]


@pytest.fixture(scope="module")
def subjects(golden_path, tmp_path_factory) -> dict[str, Subject]:
    return {name: Subject(golden_path(name)) for name in GOLDEN}


def written(folder: Any, seed: int) -> Subject:
    """A random table; it shows the rows that were written."""
    made = random_tables.make(str(folder / str(seed)), seed)
    subject = Subject(made.path)
    shown = [{name: row[name] for name in made.schema.names} for row in subject.rows]
    assert bag(shown) == bag(made.rows), made.about
    return subject


def _near(value: Any) -> list[Any]:
    """A value, and others beside it."""
    if isinstance(value, bool):
        return [value]
    if isinstance(value, int):
        return [value, value - 1, value + 1]
    if isinstance(value, float):
        return (
            [value, math.nan, 0.0] if math.isnan(value) else [value, math.nextafter(value, math.inf), -value]
        )
    if isinstance(value, str):
        return [value, value[:1], value + "0", value[-1:]]
    if isinstance(value, dt.datetime):
        return [value, value + dt.timedelta(microseconds=1)]
    if isinstance(value, dt.date):
        return [value, value + dt.timedelta(days=1)] if value < dt.date.max else [value]
    if isinstance(value, bytes):
        return [value, value[:1], value + b"\0"]
    return [value]


@st.composite
def leaves(draw: Any, subject: Subject) -> Predicate:
    path = draw(st.sampled_from(subject.paths))
    column = Column(path)
    seen = [value for value in subject.values[path] if isinstance(value, _COMPARABLE)]
    if not seen or draw(st.integers(0, 9)) == 0:
        return IsNull(column)
    literals = st.sampled_from(seen).flatmap(lambda value: st.sampled_from(_near(value)))
    kind = draw(st.integers(0, 3))
    if kind == 0:
        values = draw(st.lists(literals | st.none(), min_size=1, max_size=20))
        return In(column, tuple(values))
    if kind == 1 and isinstance(seen[0], str):
        return draw(st.sampled_from([StartsWith, EndsWith, Contains]))(column, draw(literals))
    return Comparison(draw(st.sampled_from(OPS)), column, Literal(draw(literals)))


def conditions(subject: Subject) -> st.SearchStrategy[Predicate]:
    def compound(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, inner)

    return st.recursive(leaves(subject), compound, max_leaves=4)


def bag(rows: list[Row]) -> Counter[str]:
    return Counter(repr(sorted((name, _told(value)) for name, value in row.items())) for row in rows)


def _told(value: Any) -> Any:
    """Equal values as equal texts: NaN, decimals of any exponent, moments of any class of zone."""
    if isinstance(value, dict):
        return {name: _told(inner) for name, inner in value.items()}
    if isinstance(value, Decimal):
        return value.normalize(Context(prec=80))
    return value.isoformat() if isinstance(value, dt.datetime) else value


def check(subject: Subject, data: Any) -> None:
    """Ask one random question in every way."""
    predicate = data.draw(conditions(subject), label="condition")
    scan = subject.snapshot.scan().where(predicate)
    expected = matching(subject.rows, predicate)
    assert bag(scan.to_arrow().to_pylist()) == bag(expected)
    assert scan.count() == len(expected)
    check_limit(scan, expected, data)
    check_order(subject, scan, expected, data)
    check_aggregates(subject, scan, expected, data)


def check_limit(scan: Any, expected: list[Row], data: Any) -> None:
    limit, offset = data.draw(st.integers(0, 12), label="limit"), data.draw(st.integers(0, 3), label="offset")
    found = scan.limit(limit).offset(offset).to_arrow().to_pylist()
    assert len(found) == max(0, min(limit, len(expected) - offset))
    assert not bag(found) - bag(expected)


def check_order(subject: Subject, scan: Any, expected: list[Row], data: Any) -> None:
    path = data.draw(st.sampled_from(subject.paths), label="order by")
    descending, nulls_first = data.draw(st.booleans()), data.draw(st.booleans())
    limit, offset = data.draw(st.integers(0, 8)), data.draw(st.integers(0, 3))
    top = scan.order_by(".".join(path), descending=descending, nulls_first=nulls_first, limit=limit)
    found = top.offset(offset).to_arrow().to_pylist()
    keys = ordered((value_of(row, path) for row in expected), descending=descending, nulls_first=nulls_first)
    wanted = keys[offset : offset + limit]
    assert list(map(_key, (value_of(row, path) for row in found))) == list(map(_key, wanted))
    assert not bag(found) - bag(expected)


def check_aggregates(subject: Subject, scan: Any, expected: list[Row], data: Any) -> None:
    path = data.draw(st.sampled_from(subject.paths), label="aggregate")
    fields = subject.snapshot.scan().source.state.config.partition_fields
    by = [name for name in fields if (name,) in subject.paths]
    by = by if data.draw(st.booleans()) else []
    name = ".".join(path)
    table = scan.aggregate("count(*)", f"count({name})", f"min({name})", f"max({name})", by=by)
    groups: dict[tuple[Any, ...], list[Any]] = {} if by else {(): []}
    for row in expected:
        groups.setdefault(tuple(row[each] for each in by), []).append(value_of(row, path))
    found = {tuple(row.values())[: len(by)]: tuple(row.values())[len(by) :] for row in _tuples(table)}
    assert found.keys() == groups.keys()
    for group, values in groups.items():
        wanted = (len(values), *(aggregated(each, values) for each in ("count", "min", "max")))
        assert list(map(_key, found[group])) == list(map(_key, wanted))


def _tuples(table: pa.Table) -> list[dict[int, Any]]:
    columns = [column.to_pylist() for column in table.columns]
    return [dict(enumerate(row)) for row in zip(*columns, strict=True)]


def _key(value: Any) -> Any:
    return None if value is None else sort_key(value)


@pytest.mark.parametrize("name", GOLDEN)
@settings(max_examples=20)
@given(data=st.data())
def test_answers_are_those_of_plain_python(name, subjects, data):
    check(subjects[name], data)


@pytest.fixture(scope="module")
def random_subjects(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    return cache(lambda seed: written(folder, seed))


@pytest.mark.parametrize("seed", SEEDS)
@settings(max_examples=20)
@given(data=st.data())
def test_answers_over_random_tables_are_those_of_plain_python(seed, random_subjects, data):
    check(random_subjects(seed), data)


@pytest.mark.torture
@pytest.mark.parametrize("name", GOLDEN)
@settings(max_examples=3000)
@given(data=st.data())
def test_thousands_of_answers_are_those_of_plain_python(name, subjects, data):
    check(subjects[name], data)


@pytest.mark.torture
@pytest.mark.parametrize("seed", MANY_SEEDS)
@settings(max_examples=400)
@given(data=st.data())
def test_thousands_of_answers_over_random_tables_are_those_of_plain_python(seed, random_subjects, data):
    check(random_subjects(seed), data)
