"""Apache Hudi's bloom index finds keys in base files that drawstring wrote, and the reverse."""

from __future__ import annotations

import pytest

from tests.interop.engine import read, run, write

pytestmark = pytest.mark.interop

SCHEMA = "id string, p string, ts bigint, v string"
OPTIONS = {
    "hoodie.table.name": "bloom",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
BLOOM = {**OPTIONS, "hoodie.index.type": "BLOOM"}
KINDS = {
    "default": OPTIONS,
    "bloom": BLOOM,
    "simple filter": {**BLOOM, "hoodie.bloom.index.filter.type": "SIMPLE"},
    "crowded": {
        **BLOOM,
        "hoodie.index.bloom.num_entries": "20",
        "hoodie.bloom.index.filter.dynamic.max.entries": "30",
    },
    "bulk": {**OPTIONS, "hoodie.datasource.write.operation": "bulk_insert"},
}


def rows(ids, ts: int, v: str) -> list[list]:
    texts = ["k%d", "k%d-\u00e9", "k%d-\U0001f600", "%d"]
    return [[texts[i % 4] % i, "ab"[i % 2], ts, v] for i in ids]


def test_hudi_updates_by_its_bloom_index_what_drawstring_wrote(tmp_path):
    first, second = rows(range(300), 1, "first"), rows(range(100, 400, 3), 2, "second")
    ours = [write(tmp_path / name, first, SCHEMA, options) for name, options in KINDS.items()]
    assert set(run("drawstring", ours).values()) == {"written"}
    theirs = [write(tmp_path / name, second, SCHEMA, BLOOM, name=f"{name} updated") for name in KINDS]
    results = run("hudi", theirs + [read(name, tmp_path / name) for name in KINDS])
    expected = {row[0]: row[3] for row in first} | {row[0]: row[3] for row in second}
    for name in KINDS:
        assert results[f"{name} updated"] == "written", results
        found = [(row["id"], row["v"]) for row in results[name]["rows"]]
        assert len(found) == len(expected), name
        assert dict(found) == expected, name
