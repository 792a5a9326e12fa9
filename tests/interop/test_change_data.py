"""Tables that capture changes, written by drawstring: Apache Hudi's change data query tells the same of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import drawstring
from tests.interop.engine import read, run
from tests.small_writes import OPTIONS, SCHEMA, rows_of, write

pytestmark = pytest.mark.interop

CDC = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "000",
}
TABLES = [
    (kind, mode)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for mode in ("DATA_BEFORE_AFTER", "DATA_BEFORE", "OP_KEY_ONLY")
]


def written(path: Path, kind: str, mode: str) -> None:
    settings = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.datasource.write.table.type": kind,
    }
    table = drawstring.create_table(str(path), SCHEMA, options={**OPTIONS, **settings})
    write(table.storage, [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")])
    write(table.storage, [("1", "oslo", 2, "A"), ("4", "oslo", 2, "D")])
    write(table.storage, [("1", "oslo", 3, "AA"), ("2", "oslo", 3, "BB")])
    write(table.storage, [("2", "oslo", 9, "")], "delete")
    write(table.storage, [("9", "oslo", 1, "z")], "insert_overwrite")


def meaning(rows: list[dict[str, Any]]) -> list[str]:
    def image(text: str | None) -> Any:
        row = json.loads(text) if text and text != "null" else None
        return None if row is None else [row[name] for name in SCHEMA.names]

    return sorted(json.dumps([r["op"], r["ts_ms"], image(r["before"]), image(r["after"])]) for r in rows)


def test_hudi_reads_the_changes_that_drawstring_captured(tmp_path: Path) -> None:
    actions = []
    for number, (kind, mode) in enumerate(TABLES):
        path = tmp_path / str(number)
        written(path, kind, mode)
        actions += [read(f"changes {number}", path, options=CDC), read(f"rows {number}", path)]
    answers = run("hudi", actions)
    for number in range(len(TABLES)):
        path = tmp_path / str(number)
        theirs, ours = answers[f"changes {number}"], drawstring.open_table(str(path)).change_data("earliest")
        assert "error" not in theirs, (TABLES[number], theirs)
        assert meaning(theirs["rows"]) == meaning(ours.to_arrow().to_pylist()), TABLES[number]
        seen = sorted(tuple(row[name] for name in SCHEMA.names) for row in answers[f"rows {number}"]["rows"])
        assert seen == rows_of(path)
