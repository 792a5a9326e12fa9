"""Reports of golden tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import drawstring
from drawstring.inspection import build
from drawstring.storage import LocalStorage
from drawstring.storage.table_properties import read_table_config
from drawstring.timeline.reader import TimelineReader
from tests.golden import harness


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")

    def open_reader(name: str) -> TimelineReader:
        storage = LocalStorage(str(harness.extract(name, folder)))
        return TimelineReader(storage, read_table_config(storage))

    return open_reader


def changes_of(reader: TimelineReader) -> list[list[str]]:
    return [
        [str(change) for change in entry.changes] for entry in build.schema_history(reader, reader.load())
    ]


def test_schema_history_shows_columns_added_at_every_depth(golden):
    first, *later = changes_of(golden("v6_cow_add_columns"))
    assert all(line.startswith("+ ") for line in first)
    added = [line for lines in later for line in lines]
    assert added
    assert any("." in line for line in added)


def test_a_rename_by_column_id_is_one_change(golden):
    lines = [line for entry in changes_of(golden("v9_mor_on_read")) for line in entry]
    assert any(line == "~ b -> b2" for line in lines), lines


def test_instants_tell_what_was_written(golden):
    reader = golden("v9_cow_clustered")
    report = build.table_report(reader, timeline=reader.load(), slices=())
    writes = [instant for instant in report.instants if instant.rows_written]
    assert writes
    assert any(instant.groups_replaced for instant in report.instants)


def test_indexes_are_the_metadata_tables_partitions(golden):
    reader = golden("v8_cow_secondary_index")
    found = {index.name: index for index in build.indexes(reader.storage, reader.config)}
    assert found["files"].kind == "file listing"
    assert any(index.columns for index in found.values())
    reader = golden("v9_mor_column_stats")
    found = {index.name: index for index in build.indexes(reader.storage, reader.config)}
    assert found["column_stats"].kind == "column statistics"


def test_a_report_is_json_html_and_one_line(golden):
    reader = golden("v9_cow_types")
    report = build.table_report(reader, timeline=reader.load(), slices=())
    assert json.loads(json.dumps(report.as_dict()))["version"] == 9
    assert "Schema history" in report._repr_html_()
    assert "\n" not in repr(report)


def test_every_key_of_a_report_is_documented(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "inspect.md").read_text()
    table = drawstring.open_table(harness.extract("v9_cow_clustered", tmp_path))
    reports = [table.inspect().as_dict(), table.explain(where="p = 'a'").as_dict()]
    missing = {key for report in reports for key in keys_of(report) if f"`{key}`" not in page}
    assert not missing


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, (list, tuple)) else set()
