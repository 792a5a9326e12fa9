"""Every promotion, at every place, in every kind of file, through every reader: the values that Hudi has for it."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

import drawstring
from drawstring.planning.scan_request import ScanRequest
from drawstring.spark.read.pinned import PinnedTable, plan_message
from tests.golden import harness
from tests.integration.plans import USE_V2
from tests.integration.promotions import PROMOTIONS, ROWS, Columns, PromotedTable

SPARK_KNOWS = {name: promotion for name, promotion in PROMOTIONS.items() if promotion.in_spark}


@pytest.fixture(scope="module", params=["all", "in_spark"])
def table(request, tmp_path_factory) -> PromotedTable:
    """All promotions, which workers read, and those that the bridge can do."""
    chosen = PROMOTIONS if request.param == "all" else SPARK_KNOWS
    return PromotedTable(tmp_path_factory.mktemp(request.param) / "t", Columns(chosen)).write()


@pytest.fixture(scope="module")
def evolved(tmp_path_factory) -> PromotedTable:
    """The promotions that the bridge can do, where filters reach."""
    columns = Columns(SPARK_KNOWS, ("top", "struct"))
    return PromotedTable(tmp_path_factory.mktemp("filters") / "t", columns).write()


def arrow_rows(path: str) -> list[dict[str, Any]]:
    return harness.arrow_rows(drawstring.open_table(path).snapshot().scan().to_arrow())


def differences(found: list[dict[str, Any]], table: PromotedTable) -> list[tuple[Any, ...]]:
    """Each value that is not the one expected: id, column, found, expected."""
    rows = {row["id"]: row for row in found}
    expected = table.expected()
    assert sorted(rows) == sorted(expected)
    return [
        (key, name, rows[key][name], harness.normalise(value))
        for key, row in expected.items()
        for name, value in row.items()
        if rows[key][name] != harness.normalise(value)
    ]


def test_arrow_reads_the_values_that_hudi_has(table):
    assert differences(arrow_rows(table.path), table) == []


@pytest.mark.spark
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_spark_reads_the_values_that_hudi_has(spark, table, use_v2):
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(table.path)
    assert differences(harness.spark_rows(frame.collect()), table) == []


def test_each_way_of_reading_is_taken(table):
    pinned = PinnedTable.open(table.path, {}, session={})
    modes = {task.mode for task in plan_message(pinned, pinned.plan(ScanRequest()), planning_ms=0).tasks}
    has_all = "top_text_date" in pinned.source.schema.names
    assert modes == ({"arrow"} if has_all else {"native", "merge", "arrow"})


OPERATORS = ("=", "<", ">=", "<=>")


def conditions(table: PromotedTable) -> list[str]:
    """Conditions on promoted columns, with values that the file holds otherwise; each column has some of the kinds."""
    rows = list(table.expected().values())[:ROWS]
    # The greatest integer rounds up when it becomes a float.
    found = ["top_added IS NULL", "NOT top_added = 'x'", "top_int_float = 2147483648.0e0"]
    for number, name in enumerate(SPARK_KNOWS):
        values = [row[f"top_{name}"] for row in rows if row[f"top_{name}"] is not None]
        texts = list(dict.fromkeys(filter(None, (literal(value) for value in values))))
        if not texts:
            continue
        first, last, column = texts[0], texts[-1], f"top_{name}"
        operator, other = OPERATORS[number % 4], OPERATORS[(number + 1) % 4]
        kinds = [
            f"{column} {operator} {first}",
            f"NOT {column} {other} {last}",
            f"{column} IN ({first}, {last})",
            f"{column} IS {'NOT ' if number % 2 else ''}NULL",
            f"struct_{name}.x {operator} {last} OR {column} {other} {first}",
            f"struct_{name}.x IS {'' if number % 2 else 'NOT '}NULL AND NOT {column} IN ({last})",
        ]
        found += [kinds[number % 6], kinds[(number + 2 + number // 6) % 6]]
    return found


def literal(value: Any) -> str | None:
    """A value as SQL writes it; None for those that have no literal."""
    text = harness.normalise(value)
    if isinstance(value, bytes):
        return f"X'{text}'"
    if isinstance(value, str):
        return f"'{text}'"
    if isinstance(value, float):
        return None if text in ("nan", "inf", "-inf") else f"{text}{'' if 'e' in text else 'e0'}"
    return str(text)


@pytest.fixture(scope="module")
def kept(spark, evolved) -> dict[str, list[int]]:
    """The ids of the rows that satisfy each condition, by Spark, over rows that lie in memory."""
    from pyspark.sql import functions as F

    plain = spark.read.format("hudi").load(evolved.path).localCheckpoint()
    chosen = conditions(evolved)
    rows = plain.select("id", *(F.expr(text).alias(f"c{n}") for n, text in enumerate(chosen))).collect()
    return {text: sorted(row["id"] for row in rows if row[f"c{n}"]) for n, text in enumerate(chosen)}


def answers(frame, chosen: list[str]) -> dict[str, list[int]]:
    from pyspark.sql import functions as F

    parts = [frame.where(text).select(F.lit(text).alias("condition"), "id") for text in chosen]
    found: dict[str, list[int]] = {text: [] for text in chosen}
    for row in reduce(lambda left, right: left.unionAll(right), parts).collect():
        found[row["condition"]].append(row["id"])
    return {text: sorted(ids) for text, ids in found.items()}


@pytest.mark.spark
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_filters_mean_the_tables_values_in_spark(spark, evolved, kept, use_v2):
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(evolved.path)
    assert answers(frame, list(kept)) == kept


@pytest.mark.spark
def test_filters_mean_the_tables_values_in_arrow(evolved, kept):
    snapshot = drawstring.open_table(evolved.path).snapshot()
    for condition, ids in kept.items():
        found = snapshot.scan().select("id").where(condition).to_arrow().column("id").to_pylist()
        assert sorted(found) == ids, condition
