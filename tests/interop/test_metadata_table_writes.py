"""Writes of drawstring that keep the metadata table, read and continued by Apache Hudi 1.2, and the reverse.

Hudi reads with its metadata table and data skipping on, filtered by a data column, and without the metadata table;
all must be the same rows. Between the engines' turns the metadata table equals the table.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from drawstring.storage.local import LocalStorage
from drawstring.view.metadata_table import FOLDER
from tests.interop.engine import Action, read, run
from tests.interop.engine import write as hudi_write
from tests.small_writes import OPTIONS, hooked, in_child, rows_of, write
from tests.support.metadata_check import assert_metadata_table_equals_table

pytestmark = pytest.mark.interop

SCHEMA = "id string, city string, ts bigint, v string"
SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
INDEXED = {"hoodie.metadata.global.record.level.index.enable": "true"}
BY_RECORD_INDEX = {**INDEXED, "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}
ALL = ("column_stats", "files", "partition_stats", "record_index")
KINDS = {"plain": ({}, {}), "indexed": (INDEXED, BY_RECORD_INDEX)}
"""What drawstring's and Hudi's writes ask for."""


def reads(name: str, path: Path) -> list[Action]:
    return [
        read(f"{name}:skipping", path, options=SKIPPING),
        read(f"{name}:listed", path, options={"hoodie.metadata.enable": "false"}),
        read(f"{name}:filtered", path, where="ts >= 5", options=SKIPPING),
        read(f"{name}:key", path, where="id = '4'", options=SKIPPING),
    ]


def rows(result: Any) -> list[tuple[Any, ...]]:
    assert "rows" in result, result
    return sorted((r["id"], r["city"], r["ts"], r["v"]) for r in result["rows"])


def check(found: dict[str, Any], name: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(found[f"{name}:skipping"]) == expected
    assert rows(found[f"{name}:listed"]) == expected
    assert rows(found[f"{name}:filtered"]) == [r for r in expected if r[2] >= 5]
    assert rows(found[f"{name}:key"]) == [r for r in expected if r[0] == "4"]


def drawstrings_turn(path: Path, options: dict[str, str]) -> None:
    """Every operation, with enough commits for the metadata table to be compacted."""
    storage = LocalStorage(str(path))
    write(storage, [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")], options=options)
    write(storage, [("4", "kiel", 5, "d"), ("1", "oslo", 6, "A")], options=options)
    write(storage, [("2", "oslo", 9, "b")], "delete", options=options)
    write(storage, [("5", "rome", 2, "e")], "insert_overwrite", options=options)
    write(storage, [("6", "bern", 7, "f")], "bulk_insert", options=options)
    for number in range(8):
        write(storage, [(f"x{number}", "bern", number, "n")], options=options)
    dropped = {**options, "hoodie.datasource.write.partitions.to.delete": "rome"}
    write(storage, [], "delete_partition", options=dropped)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("keeping")
    actions: list[Action] = []
    expected: dict[str, Any] = {}
    for kind, (ours, theirs) in KINDS.items():
        path = folder / kind
        drawstrings_turn(path, ours)
        assert_metadata_table_equals_table(LocalStorage(str(path)))
        expected[kind] = rows_of(path)
        given = {**OPTIONS, **theirs, "hoodie.datasource.write.precombine.field": "ts"}
        actions += reads(kind, path)
        changed = [["4", "kiel", 8, "theirs"], ["7", "oslo", 8, "theirs"], ["5", "rome", 8, "back"]]
        actions.append(hudi_write(path, changed, SCHEMA, given, name=f"{kind}:written"))
        actions += reads(f"{kind} after", path)
    crashed = folder / "crashed"
    expected["crashed"] = crash_between(crashed)
    given = {**OPTIONS, "hoodie.datasource.write.precombine.field": "ts"}
    actions += reads("crashed", crashed)
    actions.append(hudi_write(crashed, [["8", "oslo", 8, "x"]], SCHEMA, given, name="crashed:written"))
    actions += reads("crashed after", crashed)
    made = folder / "made"
    first = [["1", "oslo", 1, "a"], ["2", "rome", 1, "b"], ["4", "kiel", 5, "d"]]
    actions.append(
        hudi_write(
            made, first, SCHEMA, {**given, **BY_RECORD_INDEX, "hoodie.table.name": "made"}, name="made"
        )
    )
    found = run("hudi", actions)
    return {**found, "expected": expected, "folder": folder}


def crash_between(path: Path) -> list[tuple[Any, ...]]:
    """A write is killed after its deltacommit in the metadata table, before it completes in the data table."""
    write(LocalStorage(str(path)), [("1", "oslo", 1, "a"), ("4", "kiel", 5, "d")])
    storage = hooked(str(path))

    def kill(_number: int, operation: str, name: str) -> None:
        is_commit = name.startswith(".hoodie/timeline/") and "_" in name and name.endswith(".commit")
        if operation == "create" and is_commit:
            os.kill(os.getpid(), signal.SIGKILL)

    storage.before = kill
    assert in_child(lambda: write(storage, [("1", "oslo", 9, "lost"), ("9", "rome", 9, "lost")])) != 0
    # Hudi takes a writer for dead whose heartbeat is old.
    for beat in (path / ".hoodie" / ".heartbeat").glob("[0-9]*"):
        os.utime(beat, (1, 1))
    return rows_of(path)


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_reads_every_row_that_drawstring_wrote_through_the_metadata_table(seen, kind):
    check(seen, kind, seen["expected"][kind])


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_goes_on_and_drawstring_after_it(seen, kind):
    assert seen[f"{kind}:written"] == "written"
    model = {r[0]: r for r in seen["expected"][kind]}
    model |= {
        r[0]: r for r in [("4", "kiel", 8, "theirs"), ("7", "oslo", 8, "theirs"), ("5", "rome", 8, "back")]
    }
    check(seen, f"{kind} after", sorted(model.values()))
    path = seen["folder"] / kind
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    write(LocalStorage(str(path)), [("7", "oslo", 10, "ours")])
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    model["7"] = ("7", "oslo", 10, "ours")
    assert rows_of(path) == sorted(model.values())


def test_hudi_takes_back_what_a_crash_left_in_both_tables(seen):
    expected = seen["expected"]["crashed"]
    check(seen, "crashed", expected)
    assert seen["crashed:written"] == "written"
    check(seen, "crashed after", sorted([*expected, ("8", "oslo", 8, "x")]))
    path = seen["folder"] / "crashed"
    assert_metadata_table_equals_table(LocalStorage(str(path)))
    write(LocalStorage(str(path)), [("9", "rome", 9, "again")])
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_drawstring_writes_into_a_table_of_hudi_and_hudi_reads_it(seen, tmp_path):
    path, storage = seen["folder"] / "made", LocalStorage(str(seen["folder"] / "made"))
    assert seen["made"] == "written"
    assert_metadata_table_equals_table(storage, expect=ALL)
    named = {"hoodie.table.name": "made"}
    write(storage, [("4", "kiel", 6, "D"), ("5", "oslo", 2, "e")], options=named)
    write(storage, [("2", "rome", 7, "b")], "delete", options=named)
    assert_metadata_table_equals_table(storage, expect=ALL)
    given = {**OPTIONS, **BY_RECORD_INDEX, **named, "hoodie.datasource.write.precombine.field": "ts"}
    actions = reads("ours", path)
    actions.append(hudi_write(path, [["5", "oslo", 9, "x"], ["2", "rome", 9, "y"]], SCHEMA, given, name="w"))
    actions += reads("theirs", path)
    found = run("hudi", actions)
    first = [("1", "oslo", 1, "a"), ("4", "kiel", 6, "D"), ("5", "oslo", 2, "e")]
    check(found, "ours", first)
    assert found["w"] == "written"
    check(found, "theirs", sorted([*first[:2], ("5", "oslo", 9, "x"), ("2", "rome", 9, "y")]))
    assert_metadata_table_equals_table(storage, expect=ALL)
    assert storage.exists(FOLDER)
