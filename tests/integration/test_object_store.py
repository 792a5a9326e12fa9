"""Tables on an S3-compatible store, read through V2 and V1: settings of the read reach driver and workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import harness
from tests.integration.plans import USE_V2
from tests.support.object_store import object_store

NAMES = ("v9_cow_clustered", "v9_mor_commit_time", "v6_mor_compacted")


@pytest.fixture(scope="module")
def store():
    with object_store() as found:
        yield found


@pytest.fixture(scope="module")
def tables(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uploaded")
    return {name: store.upload(Path(harness.extract(name, folder)), name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_spark_reads_a_table_of_the_store(spark, store, tables, name, use_v2):
    read = next(read for read in harness.reads_of(name) if read.kind == "snapshot")
    options = {**read.spark_options(), **store.settings, USE_V2: use_v2}
    frame = spark.read.format("hudi").options(**options).load(tables[name])
    harness.assert_rows(read, harness.spark_rows(frame.collect()))
    key = frame.select("_hoodie_record_key").first()[0]
    assert frame.where(frame["_hoodie_record_key"] == key).count() >= 1


def test_settings_of_the_session_do_as_well(spark, store, tables, settings):
    for key, value in store.settings.items():
        settings(f"spark.hadoop.{key}", value)
    found = spark.read.format("hudi").option(USE_V2, "true").load(tables["v9_mor_commit_time"])
    assert found.count() == len(found.collect()) > 0
