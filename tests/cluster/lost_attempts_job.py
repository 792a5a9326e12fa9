"""Writes whose task attempts are lost or doubled: slow ones that Spark copies, and executors that die.

python lost_attempts_job.py MASTER_URL FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import drawstring

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
ROWS = 2000


def disturbed(rows: Any, trouble: str, mark: str) -> Any:
    """The same rows, through tasks of which the first attempt of one meets with trouble after its last row."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        yield from batches
        if task.partitionId() == 0 and task.attemptNumber() == 0:
            Path(f"{mark}-{task.taskAttemptId()}").touch()
            if trouble == "slow":
                time.sleep(8)
            else:
                daemon = os.getppid()
                os.kill(int(Path(f"/proc/{daemon}/stat").read_text().split()[3]), signal.SIGKILL)
                time.sleep(60)

    return rows.mapInArrow(run, rows.schema)


def main(master: str, folder: str) -> None:
    conf = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "768m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.4",
        "spark.speculation.minTaskRuntime": "1s",
    }
    spark = drawstring.session("lost-attempts", master=master, conf=conf)
    answer: dict[str, Any] = {}
    for trouble in ("slow", "killed"):
        for operation in ("bulk_insert", "upsert"):
            path, mark = f"{folder}/{trouble}-{operation}", f"{folder}/mark-{trouble}-{operation}"
            rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "id % 3 AS p", "1L AS ts")
            options = {**OPTIONS, "hoodie.datasource.write.operation": operation}
            disturbed(rows, trouble, mark).write.format("hudi").options(**options).mode("append").save(path)
            table = drawstring.open_table(path)
            ids = table.snapshot().scan().select("id").to_arrow().column("id").to_pylist()
            answer[f"{trouble} {operation}"] = {
                "rows": len(ids),
                "distinct": len(set(ids)),
                "commits": len(table.timeline.completed_writes),
                "disturbed": len(list(Path(folder).glob(f"mark-{trouble}-{operation}-*"))),
            }
    print("ANSWER " + json.dumps(answer))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
