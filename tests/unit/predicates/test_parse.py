from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from drawstring.errors import InvalidInput
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
    columns_of,
    conjuncts,
)
from drawstring.predicates.builder import col
from drawstring.predicates.parse import parse

A = Column(("a",))


def compare(op, value, column=A):
    return Comparison(op, column, Literal(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 3", compare(">", 3)),
        ("3 > a", compare("<", 3)),
        ("a == 3", compare("=", 3)),
        ("a <> -3.5", compare("!=", Decimal("-3.5"))),
        ("a <=> null", compare("<=>", None)),
        ("a = 1e3", compare("=", 1000.0)),
        ("a = 'it''s'", compare("=", "it's")),
        ('a = "x"', compare("=", "x")),
        (r"a = 'it\'s'", compare("=", "it's")),
        ("`a b`.c = true", compare("=", True, Column(("a b", "c")))),
        ("a = date '2024-02-29'", compare("=", date(2024, 2, 29))),
        (
            "a = timestamp '2024-02-29 01:02:03'",
            compare("=", datetime(2024, 2, 29, 1, 2, 3, tzinfo=timezone.utc)),
        ),
        ("a = X'0aff'", compare("=", b"\x0a\xff")),
        ("a", compare("=", True)),
        ("not a", Not(compare("=", True))),
        ("a is null", IsNull(A)),
        ("a is not null", Not(IsNull(A))),
        ("a in ('x', 'y', null)", In(A, ("x", "y", None))),
        ("a not in (1)", Not(In(A, (1,)))),
        ("a between 1 and 2", And((compare(">=", 1), compare("<=", 2)))),
        ("a like 'ab%'", StartsWith(A, "ab")),
        ("a not like 'ab'", Not(compare("=", "ab"))),
        ("a like '%ab'", EndsWith(A, "ab")),
        ("a not like '%ab%'", Not(Contains(A, "ab"))),
        ("a like '%'", StartsWith(A, "")),
        ("true", Always(True)),
        ("(a = 1)", compare("=", 1)),
        ("a = 1 or a = 2 and a = 3", Or((compare("=", 1), And((compare("=", 2), compare("=", 3)))))),
        (
            "(a = 1 or a = 2) and not a = 3",
            And((Or((compare("=", 1), compare("=", 2))), Not(compare("=", 3)))),
        ),
    ],
)
def test_conditions(text, expected):
    assert parse(text) == expected
    assert parse(text.upper().replace("A", "a")) == expected or any(mark in text for mark in "'\"`")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a =",
        "a = 1 b",
        "a in ()",
        "a like '%x%y'",
        "a like 'x_y'",
        "a like 3",
        "a between 1",
        "3",
        "'x",
        "a = #",
        "a not 3",
        "a = date 'x'",
        "(" * 500,
        "a = -'x'",
        "is null",
    ],
)
def test_what_cannot_be_parsed_says_where(text):
    with pytest.raises(InvalidInput, match="at character"):
        parse(text)


def test_the_builder_makes_the_same_trees():
    built = (col("a") > 3) & (col("a").is_in(["x"]) | ~col("a").is_null())
    assert built == parse("a > 3 and (a in ('x') or not a is null)")
    assert (col("a") == 1, col("a") != 1, col("a") < 1) == (parse("a = 1"), parse("a != 1"), parse("a < 1"))
    assert (col("a") <= 1, col("a") >= 1) == (parse("a <= 1"), parse("a >= 1"))
    assert col("a").equals_null_safe(None) == parse("a <=> null")
    assert col("a").starts_with("x") == parse("a like 'x%'")
    assert col("a").ends_with("x") == parse("a like '%x'")
    assert col("a").contains("x") == parse("a like '%x%'")
    assert col("a").is_not_null() == parse("a is not null")


def test_columns_and_conjuncts():
    tree = parse("a = 1 and (b = 2 and not (c is null or true))")
    assert {column.path for column in columns_of(tree)} == {("a",), ("b",), ("c",)}
    assert len(conjuncts(tree)) == 3
