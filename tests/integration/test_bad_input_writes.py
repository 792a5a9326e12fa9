"""Hostile places, names and values through Spark: they work, or are refused with nothing written."""

from __future__ import annotations

import random

import pytest

from drawstring.errors import InvalidInput, UnsupportedTable
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

SCHEMA = "id int, v int, p string"
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
PLACES = [
    "t[1]{a,b}", "a*b?c", "with space", "a:b", "50%41", "a#b", "naïve 🜚", "a'b\"c`d", "x;y&z|$HOME", "a\\b", "~t=+,",
]  # fmt: skip
VALUES = [
    "a,b",
    "a b",
    "a:b",
    "50%",
    "%41",
    "a#b",
    "[x]",
    "{x}",
    "a*b",
    "a?b",
    "é",
    "a'b",
    "🜚",
    "a=b",
    "x\\y",
]


@pytest.mark.parametrize("place", PLACES)
def test_tables_at_odd_places_are_written_and_read_on_every_road(spark, tmp_path, place):
    path = str(tmp_path / place)
    write(spark, path, [(1, 10, "a"), (2, 20, "b")])
    write(spark, path, [(1, 11, "a"), (3, 30, "c")])
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path)
        assert sorted(map(tuple, read.select("id", "v", "p").collect())) == [
            (1, 11, "a"),
            (2, 20, "b"),
            (3, 30, "c"),
        ]
        assert [row.id for row in read.where("p = 'c'").select("id").collect()] == [3]
    assert [entry.name for entry in tmp_path.iterdir()] == [place]


@pytest.mark.parametrize("style", ["plain", "hive", "encoded"])
def test_odd_partition_values_are_written_and_read_on_every_road(spark, tmp_path, style):
    path = str(tmp_path / "t")
    settings = {
        "hoodie.datasource.write.hive_style_partitioning": str(style == "hive").lower(),
        "hoodie.datasource.write.partitionpath.urlencode": str(style == "encoded").lower(),
    }
    write(spark, path, [(i, 10, value) for i, value in enumerate(VALUES)], **settings)
    write(spark, path, [(i, 11, value) for i, value in enumerate(VALUES)], **settings)
    for flag in ("true", "false"):
        read = spark.read.format("hudi").option(USE_V2, flag).load(path)
        rows = {tuple(row) for row in read.select("id", "v", "p").collect()}
        assert rows == {(i, 11, value) for i, value in enumerate(VALUES)}
        for value in VALUES[::4]:
            assert [row.p for row in read.where(read.p == value).collect()] == [value]


def test_a_static_overwrite_takes_partitions_whose_names_hold_commas(spark, name):
    spark.sql(
        f"CREATE TABLE {name} (id INT, p STRING) USING hudi PARTITIONED BY (p) TBLPROPERTIES (primaryKey = 'id')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a,b'), (2, 'a'), (3, 'b')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'a,b') SELECT 4")
    rows = sorted(map(tuple, spark.table(name).select("id", "p").collect()))
    assert rows == [(2, "a"), (3, "b"), (4, "a,b")]
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'a,b') SELECT 1 WHERE false")
    assert sorted(row.id for row in spark.table(name).collect()) == [2, 3]


@pytest.mark.parametrize("operation", ["bulk_insert", "insert", "upsert"])
@pytest.mark.parametrize("fields", ["p", "p,v"])
def test_the_name_of_the_null_partition_is_refused_as_a_value(spark, tmp_path, operation, fields):
    path = str(tmp_path / "t")
    settings = {
        "hoodie.datasource.write.operation": operation,
        "hoodie.datasource.write.partitionpath.field": fields,
    }
    with pytest.raises(InvalidInput) as caught:
        write(spark, path, [(1, 10, "a"), (2, 20, "__HIVE_DEFAULT_PARTITION__")], **settings)
    assert caught.value.condition == "RESERVED_PARTITION_VALUE"
    assert not (tmp_path / "t").exists()


def test_partitions_that_differ_in_case_or_composition_are_warned_about(spark, tmp_path, caplog):
    write(spark, str(tmp_path / "t"), [(1, 10, "bern"), (2, 20, "é")])
    assert "differ from others" not in caplog.text
    write(spark, str(tmp_path / "t"), [(3, 10, "Bern"), (4, 20, "e\N{COMBINING ACUTE ACCENT}")])
    assert "'Bern' and 'bern'" in caplog.text
    read = spark.read.format("hudi").load(str(tmp_path / "t"))
    assert {row.p for row in read.collect()} == {"bern", "Bern", "é", "e\N{COMBINING ACUTE ACCENT}"}


KEYS = "a string, b string, p string"
COMPOSITE = {**OPTIONS, "hoodie.datasource.write.recordkey.field": "a,b"}
RESERVED = ("__null__", "__empty__")


def test_keys_of_several_columns_are_one_to_one(spark, tmp_path):
    dice = random.Random(7)
    texts = [
        "",
        *RESERVED,
        *("".join(dice.choices([",", ":", "a", "b", ",b:", "a:"], k=k % 6)) for k in range(60)),
    ]
    pairs = {(dice.choice([*texts, None]), dice.choice([*texts, None])) for _ in range(600)} - {
        ("", ""),
        (None, None),
    }
    pairs = {(a, b) for a, b in pairs if (a or b) and not is_ambiguous(a, b)}
    frame = spark.createDataFrame([(a, b, "x") for a, b in pairs], KEYS)
    frame.write.format("hudi").options(**COMPOSITE).save(str(tmp_path / "t"))
    rows = spark.read.format("hudi").load(str(tmp_path / "t")).collect()
    assert {(row.a, row.b) for row in rows} == pairs
    assert len({row["_hoodie_record_key"] for row in rows}) == len(rows) == len(pairs) > 200


def is_ambiguous(a: str | None, b: str | None) -> bool:
    return a in RESERVED or b in RESERVED or ",b:" in (a or "")


@pytest.mark.parametrize("pair", [("x,b:y", "z"), ("__null__", "x"), ("x", "__empty__")])
def test_keys_that_two_rows_could_share_are_refused(spark, tmp_path, pair):
    frame = spark.createDataFrame([("k", "k", "x"), (*pair, "x")], KEYS)
    with pytest.raises(InvalidInput) as caught:
        frame.write.format("hudi").options(**COMPOSITE).save(str(tmp_path / "t"))
    assert caught.value.condition == "AMBIGUOUS_RECORD_KEY"
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore"])
def test_object_stores_are_refused_before_they_are_reached(spark, mode):
    frame = spark.createDataFrame([(1, 10, "a")], SCHEMA)
    with pytest.raises(UnsupportedTable) as caught:
        frame.write.format("hudi").options(**OPTIONS).mode(mode).save("s3a://nowhere.invalid/t")
    assert caught.value.condition == "WRITE_STORAGE"


def write(spark, path: str, rows: list[tuple], **settings: str) -> None:
    options = {**OPTIONS, **settings}
    spark.createDataFrame(rows, SCHEMA).write.format("hudi").options(**options).mode("append").save(path)
