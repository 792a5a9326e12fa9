"""Reads of one table with different options, side by side in one query, in one session and in two."""

from __future__ import annotations

import pytest

from tests.integration.plans import USE_V2

TABLE = "v9_mor_commit_time"
FIELD, MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"
WITHOUT_LAST = {FIELD: "s", MARKER: "last"}
QUERY_TYPE = "hoodie.datasource.query.type"
FIRST_COMMIT = {"as.of.instant": "20261115203110966"}


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


@pytest.mark.parametrize("v2", [True, False], ids=["v2", "v1"])
def test_unions_and_joins_keep_the_options_of_each_side(load, v2):
    reads = [{}, WITHOUT_LAST, FIRST_COMMIT, {QUERY_TYPE: "read_optimized"}]
    frames = [load(TABLE, v2=v2, **options) for options in reads]
    alone = [ids(load(TABLE, v2=v2, **options)) for options in reads]
    assert alone[0] != alone[1] != alone[2]
    for left, left_ids in zip(frames, alone, strict=True):
        for right, right_ids in zip(frames, alone, strict=True):
            assert ids(left.select("id").union(right.select("id"))) == sorted(left_ids + right_ids)
            joined = left.select("id").join(right.select("id"), "id")
            assert ids(joined) == sorted(set(left_ids) & set(right_ids))


@pytest.fixture
def activate(spark):
    """Make a session the active one: before Spark 4, a DataFrameReader leaves that to its caller."""
    sessions = spark._jvm.org.apache.spark.sql.SparkSession
    yield lambda session: sessions.setActiveSession(session._jsparkSession)
    sessions.setActiveSession(spark._jsparkSession)


def test_two_sessions_read_one_table_each_by_its_own_settings(spark, load, activate, table_path):
    other = spark.newSession()
    for key, value in WITHOUT_LAST.items():
        other.conf.set(key, value)
    ours = load(TABLE)
    activate(other)
    theirs = other.read.format("hudi").option(USE_V2, "true").load(table_path(TABLE))
    activate(spark)
    expected = ids(load(TABLE, **WITHOUT_LAST))
    assert ids(theirs) == expected != ids(ours)
    assert ids(theirs) == expected


def test_settings_of_the_session_count_after_three_hundred_other_snapshots(spark, load, settings):
    settings(QUERY_TYPE, "read_optimized")
    frame = load(TABLE)
    spark.conf.unset(QUERY_TYPE)
    expected = ids(load(TABLE, **{QUERY_TYPE: "read_optimized"}))
    for number in range(300):
        load(TABLE, **{"hoodie.datasource.read.incr.path.glob": f"/{number}"})
    assert ids(frame) == expected
