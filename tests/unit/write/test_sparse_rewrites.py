"""A base file of which few rows change: the others are not copied, and all stand where they stood."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string()), ("x", pa.float64())])
OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
COUNT = 5000


def rows(ids, text: str) -> pa.Table:
    return pa.table(
        {"id": list(ids), "v": [f"{text}{i}" for i in ids], "x": [i / 2 for i in ids]}, schema=SCHEMA
    )


@pytest.mark.parametrize(
    "changed", [[0], [COUNT - 1], [0, 1, 2, COUNT - 1], [2047], list(range(0, COUNT, 2))]
)
def test_updates_and_deletes_leave_the_other_rows_alone(tmp_path, changed):
    table = drawstring.create_table(str(tmp_path / "t"), SCHEMA, options=OPTIONS)
    first = table.write(rows(range(COUNT), "old"))
    table.write(rows([*changed, COUNT], "new"))
    found = drawstring.open_table(str(tmp_path / "t")).snapshot().scan().to_arrow()
    assert found.column("id").to_pylist() == [*range(COUNT), COUNT]
    texts = {i: f"old{i}" for i in range(COUNT)} | {i: f"new{i}" for i in [*changed, COUNT]}
    assert found.column("v").to_pylist() == [texts[i] for i in range(COUNT + 1)]
    # Rows keep the instant that wrote them, and tell the file that they are in.
    times = found.column("_hoodie_commit_time").to_pylist()
    assert [i for i, time in enumerate(times) if time != first.instant] == sorted({*changed, COUNT})
    assert len(set(found.column("_hoodie_file_name").to_pylist())) == 1
    table.write(rows(changed, ""), operation="delete")
    left = drawstring.open_table(str(tmp_path / "t")).snapshot().scan().to_arrow()
    assert left.column("id").to_pylist() == [i for i in range(COUNT + 1) if i not in set(changed)]
