"""Which Python runs the tasks of a write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def worker_interpreter(spark: SparkSession) -> Iterator[None]:
    """Let tasks run with the configured interpreter, or locally with this one: the default is any python3."""
    context = spark.sparkContext
    before = context.pythonExec
    configured = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    local = sys.executable if context.master.startswith("local") else before
    context.pythonExec = configured or local
    try:
        yield
    finally:
        context.pythonExec = before
