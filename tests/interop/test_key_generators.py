"""Apache Hudi makes keys and paths of the rows that other tests hold drawstring's key generators against."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.interop.engine import Action, read, run, sql, write
from tests.time_partition_cases import CASES, Case

pytestmark = pytest.mark.interop

_OPTIONS = {
    "hoodie.table.name": "keys",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.recordkey.field": "n",
}
_TIME = "hoodie.keygen.timebased."


def _case(case: Case, path: Any) -> list[Action]:
    options = {
        **_OPTIONS,
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "t",
        "hoodie.datasource.write.hive_style_partitioning": str(case.hive_style).lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(case.url_encode).lower(),
        **{_TIME + key: value for key, value in case.settings.items()},
    }
    rows = [[number, text] for number, text in enumerate(case.values)]
    select = ["n", f"cast(t as {case.kind}) as t"]
    return [write(path, rows, "n int, t string", options, select=select, name=f"{case.name} written")]


def test_hudi_makes_the_paths_of_the_cases(tmp_path):
    actions: list[Action] = []
    for case in CASES:
        actions += _case(case, tmp_path / case.name)
    results = run("hudi", actions)
    for case in CASES:
        written = results[f"{case.name} written"]
        if case.paths is None:
            assert "error" in written, case.name
            continue
        assert written == "written", (case.name, written)
        folders = {
            str(file.parent.relative_to(tmp_path / case.name))
            for file in (tmp_path / case.name).rglob("*.parquet")
        }
        assert folders == set(case.paths), case.name


SCHEMA = "id int, t bigint, p string, v string"
ROWS = [[1, 1700000000123, "a", "x"], [2, 1700086400123, "b", "x"], [3, None, "c", "x"]]
NEWER = [[2, 1700086400123, "b", "y"], [4, 1700000000123, "a", "y"]]
TIMES = {
    "hoodie.table.name": "times",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    _TIME + "timestamp.type": "EPOCHMILLISECONDS",
    # Digits: of other texts in the path of a number Hudi cannot make a value when it reads a custom table.
    _TIME + "output.dateformat": "yyyyMMdd",
    _TIME + "timezone": "UTC",
}
GENERATORS = {
    "timestamp": {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "t",
    },
    "custom": {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "p:simple,t:timestamp",
    },
}


@pytest.mark.parametrize("first", ["hudi", "drawstring"])
def test_tables_of_times_go_to_and_fro(tmp_path, first):
    second = {"hudi": "drawstring", "drawstring": "hudi"}[first]
    for engine, rows in ((first, ROWS), (second, NEWER)):
        actions = [
            write(tmp_path / name, rows, SCHEMA, {**TIMES, **options}, name=f"{name} written")
            for name, options in GENERATORS.items()
        ]
        results = run(engine, actions)
        assert set(results.values()) == {"written"}, results
    expected = {
        1: ("x", "20231114"),
        2: ("y", "20231115"),
        3: ("x", "19700101"),
        4: ("y", "20231114"),
    }
    for engine in ("hudi", "drawstring"):
        actions = [
            read(name, tmp_path / name, options={k: v for k, v in TIMES.items() if k.startswith(_TIME)})
            for name in GENERATORS
        ]
        for name, found in run(engine, actions).items():
            assert "rows" in found, (engine, name, found)
            seen = {
                row["id"]: (row["v"], row["_hoodie_partition_path"].split("/")[-1]) for row in found["rows"]
            }
            assert seen == expected, (engine, name)
            assert len(found["rows"]) == len(expected)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_dates_with_slashes_in_paths_are_read_as_hudi_reads_them(tmp_path, kind):
    path, name = tmp_path / kind, f"slashes_{kind}"
    settings = "'hoodie.datasource.write.slash.separated.date.partitioning' = 'true', orderingFields = 'id'"
    create = (
        f"CREATE TABLE {name} (id INT, v STRING, d STRING) USING hudi PARTITIONED BY (d) LOCATION '{path}' "
    )
    rows = "(1, 'a', '2026-01-05'), (2, 'b', '2026-01-06'), (3, 'c', NULL)"
    written = run(
        "hudi",
        [
            sql("create", create + f"TBLPROPERTIES (primaryKey = 'id', type = '{kind}', {settings})"),
            sql("insert", f"INSERT INTO {name} VALUES {rows}"),
            sql("update", f"UPDATE {name} SET v = 'z' WHERE id = 1"),
        ],
    )
    assert set(written.values()) == {"done"}, written
    assert (path / "2026" / "01" / "05").is_dir()
    actions = [read("all", path), read("one", path, where="d = '2026-01-05'")]
    seen = {engine: run(engine, actions) for engine in ("hudi", "drawstring")}
    hudis, found = (
        {name: sorted(result["rows"], key=lambda row: row["id"]) for name, result in seen[engine].items()}
        for engine in ("hudi", "drawstring")
    )
    assert [(row["id"], row["v"], row["d"]) for row in hudis["all"]] == [
        (1, "z", "2026-01-05"),
        (2, "b", "2026-01-06"),
        (3, "c", None),
    ]
    assert [row["id"] for row in hudis["one"]] == [1]
    assert found == hudis


TYPED = "id int, l bigint, b boolean, d date, t timestamp, s string, c decimal(10,2), f double"
VALUES = [
    [1, 7, True, "2024-03-05", "2024-03-05 01:02:03.456", "a b", "1.50", 0.1],
    [2, -7, False, "1969-12-31", "1969-12-31 23:59:59", "x/y=%", "-0.05", 1e10],
    [3, None, None, None, None, None, None, None],
    [4, 0, True, "2024-03-05", "2024-03-05 00:00:00", "\u00e9", "0.00", -0.0],
]
CASTS = [
    *("id", "l", "b", "cast(d as date) d", "cast(t as timestamp) t", "s"),
    *("cast(c as decimal(10,2)) c", "f"),
]
_CLASS, _KEY, _PATH = (
    "hoodie.datasource.write.keygenerator.class",
    "hoodie.datasource.write.recordkey.field",
    "hoodie.datasource.write.partitionpath.field",
)
_STYLES = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
_PACKAGE = "org.apache.hudi.keygen."
KINDS = {
    **{f"simple by {c}": {_KEY: "id", _PATH: c} for c in ("l", "b", "d", "c", "f")},
    "simple by text": {_KEY: "id", _PATH: "s", **_STYLES},
    "simple by time": {_KEY: "id", _PATH: "t", **_STYLES},
    "complex": {_CLASS: _PACKAGE + "ComplexKeyGenerator", _KEY: "id,s,l", _PATH: "b,d", **_STYLES},
    "complex of one": {_CLASS: _PACKAGE + "ComplexKeyGenerator", _KEY: "id", _PATH: "b,l"},
    "of no partition": {_CLASS: _PACKAGE + "NonpartitionedKeyGenerator", _KEY: "id,d", _PATH: ""},
    "custom": {_CLASS: _PACKAGE + "CustomKeyGenerator", _KEY: "id,l", _PATH: "b:simple,l:simple", **_STYLES},
}


def test_keys_and_paths_are_those_that_hudi_makes(tmp_path):
    seen = {}
    for engine in ("hudi", "drawstring"):
        actions = []
        for name, kind in KINDS.items():
            options = {"hoodie.table.name": "keys", "hoodie.metadata.enable": "false", **kind}
            path = tmp_path / engine / name.replace(" ", "_")
            columns = TYPED.replace("date", "string").replace("timestamp", "string")
            columns = columns.replace("decimal(10,2)", "string")
            actions.append(write(path, VALUES, columns, options, select=CASTS, name=f"{name} written"))
            actions.append(read(name, path))
        seen[engine] = run(engine, actions)
    for name in KINDS:
        assert seen["hudi"][f"{name} written"] == "written", (name, seen["hudi"][f"{name} written"])
        assert _made(seen["drawstring"][name]) == _made(seen["hudi"][name]), name


def _made(found):
    assert "rows" in found, found
    return sorted((row["_hoodie_record_key"], row["_hoodie_partition_path"]) for row in found["rows"])


def test_keys_are_made_by_the_same_rule_where_none_is_configured(tmp_path):
    options = {"hoodie.table.name": "keys", "hoodie.metadata.enable": "false"}
    for engine in ("hudi", "drawstring"):
        path = tmp_path / f"{engine}-table"
        actions = [
            write(path, [[1, "a"], [2, "b"]], "n int, s string", options, name="written"),
            write(path, [[1, "a"]], "n int, s string", options, name="again"),
            read("rows", path),
        ]
        found = run(engine, actions)
        assert (found["written"], found["again"]) == ("written", "written"), found
        rows = found["rows"]["rows"]
        keys = [row["_hoodie_record_key"] for row in rows]
        assert len(set(keys)) == len(keys) == 3
        # The instant, the task and a number within it.
        assert all(re.fullmatch(r"\d{17}_\d+_\d+", key) for key in keys), keys
        assert all(key.startswith(row["_hoodie_commit_time"]) for key, row in zip(keys, rows, strict=True))
