"""Apache Hudi skips no partition that holds a row: ranges beside several writers, and after promotions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.write.transaction import Transaction
from tests.interop.engine import run, write

pytestmark = pytest.mark.interop

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.metadata.enable": "true",
}
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32()), ("w", pa.string())])
WIDER = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("w", pa.string())])
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
CONDITIONS = ["v = 90", "w = 'zz'", "v > 1000", "v < 5", "v is null", "w is not null", "v >= 0"]


def rows(schema, *found):
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in found], schema)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A partition that grows by a write that was requested first and completes last, then by a promoted column."""
    path = tmp_path_factory.mktemp("ranges") / "t"
    table = drawstring.create_table(path, SCHEMA, options=OPTIONS)
    table.write(rows(SCHEMA, (1, "a", 10, "b"), (2, "b", 10, "b")), options=OPTIONS)
    commit = Transaction.commit

    def late(self, *args, **kwargs):
        Transaction.commit = commit
        table.write(rows(SCHEMA, (3, "a", 20, "c")), options=OPTIONS)
        return commit(self, *args, **kwargs)

    Transaction.commit = late
    assert table.write(rows(SCHEMA, (4, "a", 90, "zz")), options=OPTIONS).tries == 1
    return path


def ask(path):
    reads = [{"conf": SKIPPING, "where": where} for where in CONDITIONS]
    answered = run(
        "hudi", [{"do": "reads", "name": "found", "path": str(path), "reads": reads, "columns": SCHEMA.names}]
    )
    assert isinstance(answered["found"], list), answered
    return [sorted(tuple(row) for row in found) for found in answered["found"]]


def expected(path):
    table = drawstring.open_table(path)
    scan = table.snapshot().scan().select(*SCHEMA.names)
    return [
        sorted(tuple(row.values()) for row in scan.where(where).to_arrow().to_pylist())
        for where in CONDITIONS
    ]


def test_hudi_finds_a_row_that_was_requested_earlier_and_completed_later(path):
    assert expected(path)[:2] == [[(4, "a", 90, "zz")]] * 2
    assert ask(path) == expected(path)


def test_hudi_reads_and_writes_on_after_a_promotion(path):
    """It merges ranges of both types when it reads, and when it compacts its metadata table."""
    table = drawstring.open_table(path)
    table.write(rows(WIDER, (5, "a", 3 << 40, "d")), options=OPTIONS)
    assert ask(path) == expected(path)
    compacting = OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "1"}
    more = write(
        path, [[6, "a", 4 << 40, "y"], [7, "b", 2, "x"]], "id long, p string, v long, w string", compacting
    )
    assert list(run("hudi", [more, more | {"rows": [[8, "b", 4, "w"]]}]).values()) == ["written"] * 2
    found = expected(path)
    assert [len(some) for some in found[:4]] == [1, 1, 2, 2]
    assert ask(path) == found
