"""Settings for the Arrow batches in which Spark passes rows to Python tasks, so that making them is cheap."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    CharType,
    DataType,
    StringType,
    StructType,
    VarcharType,
)

ROWS_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"
NO_LIMIT = str(2**31 - 1)
_NUMBER_ROWS, _TEXT_ROWS = 1 << 16, 1 << 13


@contextmanager
def quick_batches(spark: SparkSession, schema: StructType) -> Iterator[None]:
    """Choose batches for rows of this schema until the block ends.

    Spark 4 sums up the bytes of the whole batch after every row to keep to a limit, which costs more than all the
    rest of making it. Where rows are known to be small their number is limit enough.
    """
    if any(spark.conf.get(key, None) is not None for key in (ROWS_KEY, BYTES_KEY)):
        yield  # The user has chosen.
        return
    settings = batch_settings(schema)
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            spark.conf.unset(key)


def batch_settings(schema: StructType) -> dict[str, str]:
    """Return settings for rows of this schema; none where one value may be of any size."""
    kinds = [field.dataType for field in schema.fields]
    if not all(map(_is_small, kinds)):
        return {}
    rows = _TEXT_ROWS if any(isinstance(kind, _TEXTS) for kind in kinds) else _NUMBER_ROWS
    return {ROWS_KEY: str(rows), BYTES_KEY: NO_LIMIT}


_TEXTS = (StringType, CharType, VarcharType)


def _is_small(kind: DataType) -> bool:
    return isinstance(kind, AtomicType) and not isinstance(kind, BinaryType)
