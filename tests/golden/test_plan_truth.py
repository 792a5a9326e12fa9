"""What `explain` tells is what a scan does: the files it opens, the rows they hold, and what it leaves alone."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.storage import LocalStorage
from tests.golden import harness


@pytest.fixture
def touched(monkeypatch):
    """The paths that local storage was asked for."""
    paths: set[str] = set()
    plain = LocalStorage.local_path

    def noted(self, path):
        paths.add(path)
        return plain(self, path)

    monkeypatch.setattr(LocalStorage, "local_path", noted)
    return paths


@pytest.mark.parametrize("name", harness.table_names())
def test_a_plan_counts_the_files_and_rows_that_a_scan_reads(name, golden_path, touched):
    table = drawstring.open_table(golden_path(name))
    report = table.explain()
    touched.clear()
    rows = table.snapshot().scan().to_arrow().num_rows
    opened = {path for path in touched if path.endswith(".parquet") or ".log." in path}
    bases = {f"{t.partition}/{t.base_file}".lstrip("/") for t in report.tasks if t.base_file}
    assert {path for path in opened if path.endswith(".parquet")} == bases
    assert len(opened) == len(bases) + sum(task.log_files for task in report.tasks)
    assert report.bytes == sum(table.storage.stat(path).size for path in opened)
    if all(task.rows is not None for task in report.tasks):
        assert sum(task.rows for task in report.tasks) == rows
    for task in report.tasks:
        path = table.storage.local_path(f"{task.partition}/{task.base_file}".lstrip("/"))
        assert task.rows is None or task.rows == pq.read_metadata(path).num_rows


@pytest.mark.parametrize("name", ["v9_mor_column_stats", "v9_cow_two_level", "v8_cow_secondary_index"])
@pytest.mark.parametrize("condition", ["id = 16", "p = 'a'", "p = 'a' and id < 4", "id < 0"])
def test_what_is_skipped_is_not_opened_but_for_footers(name, condition, golden_path, touched):
    table = drawstring.open_table(golden_path(name))
    if condition.startswith("p") and "p" not in table.schema.names:
        condition = condition.replace("p = 'a'", f"{table.config.partition_fields[0]} = 'a'")
    everything, report = table.explain(), table.explain(where=condition)
    assert {(s.partition, s.file_id) for s in (*report.tasks, *report.skipped_slices)} == {
        (task.partition, task.file_id) for task in everything.tasks
    }
    assert report.bytes + report.bytes_skipped == everything.bytes
    assert sum(group.slices for group in report.skipped) == len(report.skipped_slices)
    assert sum(group.bytes for group in report.skipped) == report.bytes_skipped
    touched.clear()
    table.snapshot().scan().where(condition).to_arrow()
    untouched = [s for s in report.skipped_slices if s.reason != "footer"]
    assert not [s for s in untouched if any(s.file_id in path for path in touched)]


def test_older_slices_are_listed_until_they_are_cleaned(golden_path):
    table = drawstring.open_table(golden_path("v9_cow_clustered"))
    report = table.inspect()
    older = [s for s in report.older_slices if s.file_id in {newest.file_id for newest in report.slices}]
    assert len(older) == len(report.older_slices) > 0
    assert report.as_dict()["totals"]["older_bytes"] == sum(
        table.storage.stat(f"{s.partition}/{s.base_file}").size for s in older
    )
    earlier = table.inspect(as_of=older[0].base_instant)
    assert older[0].base_file in {s.base_file for s in earlier.slices}
    assert earlier.instants[-1].requested_time == earlier.as_of == older[0].base_instant


def test_an_empty_table_shows_the_schema_it_was_created_with(golden_path):
    (created,) = drawstring.open_table(golden_path("v9_cow_empty")).inspect().schema_history
    assert created.instant == "created"
    assert "+ id: int32" in map(str, created.changes)
