"""Themes about types and schemas that change."""

# ruff: noqa: E501  (schemas and statements are read best on one line)
from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from making.catalogue import MOR, theme
from making.merging import by_event_time
from making.workbench import ROW, Workbench, rows

TYPES = (
    "id int, p string, ts bigint, b boolean, i int, l bigint, f float, d double, dec decimal(10,2), big decimal(38,18), "
    "s string, bin binary, dt date, t timestamp, arr array<int>, ats array<timestamp>, m map<string,int>, "
    "md map<string,date>, st struct<x:int,y:string,z:decimal(7,3)>, ast array<struct<x:int,y:string>>, "
    "mst map<string,struct<x:int,y:double>>, deep struct<a:struct<b:struct<c:array<map<string,decimal(5,1)>>,e:date>>>"
)


def typed_row(key: int, ts: int) -> tuple[Any, ...]:
    """A row whose values depend on the key: ordinary, extreme, negative and null ones in turn."""
    turn = (key + ts // 10) % 4
    head = (key, "ab"[key % 2], ts)
    if turn == 3:
        return (*head, *([None] * 19))
    sign = -1 if turn == 2 else 1
    return (
        *head,
        turn == 1,
        (2**31 - 1) * sign if turn else key,
        (2**63 - 1) * sign if turn else key << 33,
        [1.5, float("inf"), float("nan")][turn],
        [0.1, float("nan"), -0.0][turn],
        [Decimal("1.25"), Decimal("99999999.99"), Decimal("-99999999.99")][turn],
        [
            Decimal("1.000000000000000001"),
            Decimal("99999999999999999999.999999999999999999"),
            Decimal("-0.5"),
        ][turn],
        ["plain", 'naïve 日本語 🜚 \n\t"quoted\\', ""][turn],
        [bytearray(b"bytes"), bytearray(b"\x00\xff\x80"), bytearray()][turn],
        [datetime.date(2024, 2, 29), datetime.date(1970, 1, 1), datetime.date(1900, 1, 1)][turn],
        [
            datetime.datetime(2024, 2, 29, 12, 34, 56, 789012),
            datetime.datetime(1970, 1, 1),
            datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        ][turn],
        [[1, 2], [1, None, 3], []][turn],
        [[datetime.datetime(2024, 1, 1, 0, 0, 0, 5)], None, [datetime.datetime(1969, 1, 1), None]][turn],
        [{"k": key}, {"a": 1, "b": None}, {}][turn],
        [{"d": datetime.date(2020, 1, 1)}, None, {"x": datetime.date(1960, 5, 5)}][turn],
        [(key, "y", Decimal("1.5")), None, (1, None, Decimal("-1.234"))][turn],
        [[(1, "a"), (2, None)], [], [(1, "a"), None, (None, None)]][turn],
        [{"k": (1, 0.5)}, {}, {"k": (1, float("nan")), "n": None}][turn],
        [
            (((([{"q": Decimal("1.5")}], datetime.date(2024, 1, 1)),)),),
            (None,),
            ((([{"q": Decimal("1.5"), "n": None}, {}, None], None),),),
        ][turn],
    )


@theme("types", "every Spark type Hudi writes, special values, nulls at every level")
def types(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write([typed_row(i, 10) for i in range(16)], TYPES)
    bench.write([typed_row(i, 20) for i in range(0, 16, 2)], TYPES)
    bench.write([typed_row(i, 30) for i in (1, 2, 20, 21)], TYPES)


@theme("types_parquetlog", "every Spark type in Parquet log blocks", types=(MOR,))
def types_parquetlog(bench: Workbench) -> None:
    bench.set({"hoodie.logfile.data.block.format": "parquet"})
    types(bench)


@theme("types_ntz", "TimestampNTZ columns, also nested", versions=(9,))
def types_ntz(bench: Workbench) -> None:
    by_event_time(bench)
    schema = (
        "id int, p string, ts bigint, n timestamp_ntz, st struct<n:timestamp_ntz>, a array<timestamp_ntz>"
    )

    def row(key: int, ts: int) -> tuple[Any, ...]:
        when = datetime.datetime(2024, 1, 1, 0, 0, 0, key) + datetime.timedelta(days=ts)
        return (key, "ab"[key % 2], ts, when if key % 4 else None, (when,), [when, None] if key % 3 else None)

    bench.write([row(i, 10) for i in range(10)], schema)
    bench.write([row(i, 20) for i in (0, 1, 2)], schema)


@theme("types_small", "tinyint and smallint columns, which Hudi stores (and gives back) as int")
def types_small(bench: Workbench) -> None:
    by_event_time(bench)
    schema = "id int, p string, ts bigint, ti tinyint, si smallint, a array<smallint>"
    bench.write([(i, "ab"[i % 2], 10, i - 5, -i * 100, [i, -i]) for i in range(10)], schema)
    bench.write([(i, "ab"[i % 2], 20, None, 32767, []) for i in (0, 1)], schema)


@theme("types_oldlist", "lists in Parquet's two-level layout, Hudi's default")
def types_oldlist(bench: Workbench) -> None:
    by_event_time(bench)
    conf = bench.spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("parquet.avro.write-old-list-structure", "true")
    one = ", one array<struct<x:int>>" if bench.merge_on_read else ""
    schema = (
        "id int, p string, ts bigint, a array<int>, aa array<array<int>>, ast array<struct<x:int,y:string>>, "
        f"m map<string,array<int>>, st struct<l:array<string>>{one}"
    )

    def row(key: int, ts: int) -> tuple[Any, ...]:
        more = ([(key,)],) if one else ()
        return (
            key,
            "ab"[key % 2],
            ts,
            [key, ts] if key % 3 else [],
            [[key], []] if key % 2 else None,
            [(key, None), (ts, "y")],
            {"k": [key]},
            ([f"s{key}"],),
            *more,
        )

    bench.write([row(i, 10) for i in range(10)], schema)
    bench.write([row(i, 20) for i in (0, 1, 4)], schema)
    conf.set("parquet.avro.write-old-list-structure", "false")


def add_columns_rows(generation: int, ids: range) -> tuple[list[Any], str]:
    schema = "id int, ts bigint, s string, "
    st, element, value, last = [
        ("struct<x:int>", "struct<x:int>", "struct<x:int>", ""),
        ("struct<x:int,y:string>", "struct<x:int,y:string>", "struct<x:int,y:double>", ", late double"),
        (
            "struct<x:int,y:string,in:struct<q:int,w:array<string>>>",
            "struct<x:int,y:string>",
            "struct<x:int,y:double>",
            ", late double, last decimal(10,2)",
        ),
    ][generation - 1]
    schema += f"st {st}, arr array<{element}>, m map<string,{value}>{last}, p string"
    made = []
    for i in ids:
        st_value = [(i,), (i, f"y{i}"), (i, f"y{i}", (i, [f"w{i}"]))][generation - 1]
        arr = [(i,), None] if generation == 1 else [(i, f"y{i}"), None]
        m = {"k": (i,) if generation == 1 else (i, 0.5), "n": None}
        more = [(), (1.5,), (3.0, Decimal(i) / 100)][generation - 1]
        made.append(
            (i, generation * 10, f"g{generation}-{i}", st_value, arr if i % 4 else [], m, *more, "abc"[i % 3])
        )
    return made, schema


@theme(
    "add_columns", "columns added at the end and nested, over three generations of files that all stay alive"
)
def add_columns(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    for generation, ids in ((1, range(12)), (2, range(0, 16, 3)), (3, range(2, 20, 5))):
        made, schema = add_columns_rows(generation, ids)
        bench.write(made, schema)


@theme("promote_num", "numbers widened by later writes, also inside struct, array, map")
def promote_num(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    narrow = (
        "id int, p string, ts bigint, i2l int, i2f int, i2d int, l2f bigint, l2d bigint, f2d float, "
        "st struct<x:int,y:float>, arr array<int>, m map<string,int>, ast array<struct<x:int>>"
    )
    wide = (
        "id int, p string, ts bigint, i2l bigint, i2f float, i2d double, l2f float, l2d double, f2d double, "
        "st struct<x:bigint,y:double>, arr array<bigint>, m map<string,double>, ast array<struct<x:double>>"
    )
    bench.write(
        [
            (
                i,
                "ab"[i % 2],
                10,
                i,
                2**31 - 1,
                i,
                2**53 + i,
                2**53 + i,
                i + 0.1,
                None if i % 5 == 4 else (i, 0.1),
                [i, None],
                {"a": i, "b": None},
                [(i,), None, (None,)],
            )
            for i in range(10)
        ],
        narrow,
    )
    bench.write(
        [
            (
                i,
                "ab"[i % 2],
                20,
                2**40,
                1.5,
                1.35,
                1.5,
                2.5,
                1.35,
                (2**40, 0.1),
                [2**40, None],
                {"a": 1.5, "b": None},
                [(1.5,), None],
            )
            for i in (0, 1, 20, 21)
        ],
        wide,
    )
    bench.write(
        [(i, "ab"[i % 2], 30, None, None, None, None, None, 0.1, None, None, None, None) for i in (2, 22)],
        wide,
    )


@theme("promote_text", "numbers that become text, binary and string meeting")
def promote_text(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    first = "id int, p string, ts bigint, i2s int, l2s bigint, f2s float, d2s double, b2s binary, s2b string, sts struct<x:int>"
    then = "id int, p string, ts bigint, i2s string, l2s string, f2s string, d2s string, b2s string, s2b binary, sts struct<x:string>"
    bench.write(
        [
            (
                i,
                "ab"[i % 2],
                10,
                i,
                2**40 + i,
                i + 1.5,
                (i + 1) * 1e10,
                bytearray(f"b{i}ü".encode()),
                f"s{i}ü",
                (i,),
            )
            for i in range(10)
        ],
        first,
    )
    bench.write(
        [
            (i, "ab"[i % 2], 20, *[f"now text {i}"] * 5, bytearray(f"bin{i}ü".encode()), (f"t{i}",))
            for i in (0, 1, 20, 21)
        ],
        then,
    )


@theme("missing_columns", "batches that lack columns: the columns stay, null")
def missing_columns(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.write.set.null.for.missing.columns": "true",
            "hoodie.datasource.write.reconcile.schema": "false",
        }
    )
    bench.write(rows(12))
    bench.write([(0, "a", 20), (1, "b", 20), (20, "c", 20)], "id int, p string, ts bigint")
    bench.write([(2, "c", "s only", 30)], "id int, p string, s string, ts bigint")


def on_read_table(bench: Workbench, columns: str, values: str) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    order = "orderingFields" if bench.version == 9 else "preCombineField"
    bench.read_options["hoodie.schema.on.read.enable"] = "true"
    bench.sql("set hoodie.schema.on.read.enable=true")
    bench.sql("set hoodie.metadata.index.column.stats.enable=false")
    bench.sql(
        f"create table {{table}} ({columns}, ts bigint, p string) using hudi partitioned by (p) "
        f"location '{{path}}' tblproperties (type='{kind}', primaryKey='id', {order}='ts')"
    )
    bench.sql("set hoodie.spark.sql.insert.into.operation=upsert")
    bench.sql(f"insert into {{table}} values {values}")


@theme(
    "on_read",
    "schema on read by ALTER TABLE: add in the middle, rename, drop, re-add with another type, change type",
)
def on_read(bench: Workbench) -> None:
    on_read_table(
        bench,
        "id int, a int, b string, c float, d int",
        ", ".join(f"({i}, {i * 10}, 'b{i}', {i}.5, {i}, 10, '{'ab'[i % 2]}')" for i in range(8)),
    )
    bench.sql("alter table {table} add columns (e string after a)")
    bench.sql("insert into {table} values (0, 100, 'e0', 'b1-0', 0.25, 5, 20, 'a')")
    bench.sql("alter table {table} rename column b to b2")
    bench.sql("alter table {table} alter column a type bigint")
    bench.sql("insert into {table} values (1, 5000000000, 'e1', 'b2-1', 0.1, 6, 30, 'b')")
    bench.sql("alter table {table} drop column d")
    bench.sql("alter table {table} add columns (d string after c)")
    bench.sql("alter table {table} alter column c type double")
    bench.sql(
        "insert into {table} values (2, 3, 'Ω', 'b4-2', 3.2, 'd2', 40, 'a'), (9, 3, 'Ω', 'b4-9', 0.1, 'd9', 40, 'b')"
    )
    bench.sql("set hoodie.schema.on.read.enable=false")


@theme(
    "on_read_nested",
    "schema on read, nested: add, rename, drop and widen fields inside struct, array and map",
)
def on_read_nested(bench: Workbench) -> None:
    def row(i: int, ts: int, st: str, arr: str, m: str) -> str:
        return f"({i}, {st}, {arr}, {m}, {ts}, '{'ab'[i % 2]}')"

    first = [
        row(
            i,
            10,
            f"named_struct('x', {i}, 'y', 'y{i}', 'z', {i})",
            f"array(named_struct('x', cast({i} as float), 'y', 'a'), null)",
            f"map('k', named_struct('x', {i}, 'y', 'm'))",
        )
        for i in range(8)
    ]
    on_read_table(
        bench,
        "id int, st struct<x:int,y:string,z:int>, arr array<struct<x:float,y:string>>, "
        "m map<string,struct<x:int,y:string>>",
        ", ".join(first),
    )
    bench.sql("alter table {table} alter column st.x type bigint")
    bench.sql("alter table {table} rename column st.y to y2")
    bench.sql(
        "alter table {table} add columns (st.w string after z)"
        if bench.version == 6
        else "alter table {table} add columns (st.w string)"
    )
    bench.sql("alter table {table} drop column st.z")
    bench.sql("alter table {table} alter column arr.element.x type double")
    bench.sql("alter table {table} rename column arr.element.y to y2")
    bench.sql("alter table {table} add columns (m.value.q double)")
    bench.sql(
        "insert into {table} values "
        + ", ".join(
            row(
                i,
                20,
                f"named_struct('x', 5000000000, 'y2', 'n{i}', 'w', 'w{i}')",
                "array(named_struct('x', 0.1D, 'y2', 'b'))",
                "map('k', named_struct('x', 1, 'y', 'q', 'q', 1.5D))",
            )
            for i in (0, 1, 9)
        )
    )
    bench.sql("set hoodie.schema.on.read.enable=false")


@theme("reordered_columns", "later batches with the columns in another order")
def reordered_columns(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(9))
    bench.write(
        [(20, "moved", 0, "a", 7), (20, "moved", 4, "b", 8)],
        "ts bigint, s string, id int, p string, v bigint",
    )
    bench.write([(4, "b", 1, "after", 30)], ROW)


@theme("dropped_columns", "columns dropped by later batches that may, and added again with another type")
def dropped_columns(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
        }
    )
    bench.write(rows(9))
    bench.write([(0, "a", "no v", 20), (20, "c", "no v", 20)], "id int, p string, s string, ts bigint")
    bench.write([(1, "b", "new", 30, 1.5)], "id int, p string, s string, ts bigint, w double")


@theme(
    "reconciled",
    "batches with fewer, more and narrower columns under hoodie.datasource.write.reconcile.schema",
)
def reconciled(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0", "hoodie.datasource.write.reconcile.schema": "true"})
    bench.write(rows(9))
    bench.write([(0, "a", "fewer", 20)], "id int, p string, s string, ts bigint")
    bench.write(
        [(1, "b", 5, "more", 30, (1, "x"))],
        "id int, p string, v int, s string, ts bigint, st struct<a:int,b:string>",
    )
    bench.write(
        [(4, "b", 6, "less", 40, (2,))], "id int, p string, v int, s string, ts bigint, st struct<a:int>"
    )


@theme("decimals", "decimals of every width, widened by later writes where Hudi lets them")
def decimals(bench: Workbench) -> None:
    by_event_time(bench)
    schema = "id int, p string, ts bigint, a decimal(4,2), b decimal(9,0), c decimal(18,9), d decimal(19,5), e decimal(38,0)"
    top = [("99.99", "999999999", "999999999.999999999", "99999999999999.99999", "9" * 38)]
    rest = [("-0.01", "-1", "-0.000000001", "0.00001", "-1"), ("0", "0", "0", "0", "0"), (None,) * 5]

    def row(key: int, ts: int) -> tuple[Any, ...]:
        values = [*top, *rest][(key + ts // 10) % 4]
        return (key, "ab"[key % 2], ts, *(None if each is None else Decimal(each) for each in values))

    bench.write([row(i, 10) for i in range(12)], schema)
    bench.write([row(i, 20) for i in (0, 1, 2, 3, 20)], schema)


@theme("dates_long_ago", "dates and timestamps before 1582, before 1900 and far ahead")
def dates_long_ago(bench: Workbench) -> None:
    by_event_time(bench)
    schema = "id int, p string, ts bigint, d date, t timestamp, a array<date>"
    days = [
        datetime.date(1, 1, 1),
        datetime.date(1582, 10, 4),
        datetime.date(1899, 12, 31),
        datetime.date(9999, 12, 31),
    ]

    def row(key: int, ts: int) -> tuple[Any, ...]:
        day = days[(key + ts // 10) % 4]
        when = datetime.datetime(day.year, day.month, day.day, 1, 2, 3, 456789)
        return (key, "ab"[key % 2], ts, day, when, [day, None])

    bench.write([row(i, 10) for i in range(8)], schema)
    bench.write([row(i, 20) for i in (0, 1, 2, 3, 20)], schema)
