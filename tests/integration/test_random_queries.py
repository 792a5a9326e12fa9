"""Random queries over random tables, through V2 and V1, against the same queries over the rows themselves."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.plans import USE_V2
from tests.support import random_tables
from tests.support.random_sql import BAG, COUNTED, Queries


def told(value: Any) -> Any:
    """Equal values as equal texts: NaN is itself, zeros have no sign."""
    if isinstance(value, float):
        return repr(0.0 if value == 0 else value)
    return [told(each) for each in value] if isinstance(value, (tuple, list)) else repr(value)


def answer(spark, how: str, query: str) -> Any:
    rows = [repr(told(tuple(row))) for row in spark.sql(query).collect()]
    return len(rows) if how == COUNTED else Counter(rows) if how == BAG else rows


def check(spark, folder, seed: int, queries: int, use_v2: str) -> None:
    made = random_tables.make(str(folder / "t"), seed)
    file = str(folder / "rows.parquet")
    pq.write_table(pa.Table.from_pylist(made.rows, made.schema), file)
    # Rows that are not read from files: of those Spark would skip some by statistics, too.
    plain = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(file)
    spark.createDataFrame(plain.collect(), plain.schema).createOrReplaceTempView("expected")
    spark.read.format("hudi").option(USE_V2, use_v2).load(made.path).createOrReplaceTempView("found")
    drawn = Queries(made, random.Random(seed))
    for _ in range(queries):
        how, query = drawn.query()
        wanted = answer(spark, how, query.format("expected"))
        assert answer(spark, how, query.format("found")) == wanted, (made.about, query)


@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_answers_are_those_over_the_rows(spark, tmp_path, use_v2):
    check(spark, tmp_path, 11, 12, use_v2)


@pytest.mark.torture
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("seed", range(200, 260))
def test_thousands_of_answers_are_those_over_the_rows(spark, tmp_path, seed, use_v2):
    check(spark, tmp_path, seed, 100, use_v2)
