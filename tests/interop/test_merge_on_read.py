"""Merge-on-read tables of drawstring through Apache Hudi 1.2: read after every write, extended, compacted, extended."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from tests.interop.engine import Action, read, run, write

pytestmark = pytest.mark.interop

FIELDS = [
    ("id", pa.int64()),
    ("p", pa.string()),
    ("ts", pa.int64()),
    ("v", pa.string()),
    ("n", pa.float64()),
    ("_hoodie_is_deleted", pa.bool_()),
]
SCHEMA = pa.schema(FIELDS)
SPARK_SCHEMA = "id long, p string, ts long, v string, n double, _hoodie_is_deleted boolean"
PLAIN = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
FORMS = ("avro", "parquet")
Row = tuple[int, str, int, str | None, float | None, bool]


@dataclass(frozen=True)
class Kind:
    """A kind of table, with options of its making and of each write."""

    name: str
    options: dict[str, str] = field(default_factory=dict)
    write_options: dict[str, str] = field(default_factory=dict)


KINDS = [
    Kind("event_time"),
    Kind("commit_time", {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}),
    Kind("parquet_blocks", write_options={"hoodie.logfile.data.block.format": "parquet"}),
    Kind(
        "logs_merged",
        write_options={"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"},
    ),
    Kind("no_positions", write_options={"hoodie.write.record.positions": "false"}),
    Kind("two_orderings", {"hoodie.datasource.write.precombine.field": "ts,n"}),
    Kind(
        "partial",
        {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"},
    ),
    Kind("marker", {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "gone"}),
    Kind("whole", {"hoodie.datasource.write.partitionpath.field": ""}),
]


def row(key: int, ts: int, v: str | None, *, deleted: bool = False, n: float | None = 0.0) -> Row:
    return key, "ab"[key % 2], ts, v, n, deleted


STEPS: list[tuple[str, list[Row]]] = [
    ("upsert", [row(i, 10, f"first{i}") for i in range(8)]),
    ("upsert", [row(1, 20, "second"), row(2, 5, "late"), row(3, 10, "same"), row(20, 1, "new")]),
    (
        "upsert",
        [row(4, 30, "x", deleted=True), row(5, 1, "x", deleted=True), row(6, 30, None), row(7, 30, "gone")],
    ),
    ("delete", [row(0, 0, None)]),
    ("upsert", [row(0, 50, "returned"), row(4, 25, "between"), row(5, 9, "late"), row(21, 1, "new")]),
    ("insert", [row(30, 1, "inserted")]),
    ("bulk_insert", [row(40, 1, "bulk")]),
    ("insert_overwrite", [row(50, 1, "only"), row(52, 1, "ones")]),
    ("upsert", [row(50, 2, "changed"), row(51, 2, "odd"), row(1, 60, "odd too")]),
]


def arrow(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in rows], schema=SCHEMA)


def data(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(r[name] for name, _ in FIELDS[:5]) for r in rows), key=repr)


def ours(path: Path) -> list[tuple[Any, ...]]:
    return data(drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist())


def written(kind: Kind, folder: Path) -> Iterator[tuple[Path, list[tuple[Any, ...]]]]:
    """Write step by step; yield a copy of the table after each, with what drawstring reads of it."""
    path = folder / kind.name
    options = {**PLAIN, "hoodie.table.name": kind.name, **kind.options}
    table = drawstring.create_table(path, SCHEMA, options=options)
    for number, (operation, rows) in enumerate(STEPS):
        given = arrow(rows)
        if operation == "delete":
            given = given.select(["id", "p"])
        table.write(given, operation=operation, options=kind.write_options)
        copy = folder / f"{kind.name}-{number}"
        shutil.copytree(path, copy)
        yield copy, ours(copy)


HUDIS = [
    row(1, 70, "of hudi"),
    row(50, 71, "of hudi"),
    row(60, 72, "new of hudi"),
    row(51, 99, "x", deleted=True),
]
LAST = [row(60, 80, "ours again"), row(1, 81, "ours again"), row(70, 1, "new again")]


def hudi_options(kind: Kind, **more: str) -> dict[str, str]:
    fixed = {"hoodie.table.name": kind.name, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    keyless = {k: v for k, v in kind.options.items() if not k.startswith("hoodie.record.merge")}
    return {**PLAIN, **fixed, **keyless, "hoodie.metadata.enable": "false", **more}


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict[str, Any]:
    """Hudi reads every copy, then writes to the last state of each table and compacts; we write, and it reads again."""
    folder = tmp_path_factory.mktemp("merge-on-read")
    found: dict[str, Any] = {}
    actions: list[Action] = []
    for kind in KINDS:
        for number, (copy, rows) in enumerate(written(kind, folder)):
            found[f"ours:{kind.name}:{number}"] = rows
            actions.append(read(f"hudi:{kind.name}:{number}", copy))
        path = folder / kind.name
        given = [list(r) for r in HUDIS]
        actions.append(write(path, given, SPARK_SCHEMA, hudi_options(kind), name=f"upsert:{kind.name}"))
        actions.append(read(f"hudi:{kind.name}:extended", path))
        compacting = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        again = [list(row(62, 1, "with compaction"))]
        options = hudi_options(kind, **compacting)
        actions.append(write(path, again, SPARK_SCHEMA, options, name=f"compact:{kind.name}"))
        actions.append(read(f"hudi:{kind.name}:compacted", path))
    for form in FORMS:
        found[f"ours:assigned:{form}"] = _assigned(folder / f"assigned-{form}", form)
        actions.append(read(f"hudi:assigned:{form}", folder / f"assigned-{form}"))
    found.update(run("hudi", actions))
    again_actions: list[Action] = []
    for kind in KINDS:
        path = folder / kind.name
        found[f"ours:{kind.name}:compacted"] = ours(path)
        actions_seen = [i.action.value for i in drawstring.open_table(path).state().timeline.completed_writes]
        found[f"actions:{kind.name}"] = actions_seen
        drawstring.open_table(path).write(arrow(LAST), options=kind.write_options)
        found[f"ours:{kind.name}:last"] = ours(path)
        again_actions.append(read(f"hudi:{kind.name}:last", path))
    found.update(run("hudi", again_actions))
    found["log compactions"] = len(list((folder / "logs_merged").rglob("*.logcompaction.requested")))
    return found


def _assigned(path: Path, form: str) -> list[tuple[Any, ...]]:
    """A table some of whose columns were assigned by a partial update.

    It has no column `_hoodie_is_deleted`: with one, Hudi 1.2 cannot read partial updates, its own included.
    """
    names = SCHEMA.names[:-1]
    options = {**PLAIN, "hoodie.table.name": "assigned"}
    table = drawstring.create_table(path, pa.schema(FIELDS[:-1]), options=options)
    table.write(arrow(STEPS[0][1]).select(names))
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]}
    given = arrow([row(1, 20, "assigned"), row(2, 5, "late")]).select(names)
    chosen = {
        "hoodie.write.partial.update.schema": json.dumps(schema),
        "hoodie.logfile.data.block.format": form,
    }
    table.write(given, options=chosen)
    return ours(path)


def theirs(seen: dict[str, Any], name: str) -> list[tuple[Any, ...]]:
    assert "rows" in seen[name], seen[name]
    return data(seen[name]["rows"])


@pytest.mark.parametrize("number", range(len(STEPS)))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_hudi_reads_what_drawstring_reads_after_every_write(seen, kind, number):
    assert theirs(seen, f"hudi:{kind.name}:{number}") == seen[f"ours:{kind.name}:{number}"]


def test_the_model_of_the_plain_table(seen):
    found = {r[0]: r[3] for r in theirs(seen, "hudi:event_time:4")}
    expected = {0: "returned", 1: "second", 2: "first2", 3: "same", 5: "first5", 6: None, 7: "gone"}
    assert found == expected | {20: "new", 21: "new"}
    found = {r[0]: r[3] for r in theirs(seen, "hudi:event_time:8")}
    assert found == {50: "changed", 52: "ones", 1: "odd too", 3: "same", 5: "first5", 7: "gone"} | {
        21: "new",
        51: "odd",
    }


def test_logs_were_merged_with_one_another(seen):
    assert seen["log compactions"] > 1


@pytest.mark.parametrize("form", FORMS)
def test_hudi_reads_a_partial_update(seen, form):
    found = theirs(seen, f"hudi:assigned:{form}")
    assert found == seen[f"ours:assigned:{form}"]
    by_key = {r[0]: r[2:] for r in found}
    assert (by_key[1], by_key[2], by_key[3]) == (
        (20, "assigned", 0.0),
        (10, "first2", 0.0),
        (10, "first3", 0.0),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_hudi_writes_and_compacts_on_top_and_drawstring_after_it(seen, kind):
    assert seen[f"upsert:{kind.name}"] == "written", seen[f"upsert:{kind.name}"]
    extended = {r[0]: r[3] for r in theirs(seen, f"hudi:{kind.name}:extended")}
    assert (extended[1], extended[50], extended[60]) == ("of hudi", "of hudi", "new of hudi")
    assert 51 not in extended
    assert seen[f"compact:{kind.name}"] == "written", seen[f"compact:{kind.name}"]
    # The one small file of a table without partitions was rewritten with the new key: no logs are left.
    assert kind.name == "whole" or "commit" in seen[f"actions:{kind.name}"], "nothing was compacted"
    assert theirs(seen, f"hudi:{kind.name}:compacted") == seen[f"ours:{kind.name}:compacted"]
    last = theirs(seen, f"hudi:{kind.name}:last")
    assert last == seen[f"ours:{kind.name}:last"]
    by_key = {r[0]: r[3] for r in last}
    assert (by_key[60], by_key[1], by_key[70]) == ("ours again", "ours again", "new again")
    assert len(by_key) == len(last)
