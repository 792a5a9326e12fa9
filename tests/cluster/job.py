"""A user's program on a cluster: writes a table, upserts, reads it and a merge-on-read table; prints JSON.

python job.py MASTER_URL FOLDER MERGE_ON_READ_TABLE
"""

from __future__ import annotations

import json
import sys

import drawstring

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}


def main(master: str, folder: str, merge_on_read: str) -> None:
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
    }
    spark = drawstring.session("drawstring-cluster", master=master, conf=conf)
    path = f"{folder}/trips"
    rows = spark.range(1000).selectExpr("id", "concat('rider ', id) AS rider", "id % 4 AS p", "1L AS ts")
    rows.write.format("hudi").options(**OPTIONS).mode("overwrite").save(path)
    changes = spark.range(900, 1100).selectExpr("id", "'changed' AS rider", "id % 4 AS p", "2L AS ts")
    changes.write.format("hudi").options(**OPTIONS).mode("append").save(path)
    answer = {"executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1}
    for name, use_v2 in (("v2", "true"), ("v1", "false")):
        reader = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", use_v2)
        frame = reader.load(path)
        answer[name] = {
            "rows": frame.count(),
            "changed": frame.where("rider = 'changed'").count(),
            "merged": sorted(row["_hoodie_record_key"] for row in reader.load(merge_on_read).collect()),
        }
    spark.stop()
    print("ANSWER " + json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
