"""What one engine writes, the other reads, extends and reads again: Apache Hudi 1.2 and drawstring."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.interop.engine import Action, read, run, write

pytestmark = pytest.mark.interop

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
SCHEMA = "id int, p string, v bigint, s string, ts bigint"
_PLAIN = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
_NO_METADATA = {"hoodie.metadata.enable": "false"}


@dataclass(frozen=True)
class Shape:
    """A kind of table that must go to and fro."""

    name: str
    table_type: str = COW
    options: dict[str, str] = field(default_factory=dict)

    def options_of(self, **more: str) -> dict[str, str]:
        fixed = {"hoodie.table.name": self.name, "hoodie.datasource.write.table.type": self.table_type}
        return {**_PLAIN, **fixed, **self.options, **more}


SHAPES = [
    Shape("plain"),
    Shape("hive", options={"hoodie.datasource.write.hive_style_partitioning": "true"}),
    Shape(
        "nonpartitioned",
        options={
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        },
    ),
    Shape(
        "complex",
        options={
            "hoodie.datasource.write.recordkey.field": "id,s2",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        },
    ),
    Shape("merged", MOR),
]
WRITTEN = [shape for shape in SHAPES if shape.table_type == COW]
NAMES, WRITTEN_NAMES = [shape.name for shape in SHAPES], [shape.name for shape in WRITTEN]


def rows(ids: range | list[int], *, ts: int, s: str) -> list[list[Any]]:
    return [[i, "abc"[i % 3], i * 100 + ts, f"{s}{i}", ts, f"k{i}"] for i in ids]


FIRST, SECOND = rows(range(12), ts=10, s="first"), rows([0, 1, 2, 20], ts=20, s="second")
THIRD = rows([1, 3, 30], ts=30, s="third")
_SCHEMA = SCHEMA + ", s2 string"


def folded(*batches: list[list[Any]]) -> list[dict[str, Any]]:
    """The rows that remain when each batch overwrites the ones before."""
    kept = {row[0]: row for batch in batches for row in batch}
    names = ("id", "p", "v", "s", "ts", "s2")
    return [dict(zip(names, kept[key], strict=True)) for key in sorted(kept)]


def data(result: Any) -> list[dict[str, Any]]:
    """The data columns of a collected table, by key."""
    assert "rows" in result, result
    plain = [{k: v for k, v in row.items() if not k.startswith("_hoodie_")} for row in result["rows"]]
    return sorted(plain, key=lambda row: row["id"])


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict[str, Any]:
    """Four processes take turns; what each saw, by `<who>:<table>:<when>`."""
    folder = tmp_path_factory.mktemp("interop")
    return _take_turns(folder, folder / "ours", folder / "theirs")


def _take_turns(folder: Path, ours: Path, theirs: Path) -> dict[str, Any]:
    seen = run("drawstring", [act for shape in WRITTEN for act in _ours_begin(shape, ours)])
    second = [act for shape in WRITTEN for act in _ours_extended(shape, ours)]
    second += [act for shape in SHAPES for act in _theirs_begin(shape, theirs)]
    seen |= run("hudi", second)
    third = [act for shape in WRITTEN for act in _ours_after(shape, ours)]
    third += [act for shape in SHAPES for act in _theirs_extended(shape, theirs)]
    seen |= run("drawstring", third)
    fourth = [read(f"hudi:theirs {shape.name}:last", theirs / shape.name) for shape in WRITTEN]
    return seen | run("hudi", fourth)


def _batch(shape: Shape, path: Path, batch: list[list[Any]], name: str, **more: str) -> Action:
    return write(path / shape.name, batch, _SCHEMA, shape.options_of(**more), name=name)


def _ours_begin(shape: Shape, ours: Path) -> list[Action]:
    return [
        _batch(shape, ours, FIRST, f"drawstring:ours {shape.name}:write 1"),
        _batch(shape, ours, SECOND, f"drawstring:ours {shape.name}:write 2"),
        read(f"drawstring:ours {shape.name}:first", ours / shape.name),
    ]


def _ours_extended(shape: Shape, ours: Path) -> list[Action]:
    return [
        read(f"hudi:ours {shape.name}:first", ours / shape.name),
        read(f"hudi:ours {shape.name}:filtered", ours / shape.name, where="v >= 900 and p <> 'b'"),
        _batch(shape, ours, THIRD, f"hudi:ours {shape.name}:write"),
        read(f"hudi:ours {shape.name}:last", ours / shape.name),
    ]


def _theirs_begin(shape: Shape, theirs: Path) -> list[Action]:
    return [
        _batch(shape, theirs, FIRST, f"hudi:theirs {shape.name}:write 1", **_NO_METADATA),
        _batch(shape, theirs, SECOND, f"hudi:theirs {shape.name}:write 2", **_NO_METADATA),
    ]


def _ours_after(shape: Shape, ours: Path) -> list[Action]:
    return [read(f"drawstring:ours {shape.name}:last", ours / shape.name)]


def _theirs_extended(shape: Shape, theirs: Path) -> list[Action]:
    return [
        read(f"drawstring:theirs {shape.name}:first", theirs / shape.name),
        _batch(shape, theirs, THIRD, f"drawstring:theirs {shape.name}:write"),
        read(f"drawstring:theirs {shape.name}:last", theirs / shape.name),
    ]


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_hudi_reads_what_drawstring_wrote(seen, name):
    assert data(seen[f"hudi:ours {name}:first"]) == folded(FIRST, SECOND)


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_hudi_filters_what_drawstring_wrote(seen, name):
    expected = [row for row in folded(FIRST, SECOND) if row["v"] >= 900 and row["p"] != "b"]
    assert data(seen[f"hudi:ours {name}:filtered"]) == expected


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_hudi_extends_what_drawstring_wrote(seen, name):
    assert seen[f"hudi:ours {name}:write"] == "written"
    assert data(seen[f"hudi:ours {name}:last"]) == folded(FIRST, SECOND, THIRD)


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_drawstring_reads_its_own_table_after_hudi_extended_it(seen, name):
    assert data(seen[f"drawstring:ours {name}:last"]) == folded(FIRST, SECOND, THIRD)


@pytest.mark.parametrize("name", NAMES)
def test_drawstring_reads_what_hudi_wrote(seen, name):
    assert data(seen[f"drawstring:theirs {name}:first"]) == folded(FIRST, SECOND)


@pytest.mark.parametrize("name", WRITTEN_NAMES)
def test_drawstring_extends_what_hudi_wrote(seen, name):
    assert seen[f"drawstring:theirs {name}:write"] == "written"
    assert data(seen[f"drawstring:theirs {name}:last"]) == folded(FIRST, SECOND, THIRD)
    assert data(seen[f"hudi:theirs {name}:last"]) == folded(FIRST, SECOND, THIRD)
