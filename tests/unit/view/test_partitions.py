from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.config.table_config import TableConfig
from drawstring.model.key_names import NULL_PARTITION
from drawstring.view.partitions import dropped_values, partition_values, shown_values

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
SLASHES = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}


def config(fields: str, **properties: str) -> TableConfig:
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.table.partition.fields": fields,
            **properties,
        }
    )


def values(fields: str, path: str, *types: pa.DataType, **properties: str):
    found = config(fields, **properties)
    return partition_values(found, path, dict(zip(found.partition_fields, types, strict=True)))


S, N = pa.string(), pa.int32()


@pytest.mark.parametrize(
    ("fields", "path", "types", "properties", "expected"),
    [
        ("p", "a/b/c", (S,), {}, {"p": "a/b/c"}),
        ("p", "p=a/b", (S,), HIVE, {"p": "a/b"}),
        ("p,y", "p=a/b/y=1", (S, N), HIVE, {"p": "a/b", "y": 1}),
        ("p,y", "p=a/y=1/y=2", (S, N), HIVE, {}),
        ("p,y", "a/1", (S, N), {}, {"p": "a", "y": 1}),
        ("p,y", "a/b/1", (S, N), {}, {}),
        ("p", "2026/01/05", (S,), SLASHES, {"p": "2026-01-05"}),
        ("p", "2026/01/05", (pa.date32(),), SLASHES, {"p": dt.date(2026, 1, 5)}),
        ("p", NULL_PARTITION, (S,), SLASHES, {"p": None}),
        ("p", "p=2026/01/05", (S,), {**HIVE, **SLASHES}, {"p": "2026/01/05"}),
        ("p,y", "2026/1", (S, N), SLASHES, {"p": "2026", "y": 1}),
        ("p", "p=a%2Fb%25", (S,), {**HIVE, **ENCODED}, {"p": "a/b%"}),
        ("p", "a%2Fb", (S,), {}, {"p": "a%2Fb"}),
        ("p", NULL_PARTITION, (N,), {}, {"p": None}),
        ("p", NULL_PARTITION, (S,), {}, {"p": None}),
        ("p", f"p={NULL_PARTITION}", (S,), HIVE, {"p": None}),
        ("p", "default", (S,), {}, {"p": "default"}),
        ("p", "x", (N,), {}, {}),
        ("p", "2024-02-03", (pa.date32(),), {}, {"p": dt.date(2024, 2, 3)}),
        ("p", "1.50", (pa.decimal128(5, 2),), {}, {"p": Decimal("1.50")}),
        ("p", "true", (pa.bool_(),), {}, {"p": True}),
        (
            "p",
            "1704112200000000",
            (pa.timestamp("us", tz="UTC"),),
            {},
            {"p": dt.datetime(2024, 1, 1, 12, 30, tzinfo=dt.timezone.utc)},
        ),
        ("p:SIMPLE,e:TIMESTAMP", "a/2023/11/14", (S, N), {}, {"p": "a"}),
    ],
)
def test_what_a_path_tells_for_certain(fields, path, types, properties, expected):
    assert values(fields, path, *types, **properties) == expected


def test_timestamp_based_paths_tell_nothing_of_the_column():
    properties = {"hoodie.table.keygenerator.type": "TIMESTAMP"}
    assert values("p", "2023-01-01", S, **properties) == {}


@pytest.mark.parametrize(
    ("path", "arrow", "expected"),
    [
        ("a", S, {"p": "a"}),
        ("7", N, {"p": 7}),
        ("2024-02-03", pa.date32(), {"p": dt.date(2024, 2, 3)}),
        (NULL_PARTITION, N, {"p": None}),
        (NULL_PARTITION, S, {"p": None}),
        ("1.50", pa.decimal128(5, 2), {}),
        ("1704112200000000", pa.timestamp("us", tz="UTC"), {}),
        ("0.1", pa.float32(), {}),
    ],
)
def test_rows_show_what_the_path_tells_where_text_and_value_stand_for_each_other(path, arrow, expected):
    assert shown_values(config("p"), path, {"p": arrow}) == expected


def test_dropped_columns_are_rebuilt_as_text():
    assert dropped_values(config("p,y", **HIVE), f"p={NULL_PARTITION}/y=2020", {}) == {"p": None, "y": "2020"}
