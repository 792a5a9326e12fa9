"""Themes about which version of a record wins."""

# ruff: noqa: E501  (schemas and statements are read best on one line)
from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from making.catalogue import COW, MOR, theme
from making.workbench import ROW, Workbench, rows, updates

PAYLOADS = {
    "default": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    "latest": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "eventtime": "org.apache.hudi.common.model.EventTimeAvroPayload",
    "partial": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
    "nondefaults": "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload",
    "dms": "org.apache.hudi.common.model.AWSDmsAvroPayload",
    "postgres": "org.apache.hudi.common.model.debezium.PostgresDebeziumAvroPayload",
    "mysql": "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload",
}


def by_event_time(bench: Workbench) -> None:
    """Let the ordering field decide, in the words of the running version."""
    if bench.version <= 6:
        bench.set({"hoodie.datasource.write.payload.class": PAYLOADS["default"]})
    else:
        bench.set({"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"})


def by_commit_time(bench: Workbench) -> None:
    """Let the last write win."""
    if bench.version <= 6:
        bench.set({"hoodie.datasource.write.payload.class": PAYLOADS["latest"]})
    else:
        bench.set({"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"})


@theme("event_time", "event-time ordering: late, tied and newer updates, delete by key, insert again")
def event_time(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    bench.write(rows(15))
    bench.write(
        [*updates([0, 1, 2], ts=20, s="new"), *updates([3, 4], ts=5, s="late"), *updates([5], ts=10, s="tie")]
    )
    bench.write([*updates([0, 6], ts=15, s="between"), *updates([7], ts=30, s="third")])
    bench.delete(updates([1, 8], ts=1, s="x"))
    bench.write([*updates([1], ts=2, s="again"), *rows(2, start=20)])


@theme(
    "commit_time",
    "commit-time ordering: the last write wins whatever its ordering value; deletes; insert again",
)
def commit_time(bench: Workbench) -> None:
    by_commit_time(bench)
    bench.write(rows(15))
    bench.write([*updates([0, 1, 2], ts=20, s="new"), *updates([3, 4], ts=5, s="late")])
    bench.write([*updates([0, 6], ts=1, s="latest"), *updates([7], ts=30, s="third")])
    bench.delete(updates([1, 8], ts=1, s="x"))
    bench.write([*updates([1], ts=2, s="again"), *rows(2, start=20)])


@theme(
    "is_deleted",
    "_hoodie_is_deleted rows with a higher, an equal and a lower ordering value, then writes over them",
)
def is_deleted(bench: Workbench) -> None:
    by_event_time(bench)
    schema = ROW + ", _hoodie_is_deleted boolean"
    bench.write([(*row, False) for row in rows(12)], schema)
    gone = [*updates([0, 1], ts=20, s="d"), *updates([2], ts=10, s="d"), *updates([3, 4], ts=5, s="d")]
    bench.write([(*row, True) for row in gone], schema)
    bench.write(
        [(*row, False) for row in [*updates([0], ts=30, s="back"), *updates([1], ts=15, s="older")]], schema
    )
    bench.write([(*row, None) for row in [*updates([5], ts=30, s="null flag"), *rows(1, start=20)]], schema)


@theme("delete_then_older", "a row deleted at ordering 20, then written with ordering 15", types=(MOR,))
def delete_then_older(bench: Workbench) -> None:
    by_event_time(bench)
    schema = ROW + ", _hoodie_is_deleted boolean"
    bench.write([(*row, False) for row in rows(9)], schema)
    bench.write([(*row, True) for row in updates([0, 4], ts=20, s="d")], schema)
    bench.write([(*row, False) for row in updates([0, 1], ts=15, s="older")], schema)
    bench.write([(*row, False) for row in updates([4], ts=25, s="newer")], schema)


@theme(
    "deleted_row_returns",
    "a row deleted by key, then inserted with a lower ordering value than the base row's",
)
def deleted_row_returns(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(9))
    bench.delete(updates([1, 2], ts=1, s="x"))
    bench.write(updates([1], ts=3, s="again"))
    bench.write(updates([2, 3], ts=30, s="higher"))


@theme(
    "delete_marker",
    "custom delete marker (hoodie.payload.delete.field/marker), higher and lower ordering values",
)
def delete_marker(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.payload.delete.field": "op", "hoodie.payload.delete.marker": "D"})
    if bench.version > 6:
        bench.set({"hoodie.datasource.write.payload.class": PAYLOADS["default"]})
    schema = ROW + ", op string"
    bench.write([(*row, "I") for row in rows(10)], schema)
    bench.write([(*row, "D") for row in [*updates([0, 1], ts=20, s="x"), *updates([2], ts=5, s="x")]], schema)
    bench.write([(*row, "U") for row in updates([0], ts=25, s="back")], schema)
    bench.write([(*row, "d") for row in updates([3], ts=25, s="no delete")], schema)


@theme("two_orderings", "two ordering fields compared left to right", versions=(9,))
def two_orderings(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.datasource.write.precombine.field": "ts,seq"})
    schema = ROW + ", seq int"
    bench.write([(*row, 5) for row in rows(12)], schema)
    second = [
        (*updates([0], ts=10, s="seq up")[0], 6),
        (*updates([1], ts=10, s="seq down")[0], 4),
        (*updates([2], ts=11, s="ts up")[0], 1),
        (*updates([3], ts=9, s="ts down")[0], 99),
        (*updates([4], ts=10, s="tie")[0], 5),
    ]
    bench.write(second, schema)
    bench.delete([(*row, 0) for row in updates([5], ts=1, s="x")], schema)
    bench.write(
        [(*updates([0], ts=10, s="seq between")[0], 5), (*updates([5], ts=1, s="again")[0], 1)], schema
    )


@theme("ordering_decimal", "ordering column of type decimal, deletes carrying its value", types=(MOR,))
def ordering_decimal(bench: Workbench) -> None:
    by_event_time(bench)
    make_ordered(bench, "decimal(10,2)", lambda n: Decimal(n) / 4)


@theme("ordering_timestamp", "ordering column of type timestamp, deletes carrying its value", types=(MOR,))
def ordering_timestamp(bench: Workbench) -> None:
    by_event_time(bench)
    start = datetime.datetime(2024, 1, 1)
    make_ordered(bench, "timestamp", lambda n: start + datetime.timedelta(microseconds=n))


@theme("ordering_string", "ordering column of type string, compared as text", types=(MOR,))
def ordering_string(bench: Workbench) -> None:
    by_event_time(bench)
    make_ordered(bench, "string", str)


@theme("ordering_double", "ordering column of type double", types=(MOR,))
def ordering_double(bench: Workbench) -> None:
    by_event_time(bench)
    make_ordered(bench, "double", lambda n: n / 4)


@theme("ordering_int", "ordering column of type int: a delete's int 0 is of the same type", types=(MOR,))
def ordering_int(bench: Workbench) -> None:
    by_event_time(bench)
    make_ordered(bench, "int", int)


def make_ordered(bench: Workbench, kind: str, ordering: Callable[[int], object]) -> None:
    bench.set({"hoodie.datasource.write.precombine.field": "o"})
    schema = f"id int, p string, s string, o {kind}, _hoodie_is_deleted boolean"

    def row(key: int, order: int, text: str, *, gone: bool = False) -> tuple[object, ...]:
        return (key, "ab"[key % 2], text, ordering(order), gone)

    bench.write([row(i, 10, f"s{i}") for i in range(10)], schema)
    bench.write([row(0, 20, "new"), row(1, 5, "late"), row(2, 10, "tie"), row(3, 9, "nine")], schema)
    bench.write([row(4, 20, "", gone=True), row(5, 5, "", gone=True), row(6, 10, "", gone=True)], schema)
    bench.delete([row(7, 1, "")], schema)
    bench.write([row(4, 15, "older than delete"), row(7, 1, "again"), row(8, 100, "hundred")], schema)


@theme("log_only", "bucket index: inserts go to logs; updates and deletes over them", types=(MOR,))
def log_only(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.storage.layout.type": "BUCKET",
            "hoodie.storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner",
        }
    )
    bench.write(rows(12))
    bench.write([*updates([0, 1], ts=20, s="new"), *updates([3], ts=1, s="late"), *rows(3, start=30)])
    bench.delete(updates([4, 30], ts=1, s="x"))
    bench.write(updates([4], ts=2, s="again"))


@theme("bucket_index", "bucket index on copy-on-write: file ids derived from the hash", types=(COW,))
def bucket_index(bench: Workbench) -> None:
    log_only(bench)


@theme(
    "partial_merge",
    "MERGE INTO that sets only some columns: partial log blocks, a full update and a delete over them",
    versions=(8, 9),
)
def partial_merge(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    order = "preCombineField" if bench.version == 8 else "orderingFields"
    bench.sql(
        "create table {table} (id int, v bigint, s string, w double, ts bigint, p string) using hudi "
        f"partitioned by (p) location '{{path}}' tblproperties (type='{kind}', primaryKey='id', {order}='ts')"
    )
    values = ", ".join(f"({i}, {i * 100}, 's{i}', {i / 2}, 10, '{'ab'[i % 2]}')" for i in range(10))
    bench.sql(f"insert into {{table}} values {values}")
    merge_some(bench, "v", [(0, 1, 20), (1, 2, 20), (2, 3, 5)])
    merge_some(bench, "w", [(0, 9, 30), (3, 8, 20), (1, 7, 15)])
    bench.sql(
        "merge into {table} t using (select 4 as id, 20L as ts, 'b' as b) x on t.id = x.id "
        "when matched then delete"
    )
    bench.sql(
        "merge into {table} t using (select 0 as id, 40L as ts, 4L as v, 'full' as s, 1.5D as w, 'a' as p) x "
        "on t.id = x.id when matched then update set * when not matched then insert *"
    )


def merge_some(bench: Workbench, column: str, changes: list[tuple[int, int, int]]) -> None:
    source = " union all ".join(f"select {i} as id, {value} as x, {ts}L as ts" for i, value, ts in changes)
    bench.sql(
        f"merge into {{table}} t using ({source}) x on t.id = x.id "
        f"when matched then update set {column} = x.x, ts = x.ts"
    )


def payload_table(bench: Workbench, payload: str) -> None:
    bench.set({"hoodie.datasource.write.payload.class": PAYLOADS[payload]})
    schema = "id int, p string, v bigint, s string, w double, Op string, ts bigint"

    def row(i: int, ts: int, op: str, **values: object) -> tuple[object, ...]:
        return (i, "ab"[i % 2], values.get("v"), values.get("s"), values.get("w"), op, ts)

    bench.write([row(i, 10, "I", v=i * 100, s=f"s{i}", w=i / 2) for i in range(12)], schema)
    bench.write(
        [
            row(0, 20, "U", v=-1),
            row(1, 20, "U", s="new", w=9.5),
            row(2, 5, "U", s="late", w=1.0),
            row(4, 10, "U", v=-1, w=2.0),
            row(8, 3, "U", s="late", w=4.0),
        ],
        schema,
    )
    last = "D" if payload == "dms" else "U"
    bench.write(
        [
            row(0, 30, "U", w=7.0),
            row(2, 30, "U", s="third", v=200),
            row(6, 30, last, s="gone?"),
            row(20, 10, "I", v=1),
            row(1, 15, "U", v=77),
        ],
        schema,
    )
    if payload == "dms":
        bench.write([row(6, 40, "I", s="returned"), row(3, 5, "D")], schema)


def debezium_table(bench: Workbench, payload: str) -> None:
    bench.set({"hoodie.datasource.write.payload.class": PAYLOADS[payload]})
    order = "_event_lsn" if payload == "postgres" else "_event_seq"
    two = payload == "mysql" and bench.version == 9
    bench.set({"hoodie.datasource.write.precombine.field": "_event_bin_file,_event_pos" if two else order})
    kind = "bigint" if payload == "postgres" else "string"
    extra = "" if payload == "postgres" else ", _event_bin_file string, _event_pos bigint"
    schema = f"id int, p string, v bigint, s string, _change_operation_type string, {order} {kind}{extra}"

    def row(i: int, order_value: int, op: str, v: int | None, s: str | None) -> tuple[object, ...]:
        if payload == "postgres":
            return (i, "ab"[i % 2], v, s, op, order_value)
        return (i, "ab"[i % 2], v, s, op, f"000001.{order_value:05d}", "mysql.000001", order_value)

    bench.write([row(i, 10, "c", i * 100, f"s{i}") for i in range(10)], schema)
    bench.write(
        [
            row(0, 20, "u", 1, "__debezium_unavailable_value"),
            row(1, 5, "u", 2, "late"),
            row(2, 20, "d", 3, "gone"),
            row(3, 20, "u", None, None),
        ],
        schema,
    )
    bench.write(
        [
            row(0, 30, "u", 5, "__debezium_unavailable_value"),
            row(2, 15, "u", 4, "older than delete"),
            row(4, 30, "u", 6, "new"),
            row(11, 10, "c", 7, "inserted"),
        ],
        schema,
    )
    bench.write([row(2, 40, "c", 8, "back"), row(5, 9, "d", 9, "late delete")], schema)


for _name in ("default", "latest", "eventtime", "partial", "nondefaults", "dms"):
    theme(
        f"payload_{_name}",
        "payload class (v9: what it maps to): late, tied and newer updates, nulls, Op=D for DMS",
    )(
        lambda bench, chosen=_name: payload_table(bench, chosen)  # type: ignore[misc]
    )
for _name in ("postgres", "mysql"):
    theme(f"payload_{_name}", "Debezium payload class: operations, unavailable values, late records")(
        lambda bench, chosen=_name: debezium_table(bench, chosen)  # type: ignore[misc]
    )


@theme("null_ordering", "null ordering values meet each other: a tie, so the newer one wins", types=(MOR,))
def null_ordering(bench: Workbench) -> None:
    # Hudi writes a null beside other values of one key, but cannot read them back: only nulls meet here.
    by_event_time(bench)
    bench.write([(*row[:4], None if row[0] < 4 else 10) for row in rows(8)])
    bench.write([(*row[:4], None) for row in [*updates([0, 1], ts=20, s="null again"), *rows(1, start=20)]])
    bench.write(
        [
            *[(*row[:4], None) for row in updates([0], ts=30, s="null once more")],
            *updates([5], ts=20, s="new"),
        ]
    )


@theme("ordering_float", "ordering column of type float", types=(MOR,))
def ordering_float(bench: Workbench) -> None:
    by_event_time(bench)
    make_ordered(bench, "float", lambda n: n / 10)


@theme("ordering_nan", "NaN and infinities as ordering values: NaN is the largest", types=(MOR,))
def ordering_nan(bench: Workbench) -> None:
    by_event_time(bench)
    odd = {20: float("nan"), 100: float("inf"), 5: float("-inf"), 1: -0.0}
    make_ordered(bench, "double", lambda n: odd.get(n, n / 10))


@theme("no_ordering", "no ordering field: the last write wins; deletes and inserts again")
def no_ordering(bench: Workbench) -> None:
    bench.options.pop("hoodie.datasource.write.precombine.field")
    bench.write(rows(12))
    bench.write([*updates([0, 1], ts=20, s="new"), *updates([2], ts=5, s="lower")])
    bench.delete(updates([1, 3], ts=1, s="x"))
    bench.write([*updates([1], ts=2, s="again"), *rows(1, start=20)])


@theme("commit_time_deletes", "soft deletes and lower ordering values where the last write wins")
def commit_time_deletes(bench: Workbench) -> None:
    by_commit_time(bench)
    schema = ROW + ", _hoodie_is_deleted boolean"
    bench.write([(*row, False) for row in rows(9)], schema)
    gone = [*updates([0, 1], ts=20, s="d"), *updates([2], ts=5, s="d")]
    bench.write([(*row, True) for row in gone], schema)
    bench.write([(*row, False) for row in updates([0, 2], ts=1, s="back")], schema)
    bench.write([(*row, True) for row in updates([3], ts=0, s="d")], schema)


@theme("twins_in_a_batch", "several rows of one key in one batch, combined before they are written")
def twins_in_a_batch(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.combine.before.insert": "true", "hoodie.combine.before.upsert": "true"})
    bench.write([*rows(6), *updates([0, 1], ts=20, s="twin"), *updates([2], ts=5, s="lower twin")])
    bench.write([*updates([0], ts=30, s="a"), *updates([0], ts=40, s="b"), *updates([0], ts=35, s="c")])
    bench.write([*updates([1], ts=30, s="tie a"), *updates([1], ts=30, s="tie b")])


@theme("spark_merger", "Spark's own record merger: rows stay Spark rows, logs hold Parquet", versions=(6,))
def spark_merger(bench: Workbench) -> None:
    bench.set(
        {
            "hoodie.datasource.write.record.merger.impls": "org.apache.hudi.HoodieSparkRecordMerger",
            "hoodie.logfile.data.block.format": "parquet",
        }
    )
    bench.write(rows(12))
    bench.write(
        [*updates([0, 1], ts=20, s="new"), *updates([2], ts=5, s="late"), *updates([3], ts=10, s="tie")]
    )
    bench.delete(updates([1, 4], ts=1, s="x"))
    bench.write([*updates([1], ts=2, s="again"), *rows(1, start=20)])


@theme("parquet_logs", "Parquet log blocks: updates, late ones, deletes by key and soft ones", types=(MOR,))
def parquet_logs(bench: Workbench) -> None:
    bench.set({"hoodie.logfile.data.block.format": "parquet"})
    is_deleted(bench)


@theme("partial_merge_commit_time", "MERGE INTO of some columns where the last write wins", versions=(8, 9))
def partial_merge_commit_time(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    bench.sql(
        "create table {table} (id int, v bigint, s string, w double, ts bigint, p string) using hudi "
        f"partitioned by (p) location '{{path}}' tblproperties (type='{kind}', primaryKey='id')"
    )
    values = ", ".join(f"({i}, {i * 100}, 's{i}', {i / 2}, 10, '{'ab'[i % 2]}')" for i in range(8))
    bench.sql(f"insert into {{table}} values {values}")
    merge_some(bench, "v", [(0, 1, 20), (1, 2, 5)])
    merge_some(bench, "w", [(0, 9, 1), (3, 8, 20)])
    bench.sql("delete from {table} where id = 5")
    merge_some(bench, "v", [(0, 7, 2), (2, 6, 1)])
