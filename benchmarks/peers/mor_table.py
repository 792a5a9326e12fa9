"""Make the merge-on-read table of the peer benchmark with Apache Hudi.

4 M rows in 16 file groups, ten columns, a tenth of the rows updated in Avro logs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "interop"))

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE_GROUPS = 16
PARTITIONS = 8


def rows(spark: SparkSession, count: int) -> DataFrame:
    """Ten columns; each Spark partition holds keys of one table partition, so it makes one file group."""
    per_partition = count // PARTITIONS
    return spark.range(0, count, 1, FILE_GROUPS).selectExpr(
        "id",
        f"concat('p', cast(id div {per_partition} as string)) as p",
        "cast(10 as bigint) as ts",
        "concat('name-', cast(id * 7919 % 1000003 as string)) as name",
        "concat('city', cast(id % 500 as string)) as city",
        "cast(id * 1.25 as double) as amount",
        "cast(id % 100000 / 100 as decimal(10,2)) as price",
        "cast(id % 1000 as int) as quantity",
        "timestamp_micros(1700000000000000 + id * 1000003) as event_time",
        "md5(cast(id as string)) as note",
    )


def make(spark: SparkSession, path: str, *, count: int, table_type: str = "MERGE_ON_READ") -> None:
    """Bulk insert all rows, then upsert every tenth."""
    options = {
        "hoodie.table.name": "bench_mor",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.compact.inline": "false",
        "hoodie.metadata.index.column.stats.enable": "false",
    }
    writer = rows(spark, count).write.format("hudi").options(**options)
    writer.option("hoodie.datasource.write.operation", "bulk_insert").mode("overwrite").save(path)
    updates = (
        rows(spark, count)
        .where("id % 10 = 3")
        .selectExpr(
            *(
                "id",
                "p",
                "cast(20 as bigint) as ts",
                "concat('new-', name) as name",
                "city",
                "amount + 1 as amount",
            ),
            *("price", "quantity + 1 as quantity", "event_time", "md5(note) as note"),
        )
    )
    updates.write.format("hudi").options(**options).option(
        "hoodie.datasource.write.operation", "upsert"
    ).mode("append").save(path)


def main() -> int:
    """Write the table where the command line says."""
    from hudi_session import hudi_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=int, default=4_000_000)
    arguments = parser.parse_args()
    spark = hudi_session("bench-table", workspace=arguments.path.parent, memory="4g")
    make(spark, str(arguments.path), count=arguments.rows)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
