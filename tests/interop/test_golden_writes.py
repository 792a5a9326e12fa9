"""Tables that Hudi made and drawstring changed, read by Apache Hudi 1.2 with metadata table and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.schema.meta_columns import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from tests.golden.harness import extract
from tests.golden.test_writes import NAMES as WRITTEN
from tests.golden.test_writes import Change, rows_of, written_rows
from tests.interop.engine import read, run

pytestmark = pytest.mark.interop

# A dead writer's base file lies in it without markers, so that nobody knows it for a leftover but the metadata table.
NAMES = [name for name in WRITTEN if name != "v9_mor_died"]
MODES = {"with metadata table": "true", "without": "false"}


def changed(name: str, folder: Path) -> Path:
    path = extract(name, folder)
    table = drawstring.open_table(path)
    model, change = rows_of(table), Change(table, seed=len(name))
    for operation in ("upsert", "delete", "upsert"):
        chosen = list(change.changed(model).values()) if model else []
        if chosen:
            drawstring.open_table(path).write(written_rows(table, chosen), operation=operation)
            model = rows_of(drawstring.open_table(path))
    return path


def versions(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Which version of which record a reader sees."""
    return sorted((row[PARTITION_PATH], row[RECORD_KEY], row[COMMIT_TIME]) for row in rows)


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("golden-writes")
    paths = {name: changed(name, folder) for name in NAMES}
    actions = [
        read(f"{name} {mode}", path, options={"hoodie.metadata.enable": enabled})
        for name, path in paths.items()
        for mode, enabled in MODES.items()
    ]
    found = run("hudi", actions)
    for name, path in paths.items():
        found[name] = drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_hudi_sees_the_versions_that_drawstring_sees(seen, name, mode):
    theirs = seen[f"{name} {mode}"]
    assert "rows" in theirs, theirs
    assert versions(theirs["rows"]) == versions(seen[name])
    plain = [c for c in ("id", "s", "name") if seen[name] and c in seen[name][0] and c in theirs["rows"][0]]
    ours = sorted(tuple(str(row[c]) for c in plain) for row in seen[name])
    assert sorted(tuple(str(row[c]) for c in plain) for row in theirs["rows"]) == ours
