"""What a Spark task knows of itself, and the statistics of its files on their way to the driver."""

from __future__ import annotations

import json
from dataclasses import asdict

import pyarrow as pa

from drawstring.model.commit_metadata import WriteStat
from drawstring.schema.arrays import text_array
from drawstring.write.base_files import TaskContext


def task_context() -> TaskContext:
    """Return the task that this worker runs."""
    from pyspark import TaskContext as SparkTask

    task = SparkTask.get()
    assert task is not None, "runs in a Spark task only"
    return TaskContext(task.partitionId(), task.stageId(), task.taskAttemptId())


def stat_batch(stats: list[WriteStat]) -> pa.RecordBatch:
    """Return statistics as rows."""
    texts = [stat_text(stat) for stat in stats]
    return pa.RecordBatch.from_arrays([text_array(texts)], names=["stat"])


def stat_text(stat: WriteStat) -> str:
    """Return statistics as text."""
    return json.dumps(asdict(stat))


def stat_of(text: str) -> WriteStat:
    """Read what `stat_text` made."""
    values = json.loads(text)
    tuples = {key: tuple(values[key]) for key in ("log_files", "cdc_files", "cdc_sizes", "slice_logs")}
    return WriteStat(**(values | tuples))
