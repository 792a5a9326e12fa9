"""Writing a DataFrame to a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from drawstring.config.write_options import WriteOptions
from drawstring.model.sink_batch import SinkBatch
from drawstring.spark.write.descriptions import described
from drawstring.spark.write.jobs import as_drawstring_error
from drawstring.spark.write.rows import SparkRows
from drawstring.storage import open_storage
from drawstring.write.pipeline import ERROR_IF_EXISTS, CommitResult, write_rows


def write_dataframe(
    df: DataFrame,
    *,
    path: str,
    mode: str = ERROR_IF_EXISTS,
    options: Mapping[str, Any] | None = None,
    replaced_partitions: tuple[str, ...] = (),
    sink_batch: SinkBatch | None = None,
) -> CommitResult:
    """Write rows to the table at `path`, creating it when there is none.

    `mode` is one of Spark's save modes, `options` are Hudi's; `replaced_partitions` are paths that an
    insert_overwrite replaces beside those that the option for it lists, and may hold commas. A `sink_batch` that the
    table has already is not written again. Either the whole write becomes visible at once, or an error is raised and
    the table is as it was.
    """
    wanted = WriteOptions.of(options)
    wanted = replace(
        wanted,
        static_partitions=(*wanted.static_partitions, *replaced_partitions),
        sink_batch=sink_batch,
    )
    try:
        with described(df.sparkSession, f"drawstring writes {path}"):
            return write_rows(SparkRows(df), open_storage(path), mode=mode, options=wanted)
    except Exception as error:
        raise as_drawstring_error(error) or error from None
