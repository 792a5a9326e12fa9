"""Tables that Apache Hudi wrote and that are not in this repository: read three ways, and by hudi-rs.

They are looked for in `$DRAWSTRING_TABLES`, or in `shared/tables` beside the checkout; each is a zip of one table.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import UnsupportedTable
from tests.golden import harness

FOLDER = Path(os.environ.get("DRAWSTRING_TABLES") or Path(__file__).parents[3] / "shared" / "tables")
ARCHIVES = sorted(FOLDER.glob("*/*.zip"))

if not ARCHIVES:
    # tests/conftest.py repeats it at the end of the run, where a skip among thousands of tests is seen.
    pytest.skip(f"no tables in {FOLDER}; set DRAWSTRING_TABLES", allow_module_level=True)


@pytest.fixture(scope="session")
def unpack(tmp_path_factory):
    """Unpack an archive once and return the table's base path."""
    folder = tmp_path_factory.mktemp("other-tables")

    def run(archive: Path) -> str:
        target = folder / archive.parent.name / archive.stem
        if not target.exists():
            with zipfile.ZipFile(archive) as content:
                content.extractall(target)
        # The metadata table inside a table has properties of its own, one level deeper.
        found = sorted(target.rglob("hoodie.properties"), key=lambda path: len(path.parts))
        return str(found[0].parents[1])

    return run


def name_of(archive: Path) -> str:
    return f"{archive.parent.name}-{archive.stem}"


@pytest.mark.parametrize("archive", ARCHIVES, ids=name_of)
def test_hudi_rs_reads_the_same_rows(archive, unpack):
    hudi = pytest.importorskip("hudi")
    path = unpack(archive)
    mine = drawstring.open_table(path).snapshot().scan().to_arrow()
    batches = hudi.HudiTableBuilder.from_base_uri(path).build().read(hudi.HudiReadOptions())
    assert mine.num_rows == sum(batch.num_rows for batch in batches)
    if batches:
        assert bag(mine) == bag(pa.Table.from_batches(batches).select(mine.schema.names))


@pytest.mark.parametrize("archive", ARCHIVES, ids=name_of)
def test_incremental_reads_cover_the_snapshot(archive, unpack):
    table = drawstring.open_table(unpack(archive))
    if not table.config.populate_meta_fields:
        with pytest.raises(UnsupportedTable, match=r"hoodie.populate.meta.fields is false"):
            table.incremental("000")
        return
    snapshot = table.snapshot().scan().select("_hoodie_record_key", "_hoodie_commit_time").to_arrow()
    everything = (
        table.incremental("000").scan().select("_hoodie_record_key", "_hoodie_commit_time").to_arrow()
    )
    assert set(bag(snapshot)) <= set(bag(everything))


@pytest.mark.spark
@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
@pytest.mark.parametrize("archive", ARCHIVES, ids=name_of)
def test_spark_reads_the_same_rows(archive, use_v2, spark, unpack):
    path = unpack(archive)
    frame = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", use_v2).load(path)
    mine = drawstring.open_table(path).snapshot().scan().to_arrow()
    rows = harness.spark_rows(frame.collect())
    assert sorted(map(repr, rows)) == sorted(map(repr, harness.arrow_rows(mine)))
    assert frame.count() == mine.num_rows


def bag(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
