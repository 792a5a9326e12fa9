"""Index types through `df.write`, with the rows collected and, as for many rows, located by Spark."""

from __future__ import annotations

import pytest

from drawstring.model.file_names import bucket_of_file_id
from drawstring.spark.write import few_rows, rows

pytestmark = pytest.mark.spark

SCHEMA = "id string, p string, ts bigint, v string"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
}
FIRST = [(str(i), "ab c"[i % 3] if i % 5 else "50%", 5, "first") for i in range(60)]


@pytest.fixture(params=[True, False], ids=["collected", "many"])
def limit(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(few_rows, "FEW_BYTES", 0)
        monkeypatch.setattr(rows, "COLLECTED_BYTES", -1)


def write(spark, path, data, operation="upsert", **more):
    options = {**OPTIONS, "hoodie.datasource.write.operation": operation, **more}
    frame = spark.createDataFrame(data, SCHEMA).repartition(3)
    frame.write.format("hudi").options(**options).mode("append").save(str(path))


def found(spark, path):
    names = ("id", "_hoodie_partition_path", "ts", "v")
    return sorted(tuple(row) for row in spark.read.format("hudi").load(str(path)).select(*names).collect())


def options_of(kind: str, moves: bool) -> dict[str, str]:
    name = "bloom" if kind == "GLOBAL_BLOOM" else "simple"
    return {"hoodie.index.type": kind, f"hoodie.{name}.index.update.partition.path": str(moves).lower()}


@pytest.mark.parametrize("moves", [True, False])
def test_global_index_moves_rows_or_keeps_them(spark, tmp_path, limit, moves):
    options = options_of("GLOBAL_SIMPLE", moves)
    write(spark, tmp_path / "t", FIRST, **options)
    # Newer, older, deleted by nobody, new, and twice with different partitions.
    newer = [(str(i), "z", 6, "second") for i in range(20)] + [(str(i), "z", 4, "old") for i in range(20, 25)]
    newer += [("100", "z", 1, "new"), ("101", "y", 1, "loses"), ("101", "z", 2, "wins")]
    write(spark, tmp_path / "t", newer, **options)
    expected = {key: (path, ts, v) for key, path, ts, v in FIRST}
    expected |= {k: (p if moves else expected[k][0], ts, v) for k, p, ts, v in newer[:20]}
    expected |= {"100": ("z", 1, "new"), "101": ("z", 2, "wins")}
    assert found(spark, tmp_path / "t") == sorted((key, *rest) for key, rest in expected.items())
    write(spark, tmp_path / "t", [("3", "nowhere", 9, ""), ("200", "z", 9, "")], "delete", **options)
    del expected["3"]
    assert found(spark, tmp_path / "t") == sorted((key, *rest) for key, rest in expected.items())


@pytest.mark.parametrize("kind", ["SIMPLE", "GLOBAL_SIMPLE"])
def test_updates_do_not_bring_deleted_rows_back_beside_new_ones(spark, tmp_path, limit, kind):
    """Base files of merge-on-read tables still have the rows that logs deleted, whose keys came back elsewhere."""
    options = {**options_of(kind, True), "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    write(spark, tmp_path / "t", FIRST, **options)
    write(spark, tmp_path / "t", FIRST[:20], "delete", **options)
    write(spark, tmp_path / "t", [(*row[:2], 6, "again") for row in FIRST[:10]], "insert", **options)
    write(spark, tmp_path / "t", [(*row[:2], 7, "updated") for row in FIRST], **options)
    assert found(spark, tmp_path / "t") == sorted((*row[:2], 7, "updated") for row in FIRST)
    write(spark, tmp_path / "t", FIRST[:5], "delete", **options)
    write(spark, tmp_path / "t", [(*row[:2], 8, "back") for row in FIRST[:15]], **options)
    expected = [
        (*row[:2], 8 if i < 15 else 7, "back" if i < 15 else "updated") for i, row in enumerate(FIRST)
    ]
    assert found(spark, tmp_path / "t") == sorted(expected)


@pytest.mark.parametrize("fields", ["id", "id,v"])
def test_rows_go_to_buckets(spark, tmp_path, limit, fields):
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "5",
        "hoodie.datasource.write.recordkey.field": fields,
    }
    write(spark, tmp_path / "t", FIRST[:30], "bulk_insert", **options)
    write(spark, tmp_path / "t", [(*row[:2], 6, "first") for row in FIRST], **options)
    assert found(spark, tmp_path / "t") == sorted((*row[:2], 6, "first") for row in FIRST)
    write(spark, tmp_path / "t", [*FIRST[:10], ("777", "new", 1, "")], "delete", **options)
    assert found(spark, tmp_path / "t") == sorted((*row[:2], 6, "first") for row in FIRST[10:])
    seen = spark.read.format("hudi").load(str(tmp_path / "t")).select("_hoodie_file_name", "p").distinct()
    groups = [(row[1], row[0].split("_")[0]) for row in seen.collect()]
    assert len({(path, bucket_of_file_id(file_id)) for path, file_id in groups}) == len(groups)


def test_the_bucket_of_a_key_is_the_same_in_spark_and_in_python(spark):
    import pyarrow as pa
    from pyspark.sql import functions as F

    from drawstring.schema.meta_columns import RECORD_KEY
    from drawstring.spark.write.buckets import bucket_column, register_hash
    from drawstring.write.bucket_index import BucketRule, bucket_numbers

    register_hash(spark)
    plain = ["", "a", "k1é\U0001f600", "x" * 300, "a:b,c:d"]
    composite = [
        f"a.b:{one},c:{two}" for one in ("1", "__null__", "x,y") for two in ("", "__empty__", "z\nw")
    ]
    for keys, rule in (
        (plain, BucketRule(7, ("a",))),
        (composite, BucketRule(1000, ("a.b", "c"))),
        (composite, BucketRule(1000, ("a.b", "c"), ("c",))),
    ):
        frame = spark.createDataFrame([(i, key) for i, key in enumerate(keys)], f"n int, {RECORD_KEY} string")
        rows = frame.select("n", bucket_column(rule).alias("bucket")).orderBy(F.col("n")).collect()
        assert [row[1] for row in rows] == bucket_numbers(pa.array(keys), rule).tolist()
