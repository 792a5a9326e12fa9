"""Themes about the timeline, table services and the metadata table."""

from __future__ import annotations

from typing import Any

from making.catalogue import COW, MOR, theme
from making.merging import by_event_time
from making.workbench import ROW, Workbench, rows, updates

_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}


def steady(bench: Workbench, count: int) -> None:
    """`count` small upserts, each with a new key."""
    for turn in range(count):
        changed = updates([turn % 12, (turn + 5) % 12], ts=20 + turn, s=f"w{turn}")
        bench.write([*changed, *rows(1, start=100 + turn)])


@theme("compacted", "finished compaction, then more log files on the new base", types=(MOR,))
def compacted(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write([*updates([0, 1, 2], ts=20, s="new"), *updates([3], ts=5, s="late")])
    bench.delete(updates([4], ts=1, s="x"))
    bench.register()
    bench.sql("call run_compaction(op => 'scheduleAndExecute', table => '{table}')")
    bench.write([*updates([0], ts=30, s="after"), *updates([4], ts=3, s="again"), *rows(1, start=20)])
    bench.write(updates([1], ts=15, s="late after"))


@theme("pending_compaction", "a compaction scheduled and not run, then more updates", types=(MOR,))
def pending_compaction(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write([*updates([0, 1, 2], ts=20, s="new"), *updates([3], ts=5, s="late")])
    bench.register()
    bench.sql("call run_compaction(op => 'schedule', table => '{table}')")
    bench.write([*updates([0, 3], ts=30, s="after"), *updates([1], ts=15, s="late")])
    bench.delete(updates([5], ts=1, s="x"))
    bench.write([*updates([6], ts=40, s="last"), *rows(1, start=20)])


@theme(
    "log_compaction",
    "log compaction: blocks that stand for the blocks of several older instants",
    types=(MOR,),
)
def log_compaction(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(9))
    bench.write([*updates([0, 1], ts=20, s="one"), *updates([2], ts=5, s="late")])
    bench.write(updates([0, 3], ts=30, s="two"))
    bench.delete(updates([4], ts=1, s="x"))
    bench.write(
        updates([3, 5], ts=40, s="three"),
        options={
            "hoodie.log.compaction.enable": "true",
            "hoodie.log.compaction.inline": "true",
            "hoodie.log.compaction.blocks.threshold": "1",
            "hoodie.compaction.logfile.num.threshold": "1",
        },
    )
    bench.write([*updates([0], ts=50, s="after"), *updates([4], ts=2, s="again")])


@theme(
    "clustered", "inline clustering replaced the file groups; then an update; rows keep their commit times"
)
def clustered(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    bench.write(rows(12))
    bench.write(rows(6, start=12))
    bench.write(
        rows(6, start=18),
        options={"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"},
    )
    bench.write([*updates([0, 13], ts=20, s="u"), *updates([1], ts=5, s="late")])


@theme("pending_clustering", "clustering scheduled and never run: nothing may be replaced")
def pending_clustering(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    bench.write(rows(12))
    bench.write(rows(12, start=12))
    bench.register()
    bench.sql("call run_clustering(op => 'schedule', table => '{table}')")
    bench.write(rows(3, start=30))


@theme("cleaned", "the cleaner has removed old slices; as of an instant whose files remain")
def cleaned(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.clean.automatic": "true",
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.clean.commits.retained": "1",
        }
    )
    if bench.merge_on_read:
        bench.set({"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"})
    bench.write(rows(9))
    for turn in range(5):
        bench.write(updates([turn, (turn + 3) % 9], ts=20 + turn, s=f"w{turn}"))
    instants = bench.instants
    bench.questions["as_of"] = [{"instant": instants[-1].requested_time}]
    bench.questions["incremental"] = [
        {"begin": instants[-2].completion_time, "end": None},
        {"begin": "000", "end": None},
    ]


@theme("archived", "many commits with an archived timeline")
def archived(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.clean.automatic": "true",
            "hoodie.clean.commits.retained": "1",
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
        }
    )
    if bench.merge_on_read:
        bench.set({"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "4"})
    bench.write(rows(12))
    steady(bench, 11)
    instants = bench.instants
    bench.questions["as_of"] = [{"instant": instants[-1].requested_time}]


@theme("restored", "savepoint, two more writes, restore to the savepoint, one more write")
def restored(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(10))
    bench.write(updates([0, 1], ts=20, s="kept"))
    bench.register()
    saved = bench.instants[-1].requested_time
    bench.sql(f"call create_savepoint(table => '{{table}}', commit_time => '{saved}')")
    bench.write([*updates([2, 3], ts=30, s="lost"), *rows(1, start=20)])
    bench.write(updates([0], ts=40, s="lost"))
    bench.sql(f"call rollback_to_savepoint(table => '{{table}}', instant_time => '{saved}')")
    bench.write([*updates([4], ts=50, s="after"), *rows(1, start=21)])


@theme("rolled_back", "a completed write rolled back by procedure, then another write")
def rolled_back(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(10))
    bench.write(updates([0, 1], ts=20, s="kept"))
    bench.write([*updates([2, 3], ts=30, s="lost"), *rows(1, start=20)])
    bench.register()
    bench.sql(
        f"call rollback_to_instant(table => '{{table}}', instant_time => '{bench.instants[-1].requested_time}')"
    )
    bench.write([*updates([4], ts=50, s="after"), *updates([2], ts=40, s="after")])


@theme("died", "a write that died before completing: its files stay behind and must not be read")
def died(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(10))
    bench.write(updates([0, 1], ts=20, s="kept"))
    bench.write([*updates([2, 3], ts=30, s="dead"), *rows(2, start=20)])
    bench.die()


@theme("overwrite", "insert_overwrite of one partition, delete_partition of another, then an upsert")
def overwrite(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write(updates([0, 1, 2], ts=20, s="u"))
    bench.write(
        [(30, "a", 1, "overwritten", 10), (0, "a", 1, "overwritten", 5)], operation="insert_overwrite"
    )
    bench.write([(1, "b", 1, "x", 10)], operation="delete_partition")
    bench.write([*updates([2, 0], ts=30, s="after")])


@theme("overwrite_table", "insert_overwrite_table: all older file groups replaced")
def overwrite_table(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write(updates([0, 1, 2], ts=20, s="u"))
    bench.write(rows(5, start=2, s="fresh"), operation="insert_overwrite_table")
    bench.write([*updates([2], ts=30, s="after"), *rows(1, start=40)])


@theme("no_metadata", "metadata table disabled: files are found by listing")
def no_metadata(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.metadata.enable": "false"})
    bench.read_options["hoodie.metadata.enable"] = "false"
    bench.write(rows(10))
    bench.write([*updates([0, 1], ts=20, s="u"), *updates([2], ts=5, s="late"), *rows(2, start=20)])


@theme("record_index", "record index in the metadata table; upserts tagged by it")
def record_index(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.metadata.global.record.level.index.enable": "true",
        }
    )
    bench.write(rows(20))
    bench.write([*updates([0, 1, 2], ts=20, s="u"), *rows(3, start=20)])
    bench.delete(updates([5], ts=1, s="x"))
    bench.write([(1, "c", 1, "moved", 40)])


@theme(
    "column_stats", "column_stats over several commits, metadata table compacted; NaN, nulls, long strings"
)
def column_stats(bench: Workbench) -> None:
    import datetime
    from decimal import Decimal

    by_event_time(bench)
    bench.set(
        {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.compact.max.delta.commits": "3",
        }
    )
    schema = "id int, p string, ts bigint, d double, s string, dec decimal(12,4), dt date"

    def row(i: int, ts: int) -> tuple[Any, ...]:
        d = [1.5, float("nan"), None, -0.0][i % 4]
        s = ["u" + str(i), "x" * 200, None, "ü"][i % 4]
        return (
            i,
            "ab"[i % 2],
            ts,
            d,
            s,
            Decimal(i) / 4,
            datetime.date(1970, 1, 1) + datetime.timedelta(days=i - 10),
        )

    bench.write([row(i, 10) for i in range(12)], schema)
    for turn in range(3):
        bench.write([row(i, 20 + turn) for i in (turn, turn + 4, 20 + turn)], schema)


@theme("secondary_index", "secondary index (SQL CREATE INDEX), updates after its creation", versions=(8, 9))
def secondary_index(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            **_LOCK,
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.metadata.global.record.level.index.enable": "true",
        }
    )
    bench.write(rows(10))
    bench.register()
    for key, value in _LOCK.items():
        bench.sql(f"set {key}={value}")
    bench.sql("set hoodie.metadata.record.index.enable=true")
    bench.sql("set hoodie.metadata.global.record.level.index.enable=true")
    bench.sql("create index idx_s on {table} (s)")
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(1, start=20)])
    bench.delete(updates([2], ts=1, s="x"))


@theme("expression_index", "expression index (SQL CREATE INDEX) over a bigint as date", versions=(8, 9))
def expression_index(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({**_LOCK, "hoodie.metadata.enable": "true"})
    bench.write(rows(10))
    bench.register()
    for key, value in _LOCK.items():
        bench.sql(f"set {key}={value}")
    bench.sql(
        "create index idx_ts on {table} using column_stats(ts) "
        "options(expr='from_unixtime', format='yyyy-MM-dd')"
    )
    # Hudi 1.0.2 cannot upsert a DataFrame after that.
    if bench.version == 9:
        bench.write([*updates([0, 1], ts=20, s="u"), *rows(1, start=20)])
    else:
        bench.sql("delete from {table} where id = 2")


@theme("cdc", "change data capture on: snapshot reads, log files with change records beside the data")
def cdc(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
        }
    )
    bench.write(rows(10))
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(1, start=20)])
    bench.delete(updates([2], ts=1, s="x"))
    bench.write([*updates([3], ts=30, s="v"), *updates([4], ts=5, s="late")])


@theme("cdc_op_key", "change data capture with keys only", types=(COW,))
def cdc_op_key(bench: Workbench) -> None:
    cdc_with = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "op_key_only",
    }
    by_event_time(bench)
    bench.set(cdc_with)
    bench.write(rows(8))
    bench.write(updates([0, 1], ts=20, s="u"))


@theme("empty", "created by SQL, no commit yet")
def empty(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    order = "orderingFields" if bench.version == 9 else "preCombineField"
    bench.sql(
        "create table {table} (id int, s string, d decimal(10,2), st struct<x:int>, ts bigint, p string) using hudi "
        f"partitioned by (p) location '{{path}}' tblproperties (type='{kind}', primaryKey='id', {order}='ts')"
    )


@theme("emptied", "every row deleted: file groups stay, rows do not")
def emptied(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(4))
    bench.delete(rows(4))


@theme("generated_keys", "no record key configured: Hudi generates the keys", types=(COW, MOR))
def generated_keys(bench: Workbench) -> None:
    bench.options.pop("hoodie.datasource.write.recordkey.field")
    bench.options.pop("hoodie.datasource.write.precombine.field")
    bench.write(rows(6), operation="insert")
    bench.write(rows(6, start=3), operation="insert")


@theme("sql_dml", "INSERT, UPDATE, DELETE and MERGE by SQL over a table created by SQL")
def sql_dml(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    order = "orderingFields" if bench.version == 9 else "preCombineField"
    bench.sql(
        "create table {table} (id int, v bigint, s string, ts bigint, p string) using hudi partitioned by (p) "
        f"location '{{path}}' tblproperties (type='{kind}', primaryKey='id', {order}='ts')"
    )
    bench.sql(
        "insert into {table} values "
        + ", ".join(f"({i}, {i}, 's{i}', 10, '{'ab'[i % 2]}')" for i in range(8))
    )
    bench.sql("update {table} set v = v + 1000, ts = 20 where id < 3")
    bench.sql("delete from {table} where id = 4")
    bench.sql("insert into {table} values (20, 1, 'more', 5, 'c')")


def upgraded_begin(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write([*updates([0, 1, 2], ts=20, s="old writer"), *updates([3], ts=5, s="late")])
    bench.write(updates([4, 0], ts=25, s="old writer"))


def upgraded(bench: Workbench) -> None:
    bench.write([*updates([0, 5], ts=30, s="new writer"), *rows(1, start=20)])
    bench.write(updates([1], ts=40, s="new writer"))


theme(
    "upgraded_v6",
    "written by Hudi 0.15.0, then upgraded by a newer writer's upsert",
    versions=(8, 9),
    begun_by=6,
    begin=upgraded_begin,
)(upgraded)
theme(
    "upgraded_v8",
    "written by Hudi 1.0.2, then upgraded by a newer writer's upsert",
    versions=(9,),
    begun_by=8,
    begin=upgraded_begin,
)(upgraded)


@theme("corrupt_tail", "garbage after the last block of a log, as a crash leaves it", types=(MOR,))
def corrupt_tail(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.metadata.enable": "false"})
    bench.write(rows(9))
    bench.write(updates([0, 1, 2], ts=20, s="u"))
    damage_logs(bench, b"#HUDI#\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x01torn")
    bench.write(updates([0], ts=30, s="after"))


def damage_logs(bench: Workbench, tail: bytes) -> None:
    for log in bench.path.glob("[a-z]/.*.log.*"):
        if not log.name.endswith(".crc"):
            with log.open("ab") as file:
                file.write(tail)
            (log.parent / f".{log.name}.crc").unlink(missing_ok=True)


@theme("bootstrap", "a full-record bootstrap of plain Parquet files, then an upsert", types=(COW, MOR))
def bootstrap(bench: Workbench) -> None:
    source = bench.path.parent / f"{bench.name}_source"
    frame = bench.spark.createDataFrame(rows(9), ROW)
    frame.write.mode("overwrite").partitionBy("p").parquet(str(source))
    plain = bench.spark.createDataFrame([], ROW)
    options = {
        **bench.options,
        "hoodie.table.name": bench.name,
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.table.type": bench.table_type,
        "hoodie.bootstrap.base.path": str(source),
        "hoodie.bootstrap.keygen.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.bootstrap.mode.selector": "org.apache.hudi.client.bootstrap.selector.FullRecordBootstrapModeSelector",
    }
    plain.write.format("hudi").options(**options).mode("overwrite").save(str(bench.path))
    bench.set({"hoodie.datasource.write.hive_style_partitioning": "true"})
    bench.write(updates([0, 1], ts=20, s="u"))


@theme(
    "large_group",
    "one file group of 200,000 rows with updates in several logs; made on demand, never committed",
    types=(MOR,),
)
def large_group(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(200_000, partitions="a"), operation="bulk_insert")
    bench.write(updates(list(range(0, 200_000, 7)), ts=20, s="u", partitions="a"))
    bench.delete(updates(list(range(0, 200_000, 1001)), ts=1, s="x", partitions="a"))
