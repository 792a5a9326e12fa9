"""Themes about how rows lie in files: who wrote the Parquet, in which types, in how many groups."""

from __future__ import annotations

import datetime
from typing import Any

from making.catalogue import MOR, theme
from making.evolution import TYPES, typed_row
from making.merging import by_commit_time, by_event_time
from making.workbench import ROW, Workbench, rows, updates

_BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


@theme("row_writer", "bulk_insert by Spark's row writer, in its own Parquet layout, then upserts by Avro")
def row_writer(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.datasource.write.row.writer.enable": "true"})
    bench.write([typed_row(i, 10) for i in range(12)], TYPES, operation="bulk_insert")
    bench.write([typed_row(i, 20) for i in (1, 2, 20)], TYPES)
    bench.write([typed_row(i, 30) for i in range(30, 34)], TYPES, operation="bulk_insert")


@theme("legacy_parquet", "the row writer's legacy layout: decimals and lists as Spark 1 wrote them")
def legacy_parquet(bench: Workbench) -> None:
    bench.set({"hoodie.parquet.writelegacyformat.enabled": "true"})
    row_writer(bench)


def timestamps(bench: Workbench, kind: str) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.outputtimestamptype": kind})
    schema = "id int, p string, ts bigint, t timestamp, st struct<t:timestamp>, a array<timestamp>"

    def row(key: int, ts: int) -> tuple[Any, ...]:
        when = datetime.datetime(1969, 12, 31, 23, 59, 59, 123000) + datetime.timedelta(days=key * ts)
        return (key, "ab"[key % 2], ts, when if key % 4 else None, (when,), [when] if key % 3 else None)

    bench.write([row(i, 10) for i in range(10)], schema, operation="bulk_insert")
    bench.write([row(i, 20) for i in (0, 1, 11)], schema)


for _kind in ("TIMESTAMP_MILLIS", "INT96"):
    theme(f"timestamps_{_kind.removeprefix('TIMESTAMP_').lower()}", f"timestamps written as {_kind}")(
        lambda bench, kind=_kind: timestamps(bench, kind)  # type: ignore[misc]
    )


@theme("many_groups", "small groups: several files per partition, inserts of duplicate keys among them")
def many_groups(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.copyonwrite.insert.split.size": "3",
            "hoodie.copyonwrite.insert.auto.split": "false",
        }
    )
    bench.write(rows(30), operation="insert")
    bench.write(rows(6, start=3, s="twin"), operation="insert")
    bench.write([*updates([0, 3, 29], ts=20, s="u"), *updates([4], ts=5, s="late")])
    bench.delete(updates([5, 12], ts=1, s="x"))


@theme("empty_commits", "commits that wrote nothing, between others and first of all")
def empty_commits(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write([])
    bench.write(rows(6))
    bench.write([])
    bench.write(updates([0], ts=20, s="u"))
    bench.write([], operation="delete")


@theme("consistent_hashing", "consistent-hashing buckets, resized by clustering", types=(MOR,))
def consistent_hashing(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            **_BUCKETS,
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.min.num.buckets": "1",
            "hoodie.bucket.index.max.num.buckets": "4",
        }
    )
    bench.write(rows(12))
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(3, start=20)])
    bench.delete(updates([2], ts=1, s="x"))
    bench.write(updates([0, 20], ts=30, s="v"))


@theme("bucket_commit_time", "buckets with bulk insert, insert and upsert, by commit time")
def bucket_commit_time(bench: Workbench) -> None:
    by_commit_time(bench)
    bench.set(_BUCKETS)
    bench.write(rows(9), operation="bulk_insert")
    bench.write(rows(3, start=8, s="i"), operation="insert")
    bench.write([*updates([0, 8], ts=1, s="u"), *rows(2, start=20)])
    bench.delete(updates([1], ts=1, s="x"))


@theme("odd_names", "column names in mixed case, with underscores in front, of keywords and in other scripts")
def odd_names(bench: Workbench) -> None:
    by_event_time(bench)
    schema = ROW + ", `Mixed` string, `_under` int, `select` int, st struct<`Inner`:int,`key`:string>"

    def more(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*row, f"M{row[0]}", row[0], -row[0], (row[0], "k"))

    bench.write([more(row) for row in rows(8)], schema)
    bench.write([more(row) for row in [*updates([0, 1], ts=20, s="u"), *rows(1, start=20)]], schema)


@theme("long_values", "text and bytes of 100 kB, and several Parquet pages and row groups per file")
def long_values(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.block.size": "65536", "hoodie.parquet.page.size": "4096"})
    schema = "id int, p string, ts bigint, s string, b binary"

    def row(key: int, ts: int) -> tuple[Any, ...]:
        size = 100_000 if key % 7 == 0 else 10
        return (key, "ab"[key % 2], ts, f"{key}-{ts}-" * (size // 8), bytearray(bytes([key % 256]) * size))

    bench.write([row(i, 10) for i in range(40)], schema)
    bench.write([row(i, 20) for i in (0, 1, 7, 50)], schema)


@theme("operation_field", "the meta column _hoodie_operation is kept")
def operation_field(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.allow.operation.metadata.field": "true"})
    bench.write(rows(8))
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(1, start=20)])
    bench.delete(updates([2], ts=1, s="x"))
