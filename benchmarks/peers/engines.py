"""How each peer is started, filled and read: session settings, jars, and the table's place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers import mor_table

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import maven_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COMMON = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}
_UPDATED = """select id, p, cast(20 as bigint) as ts, concat('new-', name) as name, city, amount + 1 as amount,
    price, quantity + 1 as quantity, event_time, md5(note) as note from source where id % 10 = 3"""
_MERGE = (
    "merge into {table} t using ({updated}) u on t.id = u.id and t.p = u.p when matched then update set *"
)


@dataclass(frozen=True)
class Engine:
    """One way of reading the benchmark's rows."""

    name: str
    jars: tuple[str, ...] = ()
    conf: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    create: str = ""

    def session(self, warehouse: Path, *, memory: str) -> SparkSession:
        """Start the engine's session."""
        conf = {**_COMMON, "spark.driver.memory": memory, **self.settings(warehouse)}
        if self.name.startswith("drawstring"):
            import drawstring

            return drawstring.session("peers", master="local[2]", conf=conf)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("peers")
        for key, value in conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def settings(self, warehouse: Path) -> dict[str, str]:
        """The engine's own settings, jars on the driver's class path."""
        paths = [str(maven_jars.jar(each)) for each in self.jars]
        extra = {"spark.driver.extraClassPath": ":".join(paths)} if paths else {}
        return {**extra, **{key: value.format(warehouse=warehouse) for key, value in self.conf.items()}}

    def fill(self, spark: SparkSession, place: Path, *, count: int) -> None:
        """Write the rows and update a tenth of them."""
        if not self.create:
            mor_table.make(spark, str(place), count=count)
            return
        mor_table.rows(spark, count).createOrReplaceTempView("source")
        if self.table.startswith("bench."):
            spark.sql("create namespace if not exists bench.db")
        spark.sql(self.create.format(table=self.table, place=place))
        spark.sql(f"insert into {self.table} select * from source")
        spark.sql(_MERGE.format(table=self.table, updated=_UPDATED))

    @property
    def table(self) -> str:
        """The table's name in SQL."""
        return "bench.db.t" if self.name in ("iceberg", "paimon") else "t"

    def load(self, spark: SparkSession, place: Path) -> DataFrame:
        """The table as a frame."""
        if self.create:
            return (
                spark.read.format("delta").load(str(place))
                if self.name == "delta"
                else spark.table(self.table)
            )
        return spark.read.format("hudi").options(**self.options).load(str(place))


_HUDI_CONF = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
_HUDI = (maven_jars.HUDI_COORDINATES.format(version="1.2.0"),)
_READ_OPTIMISED = {"hoodie.datasource.query.type": "read_optimized"}

COLUMNS = (
    "id bigint, p string, ts bigint, name string, city string, amount double, price decimal(10,2), "
    "quantity int, event_time timestamp, note string"
)

ENGINES = {
    engine.name: engine
    for engine in (
        Engine("drawstring"),
        Engine("drawstring read-optimised", options=_READ_OPTIMISED),
        Engine("hudi", _HUDI, _HUDI_CONF),
        Engine("hudi read-optimised", _HUDI, _HUDI_CONF, _READ_OPTIMISED),
        Engine(
            "iceberg",
            ("org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",),
            {
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.bench": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.bench.type": "hadoop",
                "spark.sql.catalog.bench.warehouse": "{warehouse}/iceberg",
            },
            create=f"create table {{table}} ({COLUMNS}) using iceberg partitioned by (p) "
            "tblproperties ('format-version'='2', 'write.merge.mode'='merge-on-read')",
        ),
        Engine(
            "delta",
            ("io.delta:delta-spark_2.12:3.3.3", "io.delta:delta-storage:3.3.3"),
            {
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.warehouse.dir": "{warehouse}/delta-warehouse",
            },
            create=f"create table {{table}} ({COLUMNS}) using delta partitioned by (p) location '{{place}}'",
        ),
        Engine(
            "paimon",
            ("org.apache.paimon:paimon-spark-3.5:0.9.0",),
            {
                "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
                "spark.sql.catalog.bench": "org.apache.paimon.spark.SparkCatalog",
                "spark.sql.catalog.bench.warehouse": "{warehouse}/paimon",
            },
            create=f"create table {{table}} ({COLUMNS}) partitioned by (p) "
            "tblproperties ('primary-key'='id,p', 'bucket'='2')",
        ),
    )
}

QUESTIONS: dict[str, Callable[[DataFrame], object]] = {
    "full scan": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "two columns": lambda frame: frame.select("id", "amount").write.format("noop").mode("overwrite").save(),
    "count": lambda frame: frame.count(),
    "min max": lambda frame: frame.selectExpr("min(id)", "max(id)", "max(quantity)").collect(),
    "limit 1000": lambda frame: frame.limit(1000).write.format("noop").mode("overwrite").save(),
    "top 100": lambda frame: frame.orderBy(frame.id.desc()).limit(100).collect(),
    "filter": lambda frame: frame.where("id BETWEEN 1000 AND 2000").collect(),
}
