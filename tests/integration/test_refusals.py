"""Tables that cannot be read exactly are refused by name on every road: V2, V1, SQL, Arrow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import drawstring
from drawstring.errors import UnsupportedTable
from tests.golden import harness
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

REFUSED = {
    "TABLE_VERSION_TOO_NEW": {"hoodie.table.version": "10"},
    "TABLE_VERSION_NOT_SUPPORTED": {"hoodie.table.version": "1"},
    "TIMELINE_LAYOUT_NOT_SUPPORTED": {"hoodie.timeline.layout.version": "3"},
    "BASE_FILE_FORMAT_NOT_SUPPORTED": {"hoodie.table.base.file.format": "LANCE"},
    "LOG_FILE_FORMAT_NOT_SUPPORTED": {"hoodie.table.log.file.format": "PARQUET"},
    "TABLE_FORMAT_NOT_SUPPORTED": {"hoodie.table.format": "iceberg"},
    "MERGER_NOT_SUPPORTED": {"hoodie.record.merge.mode": "FUTURE"},
}


@pytest.fixture
def changed(tmp_path):
    """A golden table with other settings."""

    def change(settings: dict[str, str]) -> str:
        copy = Path(shutil.copytree(harness.extract("v9_mor_on_read", tmp_path / "golden"), tmp_path / "t"))
        properties = copy / ".hoodie" / "hoodie.properties"
        kept = [line for line in properties.read_text().splitlines() if line.split("=")[0] not in settings]
        added = [f"{key}={value}" for key, value in settings.items()]
        properties.write_text("\n".join([*kept, *added, ""]))
        return str(copy)

    return change


@pytest.mark.parametrize("condition", REFUSED)
@pytest.mark.parametrize("road", ["v2", "v1", "sql", "arrow"])
def test_what_cannot_be_read_exactly_is_refused_when_it_is_opened(condition, road, spark, changed):
    path = changed(REFUSED[condition])
    with pytest.raises(UnsupportedTable) as caught:
        open_by(road, spark, path)
    assert caught.value.condition == condition
    assert next(iter(REFUSED[condition].values())) in str(caught.value)


def open_by(road, spark, path):
    if road == "arrow":
        drawstring.open_table(path)
    elif road == "sql":
        spark.sql(f"CREATE TABLE refused USING hudi LOCATION '{path}'")
    else:
        spark.read.format("hudi").option(USE_V2, str(road == "v2").lower()).load(path)


@pytest.mark.parametrize("road", ["v2", "v1"])
def test_base_files_of_a_table_with_a_merger_of_its_own_are_read(road, spark, changed):
    path = changed({"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": "com.acme.P"})
    reader = spark.read.format("hudi").option(USE_V2, str(road == "v2").lower())
    base_only = reader.option("hoodie.datasource.query.type", "read_optimized").load(path)
    assert base_only.count() == len(base_only.collect()) > 0
