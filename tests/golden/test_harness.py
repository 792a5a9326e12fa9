"""The harness itself: it accepts the right rows of a table, and nothing else."""

from __future__ import annotations

import pyarrow.dataset as ds
import pytest

from tests.golden import harness

NAME = "v9_cow_types"


@pytest.fixture(scope="module")
def snapshot_rows(tmp_path_factory):
    path = harness.extract(NAME, tmp_path_factory.mktemp("golden"))
    names = {row["_hoodie_file_name"] for row in harness.accepted_answers(harness.reads_of(NAME)[0])[0]}
    files = [str(file) for file in path.rglob("*.parquet") if file.name in names]
    return harness.arrow_rows(ds.dataset(files, format="parquet").to_table())


def test_the_rows_of_the_live_files_are_accepted(snapshot_rows):
    harness.assert_rows(harness.reads_of(NAME)[0], snapshot_rows)


def test_a_missing_row_a_repeated_row_and_a_changed_value_are_refused(snapshot_rows):
    changed = [dict(snapshot_rows[0], l=0), *snapshot_rows[1:]]
    for wrong in (snapshot_rows[1:], [*snapshot_rows, snapshot_rows[0]], changed):
        with pytest.raises(AssertionError, match="missing"):
            harness.assert_rows(harness.reads_of(NAME)[0], wrong)


def test_a_suspect_read_accepts_the_models_rows_without_meta_columns():
    read = next(read for read in harness.reads_of("v9_cow_typed_partition_ts") if read.kind == "snapshot")
    hudi, believed = harness.accepted_answers(read)
    assert not any(name.startswith("_hoodie_") for name in believed[0])
    with_meta = [dict(row, _hoodie_commit_time="1") for row in believed]
    harness.assert_rows(read, with_meta)
    harness.assert_rows(read, hudi)


def test_every_table_has_expectations_and_file_times(tmp_path):
    for name in harness.table_names():
        assert harness.reads_of(name)[0].label == "snapshot"
    path = harness.extract("v8_mor_upgraded_v6", tmp_path)
    times = {int(file.stat().st_mtime) for file in (path / ".hoodie").rglob("*.commit*")}
    assert max(times, default=0) < 1795000000
