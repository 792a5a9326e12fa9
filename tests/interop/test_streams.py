"""A streaming query changes hands: Apache Hudi's source and drawstring's go on from one checkpoint folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.engine import run, stream, write

pytestmark = pytest.mark.interop

SCHEMA = "id int, p string, s string, ts bigint"


def options(table_type: str, version: int) -> dict[str, str]:
    return {
        "hoodie.table.name": "streamed",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
    }


@pytest.mark.parametrize("version", [9, 8, 6])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_query_goes_on_with_the_other_engine(table_type: str, version: int, tmp_path: Path) -> None:
    table, target, how = tmp_path / "table", tmp_path / "stream", options(table_type, version)
    first = [
        write(table, [[1, "a", "x", 1], [2, "b", "x", 1]], SCHEMA, how, mode="overwrite"),
        stream("one", table, target),
        write(table, [[1, "a", "y", 2], [3, "c", "y", 2]], SCHEMA, how),
    ]
    begun = run("hudi", first)["one"]
    taken_over = run("drawstring", [stream("two", table, target)])["two"]
    last = [write(table, [[4, "a", "z", 3]], SCHEMA, how), stream("three", table, target)]
    given_back = run("hudi", last)["three"]

    def seen(found: dict) -> list[tuple[int, str]]:
        assert "error" not in found, found
        return sorted((row["id"], row["s"]) for row in found["rows"])

    assert seen(begun) == [(1, "x"), (2, "x")]
    assert seen(taken_over) == [(1, "x"), (1, "y"), (2, "x"), (3, "y")]
    assert seen(given_back) == [(1, "x"), (1, "y"), (2, "x"), (3, "y"), (4, "z")]
    assert begun["offset"] < taken_over["offset"] < given_back["offset"]
