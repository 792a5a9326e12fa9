"""Rows that a global index keeps in their old partition: both engines show the same value, with and without filters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

SCHEMA = "id int, v int, ts bigint, p string"
WHERE = [None, "p = 'a'", "p = 'b'", "p != 'a'", "p = 'b' and v = 11", "p = 'a' or v = 99", "upper(p) = 'A'"]
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
STYLES = ["false", "true"]


def options(kind: str, hive: str) -> dict[str, str]:
    return {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": kind,
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "false",
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("global")
    shapes = [(kind, hive) for kind in TYPES for hive in STYLES]
    first, second = [[1, 10, 1, "a"], [2, 20, 1, "b"], [3, 30, 1, "a"]], [[1, 11, 2, "b"], [3, 31, 2, "b"]]
    writes = [
        write(folder / (kind + hive), rows, SCHEMA, options(kind, hive))
        for kind, hive in shapes
        for rows in (first, second)
    ]
    reads = [
        read(f"{kind} {hive} {where}", folder / (kind + hive), where=where)
        for kind, hive in shapes
        for where in WHERE
    ]
    hudi = run("hudi", [*writes, *reads])
    return {"hudi": hudi, "drawstring": run("drawstring", reads)}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("hive", STYLES)
@pytest.mark.parametrize("kind", TYPES)
def test_both_engines_show_the_partition_that_the_row_lies_in(answers, kind, hive, where):
    expected, found = (plain(answers[engine][f"{kind} {hive} {where}"]) for engine in ("hudi", "drawstring"))
    assert found == expected
    if where is None:
        assert (1, 11, "a") in expected


def plain(result: Any) -> list[tuple[Any, ...]]:
    assert "rows" in result, result
    return sorted((row["id"], row["v"], row["p"]) for row in result["rows"])
