"""Services on tables that Apache Hudi wrote: compacted and cleaned, every table reads as before."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import UnsupportedTable
from tests.golden.harness import extract, table_names

TABLES = [name for name in table_names() if name.startswith(("v8_mor", "v9_mor"))]
REFUSED = {
    "v9_mor_no_meta": "WRITE_WITHOUT_META_FIELDS",
}


def _rows(path):
    found = drawstring.open_table(str(path)).snapshot().scan().to_arrow()
    return sorted(map(repr, found.drop_columns(["_hoodie_file_name"]).to_pylist()))


@pytest.mark.parametrize("name", [name for name in TABLES if name not in REFUSED])
def test_a_table_of_hudis_reads_as_before_when_it_is_compacted_and_cleaned(name, tmp_path):
    path = extract(name, tmp_path)
    before = _rows(path)
    drawstring.open_table(str(path)).compact()
    tasks = drawstring.open_table(str(path)).snapshot().scan().plan().tasks
    assert [log.name for task in tasks for log in task.slice.log_files] == []
    assert _rows(path) == before
    drawstring.open_table(str(path)).clean(options={"hoodie.clean.commits.retained": 1})
    assert _rows(path) == before
    assert not drawstring.open_table(str(path)).timeline.pending_compactions


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_a_compaction_would_spoil_are_refused_by_name(name, tmp_path):
    path = extract(name, tmp_path)
    with pytest.raises(UnsupportedTable) as caught:
        drawstring.open_table(str(path)).compact()
    assert caught.value.condition == REFUSED[name]
