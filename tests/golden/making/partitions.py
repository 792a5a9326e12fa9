"""Themes about keys, partition paths and partition columns."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from making.catalogue import COW, theme
from making.merging import by_event_time
from making.workbench import ROW, Workbench, rows, updates

HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
_ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
KEYGEN = "hoodie.datasource.write.keygenerator.class"
PARTITION = "hoodie.datasource.write.partitionpath.field"


@theme("nonpartitioned", "no partitions; as-of also in the form yyyy-MM-dd HH:mm:ss.SSS")
def nonpartitioned(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({PARTITION: "", KEYGEN: "org.apache.hudi.keygen.NonpartitionedKeyGenerator"})
    bench.write(rows(10))
    bench.write([*updates([0, 1], ts=20, s="u"), *updates([2], ts=5, s="late"), *rows(1, start=30)])
    first = bench.instants[0].requested_time
    when = datetime.datetime.strptime(first[:14], "%Y%m%d%H%M%S")
    bench.questions["as_of"] = [{"instant": first}, {"instant": f"{when:%Y-%m-%d %H:%M:%S}.{first[14:]}"}]


@theme("complex_key", "complex record keys whose values hold commas, colons, quotes, unicode, empty and null")
def complex_key(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.datasource.write.recordkey.field": "id,k",
            KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator",
        }
    )
    keys = ["plain", "a,b", "c:d", "id:1,k:2", 'quo"te', "ünï", "", None]
    schema = ROW + ", k string"
    bench.write([(*row, keys[row[0] % 8]) for row in rows(16)], schema)
    bench.write([(*row, keys[row[0] % 8]) for row in updates([1, 2, 3, 6, 7], ts=20, s="u")], schema)
    bench.delete([(*row, keys[row[0] % 8]) for row in updates([9, 14], ts=1, s="x")], schema)


@theme("custom_keygen", "custom key generator: one simple and one timestamp partition field, two key fields")
def custom_keygen(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.datasource.write.recordkey.field": "id,k",
            PARTITION: "p:SIMPLE,e:TIMESTAMP",
            KEYGEN: "org.apache.hudi.keygen.CustomKeyGenerator",
            "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
            "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
            "hoodie.keygen.timebased.timezone": "UTC",
        }
    )
    schema = ROW + ", k string, e bigint"
    bench.write([(*row, "x", 1700000000000 + row[0] % 2 * 86400000) for row in rows(12)], schema)
    bench.write(
        [(*row, "x", 1700000000000 + row[0] % 2 * 86400000) for row in updates([0, 1], ts=20, s="u")], schema
    )


@theme("custom_keygen_hive", "custom key generator, hive-style paths")
def custom_keygen_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    custom_keygen(bench)


def time_keygen(bench: Workbench, settings: dict[str, str], kind: str, values: list[Any]) -> None:
    by_event_time(bench)
    bench.set({KEYGEN: "org.apache.hudi.keygen.TimestampBasedKeyGenerator"})
    bench.set({f"hoodie.keygen.timebased.{key}": value for key, value in settings.items()})
    schema = f"id int, p {kind}, s string, ts bigint"
    bench.write([(i, values[i % len(values)], f"s{i}", 10) for i in range(10)], schema)
    bench.write([(i, values[i % len(values)], "u", 20) for i in (0, 1, 11)], schema)


_MILLIS = [1700000000000, 1700086400000, 1700172800000]
_TIME_KEYGENS: dict[str, tuple[dict[str, str], str, list[Any]]] = {
    "unix": (
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"},
        "bigint",
        [value // 1000 for value in _MILLIS],
    ),
    "epochmillis": (
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd", "timezone": "UTC"},
        "bigint",
        _MILLIS,
    ),
    "datestring": (
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
            "input.timezone": "UTC",
            "output.dateformat": "yyyy-MM-dd",
            "output.timezone": "UTC",
        },
        "string",
        ["2024-01-01T10:00:00Z", "2024-01-02T23:30:00Z", "2024-02-29T00:00:00+01:00"],
    ),
    "mixed": (
        {
            "timestamp.type": "MIXED",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss,yyyyMMdd",
            "input.dateformat.list.delimiter.regex": ",",
            "input.timezone": "UTC",
            "output.dateformat": "yyyy/MM",
            "output.timezone": "UTC",
        },
        "string",
        ["2024-01-04 23:30:00", "20240205", "2024-03-31 00:00:00"],
    ),
    "scalar": (
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": "DAYS",
            "output.dateformat": "yyyyMMdd",
            "timezone": "UTC",
        },
        "bigint",
        [19000, 19001, 19002],
    ),
    "epochmicros": (
        {"timestamp.type": "EPOCHMICROSECONDS", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"},
        "bigint",
        [value * 1000 for value in _MILLIS],
    ),
    "hours": (
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyyMMddHH", "timezone": "GMT+8:00"},
        "bigint",
        _MILLIS,
    ),
}
for _name, _shape in _TIME_KEYGENS.items():
    theme(
        f"time_keygen_{_name}",
        "timestamp-based key generator: the path is derived, the column keeps the raw value",
    )(
        lambda bench, shape=_shape: time_keygen(bench, *shape)  # type: ignore[misc]
    )


@theme("time_keygen_timestamp", "timestamp-based key generator over a timestamp column")
def time_keygen_timestamp(bench: Workbench) -> None:
    time_keygen(
        bench,
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"},
        "timestamp",
        [datetime.datetime(2024, 1, day, 12, 30) for day in (1, 2, 3)],
    )


@theme("time_keygen_hive", "timestamp-based key generator, hive-style paths")
def time_keygen_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    time_keygen(bench, *_TIME_KEYGENS["unix"])


@theme("time_keygen_slashes_hive", "timestamp-based key generator, hive-style paths three folders deep")
def time_keygen_slashes_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    time_keygen(bench, *_TIME_KEYGENS["epochmillis"])


@theme("time_keygen_encoded", "timestamp-based key generator whose slashes are url-encoded")
def time_keygen_encoded(bench: Workbench) -> None:
    bench.set(_ENCODED)
    time_keygen(bench, *_TIME_KEYGENS["mixed"])


_ODD = ["a/b", "c d", "50%", "x=y", "a%2Fb", "007"]


def odd_values(bench: Workbench, values: list[Any]) -> None:
    by_event_time(bench)
    bench.write([(i, values[i % len(values)], i * 100, f"s{i}", 10) for i in range(12)])
    bench.write([(i, values[i % len(values)], i, "u", 20) for i in (0, 1, 2, 3, 4, 5, 31)])


@theme(
    "url_encoded",
    "url-encoded partition values: slash, space, percent, equals, already-encoded, number-like text",
)
def url_encoded(bench: Workbench) -> None:
    bench.set(_ENCODED)
    odd_values(bench, _ODD)


@theme("url_encoded_hive", "url-encoded, hive-style partition values")
def url_encoded_hive(bench: Workbench) -> None:
    bench.set({**_ENCODED, **HIVE})
    odd_values(bench, _ODD)


@theme("slashes", "partition values with slashes and no url-encoding: three directories deep for one column")
def slashes(bench: Workbench) -> None:
    odd_values(bench, ["2024/01/02", "2024/01/03", "2024/02/01"])


@theme("slashes_hive", "partition values with slashes and no url-encoding, hive style")
def slashes_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    slashes(bench)


@theme("null_partition", "null and empty partition values")
def null_partition(bench: Workbench) -> None:
    odd_values(bench, ["a", None, ""])


@theme("null_partition_hive", "null and empty partition values, hive style")
def null_partition_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    odd_values(bench, ["a", None, ""])


@theme("two_level", "two partition columns (string, int), hive style")
def two_level(bench: Workbench, hive: str = "true") -> None:
    by_event_time(bench)
    bench.set(
        {next(iter(HIVE)): hive, PARTITION: "p,y", KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"}
    )
    schema = ROW + ", y int"
    bench.write([(*row, 2020 + row[0] % 2) for row in rows(12)], schema)
    bench.write(
        [(*row, 2020 + row[0] % 2) for row in [*updates([0, 1], ts=20, s="u"), *rows(1, start=30)]], schema
    )


@theme("two_level_plain", "two partition columns (string, int), plain paths")
def two_level_plain(bench: Workbench) -> None:
    two_level(bench, hive="false")


@theme(
    "dropped_partition_columns",
    "partition columns dropped from the files: rebuilt from the path",
    types=(COW,),
)
def dropped_partition_columns(bench: Workbench) -> None:
    bench.set({"hoodie.datasource.write.drop.partition.columns": "true"})
    two_level(bench)


@theme("dropped_partition_plain", "one partition column dropped from the files, no hive style", types=(COW,))
def dropped_partition_plain(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.datasource.write.drop.partition.columns": "true"})
    bench.write(rows(9))
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(1, start=30)])


_TYPED: dict[str, tuple[str, list[Any]]] = {
    "int": ("int", [1, 20, -3]),
    "bigint": ("bigint", [2**40, 7, 0]),
    "date": ("date", [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(2024, 1, 1)]),
    "ts": ("timestamp", [datetime.datetime(2024, 1, 1, 12, 30), datetime.datetime(2024, 1, 2)]),
    "boolean": ("boolean", [True, False]),
    "decimal": ("decimal(10,2)", [Decimal("1.50"), Decimal("20.00")]),
    "double": ("double", [1.5, 20.0]),
}


def typed_partition(bench: Workbench, kind: str, values: list[Any]) -> None:
    by_event_time(bench)
    schema = f"id int, p {kind}, s string, ts bigint"
    bench.write([(i, values[i % len(values)], f"s{i}", 10) for i in range(9)], schema)
    bench.write([(i, values[i % len(values)], "u", 20) for i in (0, 1, 10)], schema)


def typed_hive(bench: Workbench, kind: str, values: list[Any]) -> None:
    bench.set(HIVE)
    typed_partition(bench, kind, values)


for _name, _typed in _TYPED.items():
    theme(f"typed_partition_{_name}", "partition column that is no string, hive style")(
        lambda bench, typed=_typed: typed_hive(bench, *typed)  # type: ignore[misc]
    )
for _name in ("int", "date", "bigint", "ts", "boolean", "decimal"):
    theme(f"typed_partition_{_name}_plain", "partition column that is no string, plain paths")(
        lambda bench, typed=_TYPED[_name]: typed_partition(bench, *typed)  # type: ignore[misc]
    )


@theme("moved_partition", "a global index: an update with another partition value moves the row")
def moved_partition(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.index.type": "GLOBAL_SIMPLE",
            "hoodie.simple.index.update.partition.path": "true",
        }
    )
    bench.write(rows(9))
    bench.write([(0, "b", 1, "moved", 20), (1, "b", 2, "stayed", 20), (2, "d", 3, "moved", 20)])
    bench.write([(0, "a", 4, "moved back", 30), (2, "a", 5, "late", 5)])


@theme("no_meta", "hoodie.populate.meta.fields=false")
def no_meta(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.populate.meta.fields": "false", "hoodie.index.type": "SIMPLE"})
    bench.write(rows(12))
    bench.write([*updates([0, 1], ts=20, s="u"), *updates([2], ts=5, s="late"), *rows(1, start=30)])
