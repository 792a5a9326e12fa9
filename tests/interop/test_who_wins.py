"""Apache Hudi says which of two versions of a record wins; the lists of the unit tests are held against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.engine import Action, read, run, write
from tests.ordering_values import ASCENDING, pairs

pytestmark = pytest.mark.interop

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
_FAILS_IN_HUDI = {("binary", MOR), ("date", COW), ("decimal(10,2)", COW)}
"""What Hudi 1.2 itself cannot merge: its casts fail."""
_OPTIONS = {
    "hoodie.table.name": "wins",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "o",
}


def _text(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)


def _write(path: Path, kind: str, rows: list[tuple[str, Any, str]], table_type: str) -> Action:
    value = "unhex(o)" if kind == "binary" else f"cast(o as {kind})"
    return write(
        path,
        [[key, _text(order), v] for key, order, v in rows],
        "id string, o string, v string",
        {**_OPTIONS, "hoodie.datasource.write.table.type": table_type},
        select=["id", f"{value} as o", "v"],
    )


def test_hudi_orders_values_as_the_lists_do(tmp_path):
    actions: list[Action] = []
    expected: dict[str, dict[str, str]] = {}
    for kind in ASCENDING:
        found = pairs(kind)
        first = [(key, a, "first") for key, a, _, _ in found]
        second = [(key, b, "second") for key, _, b, _ in found]
        for name, table_type, writes in (
            ("rewrite", COW, [first, second]),
            ("logs", MOR, [first, second]),
            ("combine", COW, [first + second]),
        ):
            if (kind, table_type) in _FAILS_IN_HUDI and name != "combine":
                continue
            path = tmp_path / f"{kind.split('(')[0]}-{name}"
            actions += [_write(path, kind, rows, table_type) for rows in writes]
            actions.append(read(f"{kind} {name}", path))
            expected[f"{kind} {name}"] = {key: winner for key, _, _, winner in found}
    results = run("hudi", actions)
    seen = {name: {row["id"]: row["v"] for row in results[name].get("rows", [])} for name in expected}
    assert seen == expected, [value for value in results.values() if "error" in value][:1]
