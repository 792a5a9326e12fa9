"""Apache Hudi makes keys and paths of the rows that other tests hold drawstring's key generators against."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.engine import Action, read, run, write
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
    results = run("hudi", actions, tmp_path / "hudi")
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
        results = run(engine, actions, tmp_path / engine)
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
        for name, found in run(engine, actions, tmp_path / f"{engine}-reads").items():
            assert "rows" in found, (engine, name, found)
            seen = {
                row["id"]: (row["v"], row["_hoodie_partition_path"].split("/")[-1]) for row in found["rows"]
            }
            assert seen == expected, (engine, name)
            assert len(found["rows"]) == len(expected)
