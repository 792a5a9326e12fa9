"""Each engine rolls back what the other's dead writers left, and both go on: Apache Hudi 1.2 and drawstring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.storage import LocalStorage
from drawstring.write import slots
from drawstring.write.locks import Owner
from drawstring.write.transaction import Transaction
from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

SCHEMA = "id long, p string, ts long, v string"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
DECIDED, UNDECIDED, THEIRS, THEIRS_MARKED = "decided", "undecided", "theirs", "theirs-marked"


class Died(BaseException):
    """Stands for the death of a process: nothing of drawstring's catches it."""


def _rows(ids: range, v: str) -> list[list[Any]]:
    return [[i, "ab"[i % 2], 1, v] for i in ids]


def _arrow(ids: range, v: str) -> pa.Table:
    names = ("id", "p", "ts", "v")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in _rows(ids, v)])


def _die_while_writing(path: Path, monkeypatch: pytest.MonkeyPatch, *, decided: bool) -> str:
    """Write until just before, or just after, the commit is decided and its files have their names."""
    started: list[str] = []

    def die(*_: Any) -> None:
        raise Died

    def carry_out_files_only(storage: Any, decision: slots.Decision) -> None:
        renames = replace(decision, steps=decision.steps[:-1], creates="", removes="never")
        original(storage, renames)
        raise Died

    original, abort = slots.carry_out, Transaction.abort
    monkeypatch.setattr(Transaction, "abort", lambda self: started.append(self.requested_time))
    monkeypatch.setattr(slots, "carry_out", carry_out_files_only if decided else die)
    if not decided:
        monkeypatch.setattr(slots, "take", die)
    with pytest.raises(Died):
        # Making a metadata table would be the first thing that is decided, and it is not what dies here.
        drawstring.open_table(path).write(
            _arrow(range(100, 106), "never"), options={"hoodie.metadata.enable": "false"}
        )
    monkeypatch.undo()
    assert abort is Transaction.abort
    pending = drawstring.open_table(path).timeline.pending
    (instant,) = [i.requested_time for i in pending]
    dead = replace(Owner.me(), pid=2**22 + 1)
    LocalStorage(str(path)).write(f".hoodie/.heartbeat/{instant}", dead.to_bytes())
    return instant


def _undo_completion(path: Path) -> str:
    """Make Hudi's newest commit look as if its writer had died before completing it."""
    newest = drawstring.open_table(path).timeline.completed_writes[-1]
    (path / ".hoodie" / "timeline" / newest.file_name).unlink()
    return newest.requested_time


def _add_markers(path: Path, instant: str) -> None:
    files = [f.relative_to(path) for f in path.rglob(f"*_{instant}.parquet")]
    assert files
    folder = path / ".hoodie" / ".temp" / instant
    folder.mkdir(parents=True)
    (folder / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (folder / "MARKERS0").write_text("".join(f"{file}.marker.CREATE\n" for file in files))


def _values(found: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in found)


def _ours(path: Path) -> list[tuple[int, str]]:
    return _values(drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist())


FIRST = [(i, "first") for i in range(6)]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_rolls_back_its_dead_writer_after_commits_of_drawstring(tmp_path, kind):
    """It has no heartbeat, so drawstring leaves it alone; Hudi refuses to roll back what is older than commits."""
    path = tmp_path / kind
    # With a metadata table, whose commit of the dead write stays behind.
    options = {
        **OPTIONS,
        "hoodie.metadata.enable": "true",
        "hoodie.datasource.write.table.type": kind,
    }
    first, lost = (write(path, _rows(range(6), value), SCHEMA, options) for value in ("first", "lost"))
    assert "error" not in str(run("hudi", [first, lost]))
    dead = _undo_completion(path)
    for number in (6, 7):
        drawstring.open_table(path).write(_arrow(range(number, number + 1), "ours"))
    third = write(path, _rows(range(5, 7), "hudi"), SCHEMA, options, name="third")
    seen = run("hudi", [third, read("rows", path)])
    assert seen["third"] == "written"
    expected = sorted([*FIRST[:5], (5, "hudi"), (6, "hudi"), (7, "ours")])
    assert _values(seen["rows"]["rows"]) == _ours(path) == expected
    drawstring.open_table(path).write(_arrow(range(8, 9), "ours"))
    assert _ours(path) == [*expected, (8, "ours")]
    assert dead not in [instant.requested_time for instant in drawstring.open_table(path).timeline.pending]
    assert not list((path / ".hoodie" / ".heartbeat").glob("[0-9]*"))


def test_dead_writers_of_either_engine_are_rolled_back_by_the_other(tmp_path, monkeypatch):
    tables = {name: tmp_path / name for name in (DECIDED, UNDECIDED, THEIRS, THEIRS_MARKED)}
    made = [write(path, _rows(range(6), "first"), SCHEMA, OPTIONS) for path in tables.values()]
    second = [
        write(tables[name], _rows(range(50, 56), "lost"), SCHEMA, OPTIONS) for name in (THEIRS, THEIRS_MARKED)
    ]
    run("hudi", [*made, *second])

    ours = {
        name: _die_while_writing(tables[name], monkeypatch, decided=name == DECIDED)
        for name in (DECIDED, UNDECIDED)
    }
    theirs = {name: _undo_completion(tables[name]) for name in (THEIRS, THEIRS_MARKED)}
    _add_markers(tables[THEIRS_MARKED], theirs[THEIRS_MARKED])

    # drawstring leaves a pending write without heartbeat alone until it is told.
    for name, instant in theirs.items():
        table = drawstring.open_table(tables[name])
        assert table.rollback() == []
        assert table.rollback(instant) == [instant]
        assert not list(tables[name].rglob(f"*_{instant}.parquet"))
        assert _ours(tables[name]) == FIRST
        table.write(_arrow(range(6, 8), "ours"))

    third = [write(path, _rows(range(10, 12), "hudi"), SCHEMA, OPTIONS) for path in tables.values()]
    seen = run("hudi", [*third, *(read(name, path) for name, path in tables.items())])

    hudi = [(10, "hudi"), (11, "hudi")]
    for name, path in tables.items():
        mine = [(6, "ours"), (7, "ours")] if name in theirs else []
        assert _values(seen[name]["rows"]) == sorted(FIRST + mine + hudi), name
        assert _ours(path) == sorted(FIRST + mine + hudi), name
    for name, instant in ours.items():
        # What Hudi rolled back is gone for good, decided or not: nobody had been told that it was committed.
        drawstring.open_table(tables[name]).write(_arrow(range(20, 22), "after"))
        assert _ours(tables[name]) == sorted(FIRST + hudi + [(20, "after"), (21, "after")]), name
        assert not list(tables[name].rglob(f"*{instant}*.parquet")), name
