"""Tables of Apache Hudi taken into the catalog by their location, read by SQL now and as of older instants.

A sample of them: the format path reads them all, and the catalog adds names, properties and time travel.
"""

from __future__ import annotations

import pytest

from tests.golden import harness

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def golden_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden-catalog")
    return lambda name: str(harness.extract(name, folder))


@pytest.fixture
def golden_table(spark, golden_path):
    """Enter a golden table into the catalog; dropping an external table keeps its files."""
    made = []

    def enter(name: str) -> str:
        options = {"x": "y", **harness.expectation(name)["read_options"]}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
        spark.sql(f"CREATE TABLE {name} USING hudi TBLPROPERTIES ({listed}) LOCATION '{golden_path(name)}'")
        made.append(name)
        return name

    yield enter
    for name in made:
        spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("name", harness.table_names()[::5])
def test_snapshot_and_time_travel(name, spark, read_path, golden_table):
    table = golden_table(name)
    for read in harness.reads_of(name):
        if read.kind not in ("snapshot", "as_of"):
            continue
        version = f"VERSION AS OF '{read.as_of}'" if read.kind == "as_of" else ""
        harness.assert_rows(read, harness.spark_rows(spark.sql(f"SELECT * FROM {table} {version}").collect()))


def test_timestamp_as_of_takes_instants_and_times(spark, read_path, golden_table):
    name = next(name for name in harness.table_names() if len(harness.expectation(name).get("as_of", ())) > 1)
    table = golden_table(name)
    read = next(read for read in harness.reads_of(name) if read.kind == "as_of")
    digits = str(read.as_of).ljust(17, "9")
    time = f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:14]}.{digits[14:17]}"
    for moment in (digits[: len(str(read.as_of))], time):
        rows = spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{moment}'").collect()
        harness.assert_rows(read, harness.spark_rows(rows))
