"""Every golden read without Spark."""

from __future__ import annotations

import pytest

import drawstring
from tests.golden import harness
from tests.golden.harness import Read


@pytest.mark.parametrize("read", harness.all_reads(), ids=lambda read: read.id)
def test_read(read: Read, golden_path):
    harness.assert_rows(read, harness.arrow_rows(_read(golden_path(read.table), read)))


@pytest.mark.parametrize("name", harness.table_names())
def test_schema(name: str, golden_path):
    table = drawstring.open_table(golden_path(name))
    fields = harness.fields_of(harness.spark_schema(table.snapshot().schema))
    assert fields in [harness.fields_of(schema) for schema in harness.accepted_schemas(name)]


def _read(path: str, read: Read):
    table = drawstring.open_table(path, options=read.options)
    if read.kind == "incremental":
        return table.incremental(begin=read.begin, end=read.end).scan().to_arrow()
    if read.kind == "read_optimized":
        return table.snapshot(query_type="read_optimized").scan().to_arrow()
    return table.snapshot(as_of=read.as_of).scan().to_arrow()
