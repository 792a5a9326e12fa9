"""A schema that was changed beside quicker writers is the one that Apache Hudi 1.2 reads and writes by."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.write.transaction import Transaction
from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.metadata.enable": "false",
}
OLD = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int32())])
NEW = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.int64()), ("x", pa.string())])


def test_hudi_sees_the_schema_of_the_write_that_completed_last(tmp_path, monkeypatch):
    path = tmp_path / "t"
    table = drawstring.create_table(path, OLD, options=OPTIONS)
    table.write(pa.table({"id": [1], "p": ["a"], "v": [1]}, schema=OLD))
    commit = Transaction.commit

    def late(self, *args, **kwargs):
        monkeypatch.undo()
        table.write(pa.table({"id": [2], "p": ["b"], "v": [2]}, schema=OLD))
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    mine = table.write(pa.table({"id": [3], "p": ["c"], "v": [3 << 40], "x": ["new"]}, schema=NEW))
    assert mine.tries == 1
    more = write(path, [[4, "d", 4, "hudi"]], "id long, p string, v long, x string", OPTIONS)
    seen = run("hudi", [read("before", path), more, read("after", path)])
    expected = [(1, 1, None), (2, 2, None), (3, 3 << 40, "new")]
    assert _rows(seen["before"]["rows"]) == expected
    assert _rows(seen["after"]["rows"]) == [*expected, (4, 4, "hudi")]
    assert _rows(table.snapshot().scan().to_arrow().to_pylist()) == [*expected, (4, 4, "hudi")]


def _rows(found):
    return sorted((row["id"], row["v"], row["x"]) for row in found)
