"""What the tests through Spark share."""

from __future__ import annotations

import uuid

import pytest

from tests.golden import harness

USE_V2 = "hoodie.datasource.read.use.dsv2"
SCANS = {"true": ("BatchScan", "LocalTableScan"), "false": ("FileScan",)}
"""What tells each road in a plan; V2 answers some aggregates from metadata, by a local scan."""


@pytest.fixture(params=["v2", "v1"])
def read_path(request, spark):
    """Reads of the test go through DataSource V2, then through V1."""
    spark.conf.set(USE_V2, "true" if request.param == "v2" else "false")
    yield request.param
    spark.conf.set(USE_V2, "true")


@pytest.fixture
def query(spark):
    """Run a query through V2 and through V1, check each plan, and return the rows if both agree."""

    def run(text: str) -> list[tuple]:
        answers = []
        for flag, scans in SCANS.items():
            spark.conf.set(USE_V2, flag)
            frame = spark.sql(text)
            plan = frame._jdf.queryExecution().toString()
            assert any(scan in plan for scan in scans)
            answers.append(sorted((tuple(row) for row in frame.collect()), key=repr))
        assert answers[0] == answers[1]
        return answers[0]

    yield run
    spark.conf.set(USE_V2, "true")


@pytest.fixture
def name(spark):
    """A table name of the test's own; the table is gone afterwards."""
    chosen = f"t_{uuid.uuid4().hex[:8]}"
    yield chosen
    spark.sql(f"DROP TABLE IF EXISTS {chosen}")


@pytest.fixture
def settings(spark):
    """Set session settings until the test ends; what the session was made with comes back then."""
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


@pytest.fixture(scope="session")
def table_path(tmp_path_factory):
    """Unpack a golden table by name and return its base path as text."""
    folder = tmp_path_factory.mktemp("tables")
    return lambda name: str(harness.extract(name, folder))


@pytest.fixture
def load(spark, table_path):
    """Load a golden table through V2 or V1."""

    def reader(name: str, *, v2: bool = True, **options: str):
        return (
            spark.read.format("hudi").options(**{USE_V2: str(v2).lower()}, **options).load(table_path(name))
        )

    return reader
