"""Partition columns show what the path tells: a global index may keep a row where its column has moved on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.operation": "bulk_insert",
}
WHERE = [
    "p = 'a'",
    "p = 'b'",
    "p != 'a'",
    "p = 'a' OR v = 99",
    "p IN ('b', 'c')",
    "upper(p) = 'A'",
    "p IS NULL",
]


def move_in_file(path: str, ids: list[int], value: object) -> None:
    """Rewrite the base files so that the rows' column p holds something else than their path."""
    table = drawstring.open_table(path)
    for task in table.snapshot().scan().plan().tasks:
        file = f"{path}/{task.slice.base_file.path}"
        with pq.ParquetFile(file) as source:
            rows = source.read()
        moved = [value if i in ids else p for i, p in zip(*map(rows.column, ("id", "p")), strict=True)]
        column = pa.array(
            [p.as_py() if isinstance(p, pa.Scalar) else p for p in moved], rows.schema.field("p").type
        )
        rows = rows.set_column(rows.schema.get_field_index("p"), "p", column)
        pq.write_table(rows, file, store_schema=False)


@pytest.mark.parametrize("style", ["plain", "hive"])
def test_projection_and_filter_agree_on_every_road(spark, tmp_path, style):
    path = str(tmp_path / "t")
    hive = {"hoodie.datasource.write.hive_style_partitioning": str(style == "hive").lower()}
    frame = spark.createDataFrame([(1, 10, "a"), (2, 20, "b"), (3, 30, "a")], "id int, v int, p string")
    frame.coalesce(1).write.format("hudi").options(**OPTIONS, **hive).save(path)
    # All rows of the file, so that its statistics rule the path's value out.
    move_in_file(path, [1, 3], "b")
    expected = {
        "p = 'a'": [1, 3],
        "p = 'b'": [2],
        "p != 'a'": [2],
        "p = 'a' OR v = 99": [1, 3],
        "p IN ('b', 'c')": [2],
        "upper(p) = 'A'": [1, 3],
        "p IS NULL": [],
    }
    scan = drawstring.open_table(path).snapshot().scan()
    rows = scan.select("id", "p").to_arrow().to_pylist()
    assert sorted((row["id"], row["p"]) for row in rows) == [(1, "a"), (2, "b"), (3, "a")]
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path)
        assert sorted(map(tuple, read.select("id", "p").collect())) == [(1, "a"), (2, "b"), (3, "a")]
        assert sorted(map(tuple, read.select("p").distinct().collect())) == [("a",), ("b",)]
        assert sorted(map(tuple, read.groupBy("p").count().collect())) == [("a", 2), ("b", 1)]
        found = {where: sorted(row.id for row in read.where(where).select("id").collect()) for where in WHERE}
        assert found == expected


@pytest.mark.parametrize(
    ("kind", "values", "other"),
    [
        ("int", [7, 8], 9),
        ("bigint", [1 << 40, 2], 9),
        ("boolean", [True, False], None),
        ("date", ["2024-02-29", "1969-12-31"], None),
    ],
)
def test_typed_columns_show_the_path_too(spark, tmp_path, kind, values, other):
    path = str(tmp_path / "t")
    frame = spark.createDataFrame(
        [(i, 0, str(value)) for i, value in enumerate(values)], "id int, v int, p string"
    )
    frame = frame.selectExpr("id", "v", f"cast(p as {kind}) as p")
    frame.write.format("hudi").options(**OPTIONS).save(path)
    before = sorted(map(str, spark.read.format("hudi").load(path).select("id", "p").collect()))
    move_in_file(path, [0, 1], other)
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path)
        assert sorted(map(str, read.select("id", "p").collect())) == before
        assert read.where(f"p = cast('{values[0]}' as {kind})").count() == 1


def test_merged_slices_show_the_path_too(spark, tmp_path, table_path):
    import shutil

    path = str(tmp_path / "t")
    shutil.copytree(table_path("v9_mor_commit_time"), path)
    before = sorted(
        map(str, drawstring.open_table(path).snapshot().scan().select("id", "p").to_arrow().to_pylist())
    )
    moved = {row.split("'p': ")[1] for row in before}
    move_in_file(path, list(range(1000)), "elsewhere")
    arrow = drawstring.open_table(path).snapshot().scan().select("id", "p").to_arrow().to_pylist()
    assert sorted(map(str, arrow)) == before
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path).select("id", "p")
        assert sorted(str(row.asDict()) for row in read.collect()) == before
        assert read.where("p = 'elsewhere'").count() == 0
    assert moved


@pytest.mark.parametrize("style", ["plain", "hive"])
def test_empty_text_lies_in_the_null_partition_and_is_null_on_every_road(spark, tmp_path, style):
    path = str(tmp_path / "t")
    hive = {"hoodie.datasource.write.hive_style_partitioning": str(style == "hive").lower()}
    frame = spark.createDataFrame([(1, 10, ""), (2, 20, None), (3, 30, "a")], "id int, v int, p string")
    frame.coalesce(1).write.format("hudi").options(**OPTIONS, **hive).save(path)
    expected = {
        "p IS NULL": [1, 2],
        "p = ''": [],
        "p IS NOT NULL": [3],
        "length(p) = 0": [],
        "p IS NULL AND v > 10": [2],
        "coalesce(p, '') = ''": [1, 2],
    }
    rows = drawstring.open_table(path).snapshot().scan().select("id", "p").to_arrow().to_pylist()
    assert sorted((row["id"], row["p"]) for row in rows) == [(1, None), (2, None), (3, "a")]
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path)
        assert sorted(map(tuple, read.select("id", "p").collect())) == [(1, None), (2, None), (3, "a")]
        found = {
            where: sorted(row.id for row in read.where(where).select("id").collect()) for where in expected
        }
        assert found == expected
