"""A small table of trips, written without Spark and read back by two readers."""

from __future__ import annotations

import hudi
import pyarrow as pa

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


def rows(*found: tuple[int, str, int, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def seen(table, *columns: str) -> list[tuple]:
    """Return the sorted rows, the same to drawstring and to hudi-rs."""
    names = columns or ("id", "city", "v")
    ours = table.snapshot().scan().to_arrow().to_pylist()
    found = sorted((tuple(row[name] for name in names) for row in ours), key=repr)
    batches = hudi.HudiTableBuilder.from_base_uri(table.path).build().read()
    theirs = [row for batch in batches for row in pa.record_batch(batch).to_pylist()]
    assert found == sorted((tuple(row[name] for name in names) for row in theirs), key=repr)
    return found
