"""Descriptions of Spark jobs that say which step of a write runs them: what the Spark UI shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from drawstring.write.steps import track

_DESCRIPTION = "spark.job.description"


class JobDescriptions:
    """Names the jobs of a step after it; what the user had set comes back when the step is over."""

    def __init__(self, spark: SparkSession, title: str) -> None:
        self._context, self._title = spark.sparkContext, title
        self._before: list[str | None] = []

    def begin(self, name: str, total: int | None) -> None:
        """Describe the jobs that come."""
        self._before.append(self._context.getLocalProperty(_DESCRIPTION))
        self._context.setJobDescription(f"{self._title}: {name}")

    def advance(self, count: int) -> None:
        """Spark shows tasks itself."""

    def end(self) -> None:
        """Describe jobs as before."""
        # None takes the description away.
        self._context.setLocalProperty(_DESCRIPTION, self._before.pop())


@contextmanager
def described(spark: SparkSession, title: str) -> Iterator[None]:
    """Let Spark's jobs say which step runs them."""
    with track(JobDescriptions(spark, title)):
        yield
