"""Every golden read through Spark, by DataSource V2 and by V1."""

from __future__ import annotations

import pytest

from tests.golden import harness
from tests.golden.harness import Read

pytestmark = pytest.mark.spark


@pytest.fixture(params=["v2", "v1"])
def reader(request, spark):
    """A DataFrameReader for one of the two paths."""
    use_v2 = "true" if request.param == "v2" else "false"
    return lambda: spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", use_v2)


def _marked(read: Read):
    """Which rows a time or a range holds is decided before Spark gets tasks, whose rows look like the snapshot's."""
    is_snapshot = read.kind in ("snapshot", "read_optimized")
    return pytest.param(read, id=read.id, marks=() if is_snapshot else pytest.mark.same_on_every_line)


@pytest.mark.parametrize("read", [_marked(read) for read in harness.all_reads()])
def test_read(read: Read, reader, golden_path):
    frame = reader().options(**read.spark_options()).load(golden_path(read.table))
    harness.assert_rows(read, harness.spark_rows(frame.collect()))


@pytest.mark.parametrize("name", harness.table_names())
def test_schema(name: str, reader, golden_path):
    frame = reader().options(**harness.expectation(name)["read_options"]).load(golden_path(name))
    fields = harness.fields_of(frame.schema.simpleString())
    assert fields in [harness.fields_of(schema) for schema in harness.accepted_schemas(name)]
