"""Filters that Spark pushes down change no answer: filtered reads equal the plain read, filtered afterwards.

The tables are those whose files hold a column differently than the table has it, or whose partition paths are not
the columns' values: there a filter on the wrong side of a conversion would lose rows without a word.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce

import pytest

from tests.golden import harness

pytestmark = pytest.mark.spark

TABLES = (
    "v6_cow_dropped_partition_columns",
    "v6_cow_time_keygen_datestring",
    "v8_mor_on_read_nested",
    "v9_cow_null_partition",
    "v9_mor_column_stats",
    "v9_mor_promote_num",
    "v9_mor_typed_partition_date",
)


@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("name", TABLES)
def test_pushed_filters_change_no_answer(name, use_v2, spark, golden_path):
    compare(name, use_v2, spark, golden_path, every=4)


@pytest.mark.torture
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("name", TABLES)
def test_every_pushed_filter_changes_no_answer(name, use_v2, spark, golden_path):
    compare(name, use_v2, spark, golden_path, every=1)


def compare(name, use_v2, spark, golden_path, *, every):
    """Each filter is a scan of its own; the roads take turns, so that two of them ask about every column."""
    reader = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", use_v2)
    frame = reader.options(**harness.expectation(name)["read_options"]).load(golden_path(name))
    plain = frame.localCheckpoint()
    first = 0 if use_v2 == "true" else every // 2
    found = list(filters(frame.schema, plain.collect()))[first::every]
    assert answers(frame, found) == kept(plain, found)
    label, condition = found[len(found) // 2]
    assert frame.where(condition).count() == plain.where(condition).count(), label


def filters(schema, rows):
    """For each column, also inside structs: is it null, and how it compares with some of its values."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    for path, kind in leaves(schema):
        column, name = F.col(".".join(f"`{part}`" for part in path)), ".".join(path)
        yield f"{name} is null", column.isNull()
        values = [value for value in (reached(row, path) for row in rows) if value is not None]
        if not values or path[0].startswith("_hoodie") or isinstance(kind, (T.ArrayType, T.MapType)):
            continue
        value = sorted(values)[len(values) // 2]
        literal = F.lit(value)
        yield f"{name} = {value!r}", column == literal
        yield f"not {name} <= {value!r}", ~(column <= literal)
        yield f"{name} < {value!r} or null", (column < literal) | column.isNull()
        yield f"{name} <=> {value!r}", column.eqNullSafe(literal)
        yield f"not {name} in", ~column.isin(value, sorted(values)[0])
        if isinstance(kind, T.StringType):
            yield f"{name} like {value[:2]!r}%", column.startswith(value[:2])


def leaves(schema, prefix=()):
    for field in schema.fields:
        if hasattr(field.dataType, "fields"):
            yield from leaves(field.dataType, (*prefix, field.name))
        else:
            yield (*prefix, field.name), field.dataType


def reached(row, path):
    for name in path:
        row = None if row is None else row[name]
    return row


def answers(frame, found):
    """The rows that each filter keeps, counted by their text; one job for all filters."""
    from pyspark.sql import functions as F

    parts = [
        frame.where(condition).select(F.lit(label).alias("filter"), text(frame).alias("row"))
        for label, condition in found
    ]
    rows = reduce(lambda left, right: left.unionAll(right), parts).collect()
    return Counter((row["filter"], row["row"]) for row in rows)


def kept(plain, found):
    """The same, of rows that were read without any filter."""
    conditions = [condition.alias(f"condition {n}") for n, (_, condition) in enumerate(found)]
    rows = plain.select(text(plain), *conditions).collect()
    return Counter((label, row[0]) for row in rows for n, (label, _) in enumerate(found) if row[n + 1])


def text(frame):
    from pyspark.sql import functions as F

    return F.to_json(F.struct(*(F.col(f"`{column}`") for column in frame.columns)))
