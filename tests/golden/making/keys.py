"""Themes about where keys, ordering values and partition values come from."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from making.catalogue import theme
from making.merging import by_event_time
from making.partitions import HIVE, KEYGEN, PARTITION, time_keygen
from making.workbench import ROW, Workbench, rows, updates

_KEY = "hoodie.datasource.write.recordkey.field"


@theme("nested_fields", "record key, ordering value and partition value inside a struct")
def nested_fields(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({_KEY: "st.id", PARTITION: "st.p", "hoodie.datasource.write.precombine.field": "st.ts"})
    schema = "st struct<id:int,p:string,ts:bigint>, s string"

    def row(key: int, ts: int, s: str) -> tuple[Any, ...]:
        return ((key, "ab"[key % 2], ts), s)

    bench.write([row(i, 10, f"s{i}") for i in range(8)], schema)
    bench.write([row(0, 20, "new"), row(1, 5, "late"), row(20, 10, "more")], schema)


@theme("nested_key", "record key and ordering value inside a struct, a plain partition column")
def nested_key(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({_KEY: "st.id", "hoodie.datasource.write.precombine.field": "st.ts"})
    schema = "st struct<id:int,ts:bigint>, p string, s string"

    def row(key: int, ts: int, s: str) -> tuple[Any, ...]:
        return ((key, ts), "ab"[key % 2], s)

    bench.write([row(i, 10, f"s{i}") for i in range(8)], schema)
    bench.write([row(0, 20, "new"), row(1, 5, "late"), row(20, 10, "more")], schema)


@theme("typed_keys", "record keys of a date, a timestamp, a decimal, a double and a boolean")
def typed_keys(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({_KEY: "d,t,n,f,b", KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"})
    schema = "d date, t timestamp, n decimal(10,2), f double, b boolean, p string, s string, ts bigint"

    def row(key: int, ts: int, s: str) -> tuple[Any, ...]:
        when = datetime.datetime(2024, 1, 1, 0, 0, 0, 1500) + datetime.timedelta(hours=key)
        return (when.date(), when, Decimal(key) / 4, key / 8, key % 2 == 0, "ab"[key % 2], s, ts)

    bench.write([row(i, 10, f"s{i}") for i in range(8)], schema)
    bench.write([row(0, 20, "new"), row(1, 5, "late"), row(20, 10, "more")], schema)
    bench.delete([row(2, 1, "x")], schema)


@theme("typed_keys_logical", "a timestamp as record key, written as logical timestamp")
def typed_keys_logical(bench: Workbench) -> None:
    bench.set({"hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true"})
    typed_keys(bench)


def custom(bench: Workbench, partition: str, settings: dict[str, str] | None = None) -> None:
    by_event_time(bench)
    bench.set({PARTITION: partition, KEYGEN: "org.apache.hudi.keygen.CustomKeyGenerator"})
    bench.set({f"hoodie.keygen.timebased.{key}": value for key, value in (settings or {}).items()})
    schema = ROW + ", y int, e string"
    days = ["2024-01-01", "2024-01-02", "2023-12-31"]
    bench.write([(*row, 2020 + row[0] % 2, days[row[0] % 3]) for row in rows(12)], schema)
    changed = [*updates([0, 1], ts=20, s="u"), *rows(1, start=30)]
    bench.write([(*row, 2020 + row[0] % 2, days[row[0] % 3]) for row in changed], schema)


_DAYS = {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyy/MM"}


@theme("custom_keygen_one", "custom key generator with one simple partition field")
def custom_keygen_one(bench: Workbench) -> None:
    custom(bench, "p:SIMPLE")


@theme("custom_keygen_two", "custom key generator with two simple partition fields, hive style")
def custom_keygen_two(bench: Workbench) -> None:
    bench.set(HIVE)
    custom(bench, "p:SIMPLE,y:SIMPLE")


@theme("custom_keygen_date", "custom key generator: dates as text become year and month, slashes in the path")
def custom_keygen_date(bench: Workbench) -> None:
    custom(bench, "e:TIMESTAMP,y:SIMPLE", _DAYS)


@theme("custom_keygen_date_hive", "custom key generator: dates as text, hive style, the time field alone")
def custom_keygen_date_hive(bench: Workbench) -> None:
    bench.set(HIVE)
    custom(bench, "e:TIMESTAMP", {**_DAYS, "output.dateformat": "yyyyMM"})


@theme("custom_keygen_none", "custom key generator without partitions")
def custom_keygen_none(bench: Workbench) -> None:
    custom(bench, "")


@theme("time_keygen_zones", "timestamp-based key generator from one zone to another, to the hour")
def time_keygen_zones(bench: Workbench) -> None:
    zones = {"input.timezone": "America/New_York", "output.timezone": "Asia/Kolkata"}
    time_keygen(
        bench,
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm",
            "output.dateformat": "yyyy-MM-dd-HH",
            **zones,
        },
        "string",
        ["2024-03-10 03:30", "2024-11-03 01:30", "2024-01-01 23:59"],
    )


@theme("time_keygen_null", "timestamp-based key generator with null values")
def time_keygen_null(bench: Workbench) -> None:
    time_keygen(
        bench,
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd", "timezone": "UTC"},
        "bigint",
        [1700000000000, None, -86400000],
    )


@theme("typed_partition_null", "a partition column of type int that holds nulls, hive style")
def typed_partition_null(bench: Workbench) -> None:
    bench.set(HIVE)
    by_event_time(bench)
    schema = "id int, p int, s string, ts bigint"
    values = [1, None, 3]
    bench.write([(i, values[i % 3], f"s{i}", 10) for i in range(9)], schema)
    bench.write([(i, values[i % 3], "u", 20) for i in (0, 1, 10)], schema)


@theme("three_level", "three partition columns of string, date and int, encoded and hive style")
def three_level(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({**HIVE, "hoodie.datasource.write.partitionpath.urlencode": "true"})
    bench.set({PARTITION: "p,d,y", KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator"})
    schema = ROW + ", d date, y int"

    def more(row: tuple[Any, ...]) -> tuple[Any, ...]:
        odd = ["a b", "c/d", "ü"][row[0] % 3]
        return (row[0], odd, *row[2:], datetime.date(2024, 1, 1 + row[0] % 2), row[0] % 2)

    bench.write([more(row) for row in rows(9)], schema)
    bench.write([more(row) for row in [*updates([0, 1], ts=20, s="u"), *rows(1, start=30)]], schema)


@theme("global_delete", "the global delete key generator: keys alone, no partitions")
def global_delete(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {KEYGEN: "org.apache.hudi.keygen.GlobalDeleteKeyGenerator", "hoodie.index.type": "GLOBAL_SIMPLE"}
    )
    bench.write(rows(6))
    bench.write(updates([0, 1], ts=20, s="u"))
    bench.delete(updates([2], ts=1, s="x"))
