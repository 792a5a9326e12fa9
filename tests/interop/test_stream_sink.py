"""A streaming write changes hands: each engine knows the batches that the other has committed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import drawstring
from tests.interop.engine import run, sink

pytestmark = pytest.mark.interop

SCHEMA = "id int, p string, ts bigint"
OPTIONS = {
    "hoodie.table.name": "sunk",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.metadata.enable": "false",
    "hoodie.write.table.version": "9",
}


def add(source: Path, number: int) -> None:
    fresh = source.parent / "fresh"
    fresh.write_text(json.dumps({"id": number, "p": "a", "ts": 1}))
    os.utime(fresh, (1_700_000_000 + number,) * 2)
    source.mkdir(exist_ok=True)
    fresh.rename(source / f"{number}.json")


def forget_last(checkpoint: Path) -> None:
    """As if the query had died between the commit of the table and that of the checkpoint."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def test_batches_that_the_other_engine_committed_are_skipped(tmp_path: Path) -> None:
    source, table, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "checkpoint"
    for number, engine in enumerate(("hudi", "drawstring", "hudi", "drawstring")):
        if number:
            forget_last(checkpoint)
        add(source, number)
        found = run(engine, [sink(source, table, checkpoint, SCHEMA, OPTIONS)])
        assert found == {"action 0": "written"}, engine
    rows = drawstring.open_table(str(table)).snapshot().scan().select("id").to_arrow()
    assert sorted(rows.column("id").to_pylist()) == [0, 1, 2, 3]
