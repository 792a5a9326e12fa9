"""Table services side by side: each engine runs the plans of the other, and reads what the other cleaned, archived
and compacted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.clock import system_clock
from drawstring.write.services.clean import encode_clean_plan
from drawstring.write.services.clean_input import planned
from drawstring.write.services.turn import turn
from drawstring.write.table_facts import load_state
from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

SCHEMA = "id long, p string, ts long, v string"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
MOR = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
PLAIN = {**OPTIONS, "hoodie.metadata.enable": "false"}
SCHEDULE = {
    "hoodie.compact.schedule.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
    # Otherwise a batch write of Hudi's compacts inline, and refuses to do both.
    "hoodie.datasource.compaction.async.enable": "true",
}
INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
FEW = {
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
    "hoodie.clean.commits.retained": "2",
}
Model = dict[int, str]


def _rows(ids: range, ts: int, v: str) -> list[list[Any]]:
    return [[i, "ab"[i % 2], ts, v] for i in ids]


def _arrow(ids: range, ts: int, v: str) -> pa.Table:
    names = ("id", "p", "ts", "v")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in _rows(ids, ts, v)])


def _ours(path: Path, ids: range, ts: int, v: str, options: dict[str, str]) -> None:
    drawstring.open_table(str(path)).write(_arrow(ids, ts, v), options=options)


def _model(path: Path) -> Model:
    found = drawstring.open_table(str(path)).snapshot().scan().to_arrow().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: row["v"] for row in found}


def _seen(results: dict[str, Any], name: str) -> Model:
    assert "rows" in results[name], results[name]
    rows = results[name]["rows"]
    assert len(rows) == len({row["id"] for row in rows})
    return {row["id"]: row["v"] for row in rows}


def _pending(path: Path, action: Action) -> list[str]:
    timeline = load_state(LocalStorage(str(path))).timeline
    return [i.requested_time for i in timeline.pending if i.action is action]


def _all_instants(path: Path) -> list[str]:
    state = load_state(LocalStorage(str(path)))
    archived = {w.instant.requested_time for w in state.history.writes}
    return sorted(archived | set(state.timeline.by_requested_time))


def test_each_engine_runs_and_reads_what_the_other_planned(tmp_path):
    mor, cow, old, begun = (tmp_path / name for name in ("mor", "cow", "old", "begun"))
    first = [
        write(mor, _rows(range(8), 1, "a"), SCHEMA, MOR),
        write(cow, _rows(range(8), 1, "a"), SCHEMA, OPTIONS),
    ]
    first += [write(mor, _rows(range(4), 2, "b"), SCHEMA, {**MOR, **SCHEDULE})]
    first += [write(cow, _rows(range(4), 2 + n, f"b{n}"), SCHEMA, OPTIONS) for n in range(5)]
    results = run("hudi", first)
    assert all(found == "written" for found in results.values()), results

    # Hudi's plan is run by drawstring, which appends, and leaves a plan of its own.
    (theirs,) = _pending(mor, Action.COMPACTION)
    (done,) = drawstring.open_table(str(mor)).compact(schedule=False).compactions
    assert done.instant == theirs
    assert done.completion_time
    _ours(mor, range(2, 6), 5, "c", MOR)
    (left,) = drawstring.open_table(str(mor)).compact(run=False).compactions
    _ours(mor, range(1), 9, "d", MOR)
    drawstring.open_table(str(cow)).clean(options={"hoodie.clean.commits.retained": 2})
    for path in (old, begun):
        drawstring.create_table(str(path), _arrow(range(1), 1, "").schema, options=PLAIN)
        for number in range(7):
            _ours(path, range(number, 8), 1 + number, f"v{number}", PLAIN)
    archived = drawstring.open_table(str(old)).archive(options=FEW)
    assert len(archived.instants) == 3
    everything = _all_instants(old)
    retained = ServiceOptions.of(FEW)
    with turn(LocalStorage(str(begun)), retained.concurrency, clock=system_clock, action="clean") as held:
        plan = planned(held.state, retained.clean, clock=system_clock)
        cleaned = held.request(Action.CLEAN, encode_clean_plan(plan, str(begun))).requested_time

    models = {path: _model(path) for path in (mor, cow, old, begun)}
    early = drawstring.open_table(str(old)).snapshot(as_of=everything[1]).scan().to_arrow().num_rows
    changed = (
        drawstring.open_table(str(old))
        .incremental(_completion(old, everything[4]))
        .scan()
        .to_arrow()
        .num_rows
    )
    no_metadata = {"hoodie.metadata.enable": "false"}
    incremental = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": _completion(old, everything[4]),
    }
    actions = [read(f"{path.name}", path) for path in (mor, cow, old, begun)]
    actions += [read(f"{path.name} listed", path, options=no_metadata) for path in (mor, cow)]
    actions += [
        read("old early", old, options={"as.of.instant": everything[1]}),
        read("old changed", old, options=incremental),
        # Hudi runs our plan, and finishes our clean; it goes on in the history that we began.
        write(mor, _rows(range(20, 22), 1, "e"), SCHEMA, {**MOR, **INLINE}),
        write(
            begun, _rows(range(20, 22), 1, "e"), SCHEMA, {**PLAIN, **FEW, "hoodie.clean.automatic": "true"}
        ),
        *(
            write(
                old,
                _rows(range(20, 22), n, "e"),
                SCHEMA,
                {**PLAIN, **FEW, "hoodie.archive.automatic": "true", "hoodie.clean.automatic": "true"},
            )
            for n in range(3)
        ),
        *(read(f"{path.name} after", path) for path in (mor, old, begun)),
    ]
    results = run("hudi", actions)
    for path, model in models.items():
        assert _seen(results, path.name) == model, path.name
    for path in (mor, cow):
        assert _seen(results, f"{path.name} listed") == models[path], path.name
    assert len(results["old early"]["rows"]) == early
    assert len(results["old changed"]["rows"]) == changed
    added = {20: "e", 21: "e"}
    for path in (mor, old, begun):
        assert _seen(results, f"{path.name} after") == {**models[path], **added} == _model(path)
    assert left.instant not in _pending(mor, Action.COMPACTION), results
    assert cleaned not in _pending(begun, Action.CLEAN), results
    assert set(everything) < set(_all_instants(old))

    # And drawstring goes on where Hudi left off.
    _ours(mor, range(20, 24), 7, "f", MOR)
    drawstring.open_table(str(mor)).compact()
    drawstring.open_table(str(mor)).clean(options={"hoodie.clean.commits.retained": 1})
    _ours(old, range(20, 24), 7, "f", {**PLAIN, **FEW, "hoodie.archive.automatic": "true"})
    more = {20: "f", 21: "f", 22: "f", 23: "f"}
    last = run("hudi", [read("mor", mor), read("old", old)])
    assert _seen(last, "mor") == {**models[mor], **more} == _model(mor)
    assert _seen(last, "old") == {**models[old], **more} == _model(old)


def _completion(path: Path, instant: str) -> str:
    state = load_state(LocalStorage(str(path)))
    return state.timeline.completion_time(instant) or state.history.completion_times[instant]
