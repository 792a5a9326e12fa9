"""Themes about writers and table services that meet: failures mended, plans run late, versions changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from making.catalogue import COW, MOR, theme
from making.merging import PAYLOADS, by_event_time, payload_table
from making.workbench import ROW, Workbench, rows, updates

_LOCK = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}


@theme("died_then_written", "a writer died; the next one rolled its files back and wrote")
def died_then_written(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(10))
    bench.write(updates([0, 1], ts=20, s="kept"))
    bench.write([*updates([2, 3], ts=30, s="dead"), *rows(2, start=20)])
    bench.die()
    bench.write([*updates([2, 4], ts=25, s="after"), *rows(1, start=21)])


@theme("died_lazily", "a writer died; the next ones leave its files until the cleaner finds them")
def died_lazily(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            **_LOCK,
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        }
    )
    bench.write(rows(10))
    bench.write([*updates([2, 3], ts=30, s="dead"), *rows(2, start=20)])
    bench.die()
    bench.write([*updates([2, 4], ts=25, s="after"), *rows(1, start=21)])
    bench.write(updates([3], ts=26, s="after"))


@theme("late_compaction", "a compaction scheduled, more logs written, then run, then more logs", types=(MOR,))
def late_compaction(bench: Workbench) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write([*updates([0, 1, 2], ts=20, s="new"), *updates([3], ts=5, s="late")])
    bench.register()
    bench.sql("call run_compaction(op => 'schedule', table => '{table}')")
    bench.write([*updates([0, 3], ts=30, s="during"), *updates([1], ts=15, s="late")])
    bench.delete(updates([5], ts=1, s="x"))
    bench.sql("call run_compaction(op => 'run', table => '{table}')")
    bench.write([*updates([0], ts=25, s="late after"), *rows(1, start=20)])


@theme("savepoint_kept", "the cleaner passes a savepoint by: its slices stay, those around it go")
def savepoint_kept(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"})
    if bench.merge_on_read:
        bench.set({"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"})
    bench.write(rows(9))
    bench.write(updates([0, 1, 2], ts=15, s="saved"))
    bench.register()
    saved = bench.instants[-1].requested_time
    bench.sql(f"call create_savepoint(table => '{{table}}', commit_time => '{saved}')")
    for turn in range(5):
        bench.write(updates([turn, (turn + 3) % 9], ts=20 + turn, s=f"w{turn}"))
    last = bench.instants[-1].requested_time
    bench.questions["as_of"] = [{"instant": saved}, {"instant": last}]


@theme("clustered_sorted", "clustering by sort columns, twice, with updates between and an overwrite after")
def clustered_sorted(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    bench.write(rows(12))
    bench.write([*rows(6, start=12), *updates([0, 1], ts=20, s="u")])
    bench.register()
    bench.sql("call run_clustering(table => '{table}', order => 'v')")
    bench.write([*updates([0, 13], ts=30, s="v"), *rows(3, start=20), *updates([1], ts=5, s="late")])
    bench.sql("call run_clustering(table => '{table}', order => 's', order_strategy => 'z-order')")
    bench.write([(40, "a", 1, "overwritten", 10)], operation="insert_overwrite")
    bench.write(updates([40, 1], ts=40, s="after", partitions="ab"))


@theme("late_clustering", "clustering scheduled, other partitions written, then run", types=(COW, MOR))
def late_clustering(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set({"hoodie.parquet.small.file.limit": "0"})
    bench.write(rows(12))
    bench.write(rows(12, start=12))
    bench.register()
    bench.sql("call run_clustering(op => 'schedule', table => '{table}')")
    bench.write([(50, "new", 1, "inserted", 10)], operation="insert")
    bench.sql("call run_clustering(op => 'execute', table => '{table}')")
    bench.write(updates([0, 13], ts=20, s="u"))


@theme("sql_overwrite", "INSERT OVERWRITE static and dynamic, DROP PARTITION and TRUNCATE by SQL")
def sql_overwrite(bench: Workbench) -> None:
    sql_table(bench)
    bench.sql("insert into {table} values (1, 1, 's', 10, 'a'), (2, 2, 's', 10, 'b'), (3, 3, 's', 10, 'c')")
    bench.sql("insert overwrite table {table} partition (p = 'a') select 9, 9L, 'static', 10L")
    bench.sql("alter table {table} drop partition (p = 'b')")
    bench.sql("insert into {table} values (4, 4, 's', 10, 'b'), (9, 10, 's', 20, 'a')")


@theme("sql_truncated", "TRUNCATE TABLE by SQL, then more rows")
def sql_truncated(bench: Workbench) -> None:
    sql_table(bench)
    bench.sql("insert into {table} values (1, 1, 's', 10, 'a'), (2, 2, 's', 10, 'b')")
    bench.sql("truncate table {table}")
    bench.sql("insert into {table} values (3, 3, 's', 10, 'c')")


@theme("sql_ctas", "CREATE TABLE AS SELECT without a primary key, then UPDATE, DELETE, MERGE")
def sql_ctas(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    bench.sql(
        f"create table {{table}} using hudi location '{{path}}' tblproperties (type='{kind}') partitioned by (p) "
        "as select id, id * 2L as v, concat('s', id) as s, if(id % 2 = 0, 'a', 'b') as p from range(8)"
    )
    bench.sql("update {table} set s = 'updated' where id in (1, 2)")
    bench.sql("delete from {table} where id = 3")
    bench.sql("insert into {table} values (1, 1, 'twin', 'b')")


def sql_table(bench: Workbench) -> None:
    kind = "mor" if bench.merge_on_read else "cow"
    order = "orderingFields" if bench.version == 9 else "preCombineField"
    bench.sql(
        "create table {table} (id int, v bigint, s string, ts bigint, p string) using hudi partitioned by (p) "
        f"location '{{path}}' tblproperties (type='{kind}', primaryKey='id', {order}='ts')"
    )


@theme(
    "two_writers",
    "two writers at once without blocking: their logs overlap in one slice, in order of completion",
    versions=(8, 9),
    types=(MOR,),
)
def two_writers(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            **_LOCK,
            "hoodie.index.type": "BUCKET",
            "hoodie.index.bucket.engine": "SIMPLE",
            "hoodie.table.type": bench.table_type,  # or the check for this mode takes the table for copy-on-write
            "hoodie.bucket.index.num.buckets": "1",
            "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
        }
    )
    bench.write(rows(9))
    for turn in range(2):
        with ThreadPoolExecutor(2) as pool:
            for job in [
                pool.submit(bench.write, updates([0, 1, 2, 3], ts=20 + turn, s=f"left{turn}")),
                pool.submit(
                    bench.write, [*updates([2, 3, 4], ts=20 + turn, s=f"right{turn}"), *rows(2, start=20)]
                ),
            ]:
                job.result()
    bench.write(updates([0, 4], ts=30, s="after"))


@theme("concurrent", "two writers at once, each in partitions of its own, guarded by a lock")
def concurrent(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            **_LOCK,
            "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
        }
    )
    bench.write(rows(9))
    with ThreadPoolExecutor(2) as pool:
        left = [row for row in updates(list(range(9)), ts=20, s="left") if row[1] == "a"]
        right = [row for row in updates(list(range(9)), ts=20, s="right") if row[1] == "b"]
        for job in [pool.submit(bench.write, left), pool.submit(bench.write, right)]:
            job.result()
    bench.write(updates([0, 4], ts=30, s="after"))


def downgrade(bench: Workbench, word: str) -> None:
    by_event_time(bench)
    bench.write(rows(12))
    bench.write([*updates([0, 1, 2], ts=20, s="newer writer"), *updates([3], ts=5, s="late")])
    bench.delete(updates([4], ts=1, s="x"))
    bench.register()
    bench.sql(f"call downgrade_table(table => '{{table}}', to_version => '{word}')")


@theme("downgraded_8", "written as version 9, downgraded to 8", versions=(9,))
def downgraded_8(bench: Workbench) -> None:
    downgrade(bench, "EIGHT")


@theme("downgraded_6", "written as a newer version, downgraded to 6", versions=(8, 9))
def downgraded_6(bench: Workbench) -> None:
    downgrade(bench, "SIX")


def written_as(version: str, exercises: str) -> None:
    """A new Hudi may write an older version of the table."""

    @theme(f"written_as_{version}", exercises, versions=(9,))
    def make(bench: Workbench) -> None:
        bench.set({"hoodie.write.table.version": version, "hoodie.write.auto.upgrade": "false"})
        by_event_time(bench)
        bench.write(rows(12))
        bench.write([*updates([0, 1, 2], ts=20, s="new"), *updates([3], ts=5, s="late")])
        bench.delete(updates([4], ts=1, s="x"))
        bench.write([*updates([0], ts=15, s="between"), *rows(1, start=20)])


written_as("6", "version 6 written by the newest Hudi")
written_as("8", "version 8 written by the newest Hudi")


def upgraded_payload(name: str) -> None:
    def begin(bench: Workbench) -> None:
        payload_table(bench, name)

    def finish(bench: Workbench) -> None:
        schema = "id int, p string, v bigint, s string, w double, Op string, ts bigint"
        bench.set({"hoodie.datasource.write.payload.class": PAYLOADS[name]})
        bench.write([(1, "b", 5, None, None, "U", 50), (4, "a", None, "x", None, "U", 50)], schema)
        bench.write([(1, "b", None, None, 4.5, "U", 60), (9, "b", 1, None, 3.5, "U", 5)], schema)

    theme(
        f"upgraded_payload_{name}",
        "payload class of version 6, upgraded, then more partial rows",
        versions=(8, 9),
        types=(MOR,),
        begun_by=6,
        begin=begin,
    )(finish)


for _name in ("partial", "nondefaults", "dms", "latest", "eventtime"):
    upgraded_payload(_name)


@theme("indexes_all", "bloom filters, column and partition statistics and record index together; async clean")
def indexes_all(bench: Workbench) -> None:
    by_event_time(bench)
    bench.set(
        {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.bloom.filter.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": "v,ts",
            "hoodie.metadata.index.partition.stats.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.metadata.compact.max.delta.commits": "2",
        }
    )
    bench.write(rows(15))
    bench.write([*updates([0, 1], ts=20, s="u"), *rows(3, start=20)])
    bench.delete(updates([2], ts=1, s="x"))
    bench.write([(1, "b", 1, "overwritten", 10)], operation="insert_overwrite")
    bench.write(updates([0, 3], ts=30, s="v"), ROW)
