"""The work that every engine does in the benchmark of writes, said in the engine's own way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers import mor_table
from benchmarks.peers.engines import COLUMNS, Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COPY_ON_WRITE, MERGE_ON_READ, BUCKETS = "copy-on-write", "merge-on-read", "buckets"
KINDS = {
    COPY_ON_WRITE: ("parquet", "hudi", "drawstring", "iceberg", "delta"),
    MERGE_ON_READ: ("hudi", "drawstring", "iceberg", "delta"),
    BUCKETS: ("hudi", "drawstring", "paimon"),
}
"""Kinds of tables, and who can write them; buckets are merge-on-read tables whose keys say their file group."""
BULK, UPSERT, FEW, DELETE, COMPACTION = "bulk write", "upsert", "upsert 100 rows", "delete 1 %", "compaction"
STEPS = (BULK, UPSERT, FEW, DELETE, COMPACTION)
Steps = Iterator[tuple[str, Callable[[], Any]]]

_SQL = {
    "iceberg": "using iceberg partitioned by (p) tblproperties ('format-version'='2', {modes})",
    "delta": "using delta partitioned by (p) location '{place}' "
    "tblproperties ('delta.enableDeletionVectors'='{vectors}')",
    "paimon": "partitioned by (p) tblproperties ('primary-key'='id,p', 'bucket'='2')",
}
_MERGE = "merge into {table} t using {rows} u on t.id = u.id and t.p = u.p when matched then update set *"
_INSERT = "insert into {table} select * from {rows}"
_COMPACT = {
    "iceberg": "call bench.system.rewrite_data_files(table => 'db.t', options => map('delete-file-threshold', '1'))",
    "delta": "reorg table {table} apply (purge)",
    "paimon": "call bench.sys.compact(table => 'db.t')",
}
_EVERY = {COPY_ON_WRITE: 20, MERGE_ON_READ: 10, BUCKETS: 10}
"""One row of so many is upserted."""
_CHANGED = "select id, p, cast({ts} as bigint) as ts, concat('new-', name) as name, city, amount + 1 as amount, price, "
_CHANGED += "quantity + 1 as quantity, event_time, md5(note) as note from source where {chosen}"
_HUDI = {
    "hoodie.table.name": "bench_writes",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bulkinsert.sort.mode": "NONE",
}
_BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}


def steps(engine: Engine, spark: SparkSession, place: Path, count: int, kind: str) -> Steps:
    """Name and work of each step, in order."""
    source = mor_table.rows(spark, count)
    source.createOrReplaceTempView("source")
    some = spark.sql(_CHANGED.format(ts=20, chosen=f"id % {_EVERY[kind]} = 3"))
    hundred = spark.sql(_CHANGED.format(ts=30, chosen=f"id % {count // 100} = 7"))
    if engine.name == "parquet":
        yield BULK, lambda: source.write.partitionBy("p").parquet(str(place / "t"))
    elif engine.name in _SQL:
        some.createOrReplaceTempView("some")
        hundred.createOrReplaceTempView("hundred")
        yield from _by_sql(engine, spark, place, kind)
    else:
        write = _hudi_writer(place, kind)
        yield BULK, lambda: write(source, "bulk_insert", "overwrite")
        yield UPSERT, lambda: write(some, "upsert")
        yield FEW, lambda: write(hundred, "upsert")
        yield DELETE, lambda: write(source.where("id % 100 = 5"), "delete")
        if kind != COPY_ON_WRITE:
            yield COMPACTION, lambda: _compact(engine, spark, str(place / "t"))


def _hudi_writer(place: Path, kind: str) -> Callable[..., None]:
    table_type = "COPY_ON_WRITE" if kind == COPY_ON_WRITE else "MERGE_ON_READ"

    def write(rows: DataFrame, operation: str, mode: str = "append") -> None:
        fixed = {
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.operation": operation,
            # Compaction is a step of its own.
            "hoodie.compact.inline": "false",
        }
        options = {**_HUDI, **(_BUCKETS if kind == BUCKETS else {}), **fixed}
        rows.write.format("hudi").options(**options).mode(mode).save(str(place / "t"))

    return write


def _compact(engine: Engine, spark: SparkSession, path: str) -> None:
    if engine.name == "drawstring":
        import drawstring

        assert drawstring.open_table(path).compact().compactions
        return
    # Its trigger waits for five deltacommits otherwise, of which there are three.
    due = "hoodie.compact.inline.max.delta.commits=1"
    spark.sql(f"call run_compaction(op => 'schedule', path => '{path}', options => '{due}')").collect()
    assert spark.sql(f"call run_compaction(op => 'run', path => '{path}')").collect()


def _by_sql(engine: Engine, spark: SparkSession, place: Path, kind: str) -> Steps:
    table = engine.table
    if table.startswith("bench."):
        spark.sql("create namespace if not exists bench.db")
    merged = kind != COPY_ON_WRITE
    modes = ", ".join(
        f"'write.{what}.mode'='{MERGE_ON_READ if merged else COPY_ON_WRITE}'"
        for what in ("merge", "update", "delete")
    )
    made = _SQL[engine.name].format(place=place / "t", modes=modes, vectors=str(merged).lower())
    spark.sql(f"create table {table} ({COLUMNS}) {made}")
    # A table of Paimon's with a primary key takes an insert as an upsert, as its users write it.
    upsert = _INSERT if engine.name == "paimon" else _MERGE
    yield BULK, lambda: spark.sql(_INSERT.format(table=table, rows="source"))
    yield UPSERT, lambda: spark.sql(upsert.format(table=table, rows="some"))
    yield FEW, lambda: spark.sql(upsert.format(table=table, rows="hundred"))
    yield DELETE, lambda: spark.sql(f"delete from {table} where id % 100 = 5")
    if merged:
        yield COMPACTION, lambda: spark.sql(_COMPACT[engine.name].format(table=table)).collect()
