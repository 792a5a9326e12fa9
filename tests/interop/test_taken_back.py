"""Apache Hudi takes back what drawstring committed, by instant and to a savepoint, and drawstring goes on after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.storage import LocalStorage
from tests.interop.engine import read, run, sql, write
from tests.small_writes import OPTIONS, rows_of
from tests.small_writes import write as our_write
from tests.support.metadata_check import assert_metadata_table_equals_table

pytestmark = pytest.mark.interop

SCHEMA = "id string, city string, ts bigint, v string"
FIRST = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b"), ("3", "kiel", 1, "c")]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def path(request, tmp_path) -> Path:
    """A table of Hudi's with a record index, known to its catalog under its name."""
    made = tmp_path / request.param.lower()
    options = {
        **OPTIONS,
        "hoodie.table.name": made.name,
        "hoodie.datasource.write.table.type": request.param,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.metadata.global.record.level.index.enable": "true",
    }
    known = f"CREATE TABLE IF NOT EXISTS {made.name} USING hudi LOCATION '{made}'"
    actions = [write(made, [list(row) for row in FIRST], SCHEMA, options), sql("known", known)]
    found = run("hudi", actions)
    assert list(found.values()) == ["written", "done"], found
    return made


def newest(path: Path) -> str:
    return str(drawstring.open_table(path).snapshot().latest_instant.requested_time)


def commit(path: Path, rows: list[tuple[Any, ...]], operation: str = "upsert") -> str:
    our_write(LocalStorage(str(path)), rows, operation, options={"hoodie.table.name": path.name})
    return newest(path)


def call(path: Path, text: str) -> None:
    """Run a procedure of Hudi's; everybody then sees the same rows, and the metadata table is right."""
    found = run("hudi", [sql("call", f"CALL {text}"), read("rows", path)])
    assert found["call"] == "done", found["call"]
    theirs = sorted((row["id"], row["city"], row["ts"], row["v"]) for row in found["rows"]["rows"])
    assert theirs == rows_of(path)
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_commits_that_hudi_takes_back_are_gone_and_drawstring_goes_on(path):
    commit(path, [("1", "oslo", 2, "kept"), ("4", "oslo", 2, "kept")])
    kept = rows_of(path)
    lost = commit(path, [("1", "oslo", 3, "lost"), ("5", "bern", 3, "lost")])
    call(path, f"rollback_to_instant(table => '{path.name}', instant_time => '{lost}')")
    assert rows_of(path) == kept

    saved = commit(path, [("2", "rome", 4, "saved"), ("6", "oslo", 4, "saved")])
    kept = rows_of(path)
    call(path, f"create_savepoint(table => '{path.name}', commit_time => '{saved}')")
    commit(path, [("1", "oslo", 5, "lost"), ("7", "kiel", 5, "lost")])
    commit(path, [("2", "rome", 5, "lost")], "delete")
    table = drawstring.open_table(path)
    if "merge" in path.name:
        table.compact()
    table.delete_partitions("kiel")
    call(path, f"rollback_to_savepoint(table => '{path.name}', instant_time => '{saved}')")
    assert rows_of(path) == kept

    commit(path, [("3", "kiel", 6, "after"), ("8", "oslo", 6, "after")])
    assert rows_of(path) == sorted(
        [row for row in kept if row[0] != "3"] + [("3", "kiel", 6, "after"), ("8", "oslo", 6, "after")]
    )
    assert_metadata_table_equals_table(LocalStorage(str(path)))
