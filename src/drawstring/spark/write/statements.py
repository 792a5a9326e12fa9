"""Writes that reach the planner: what the statement means in Hudi's terms, then the write pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.sink_options import SinkOptions
from drawstring.config.table_config import TableConfig
from drawstring.config.write_options import OVERWRITE_MODE
from drawstring.errors import InvalidInput
from drawstring.model.key_names import NULL_PARTITION
from drawstring.model.sink_batch import SinkBatch
from drawstring.spark import wire
from drawstring.spark.catalog import live_partitions
from drawstring.spark.write import sink, sql_options
from drawstring.spark.write.sql_options import OPERATION, PARTITION_BY, PARTITION_PATH
from drawstring.spark.write.writer import write_dataframe
from drawstring.table import open_table
from drawstring.write.pipeline import CommitResult


@dataclass(frozen=True)
class WriteData:
    """One write. `origin` is `dataframe`, `insert` or `ctas`; `overwrite` says which rows give way.

    The kinds of `overwrite` are `table`, `dynamic`, `partitions` (with `partition`: column to value) and
    `everything` (TRUNCATE). `stream` is a `SinkMessage` where the write is a batch of a streaming query.
    """

    path: str
    origin: str
    mode: str
    table: str
    database: str
    options: dict[str, str]
    properties: dict[str, str]
    session: dict[str, str]
    partition_columns: list[str]
    overwrite: dict[str, Any] = field(default_factory=dict)
    stream: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataWritten:
    """What a write left behind."""

    instant: str | None = None


@dataclass(frozen=True)
class Write:
    """A write as the pipeline takes it."""

    mode: str
    options: Mapping[str, str]
    replaced_partitions: tuple[str, ...] = ()


def write(data: Any, spark: Any, payload: str) -> str:
    """Write a JVM Dataset as the message says; `spark` lends its context."""
    from pyspark.sql import DataFrame, SparkSession

    message = wire.from_json(WriteData, payload)
    session = SparkSession(spark.sparkContext, data.sparkSession())
    return wire.to_json(write_data(message, DataFrame(data, session)))


def write_data(message: WriteData, frame: Any) -> DataWritten:
    """Run one write."""
    if message.stream:
        return _write_stream(message, frame)
    planned = plan_write(message)
    result = write_dataframe(
        _stored(message, frame),
        path=message.path,
        mode=planned.mode,
        options=dict(planned.options),
        replaced_partitions=planned.replaced_partitions,
    )
    return DataWritten(result.instant)


def _write_stream(message: WriteData, frame: Any) -> DataWritten:
    """Run one batch of a streaming query."""
    told = sink.SinkMessage(**message.stream)
    options = sink.batch_options(told, _dataframe_options(message.options))

    def write(batch: SinkBatch) -> CommitResult:
        rows = _stored(message, frame)
        return write_dataframe(rows, path=message.path, mode="append", options=options, sink_batch=batch)

    result = sink.write_batch(told, SinkOptions.of(message.options), write)
    return DataWritten(None if result is None else result.instant)


def plan_write(message: WriteData) -> Write:
    """Translate a write into the pipeline's terms."""
    if message.origin == "insert":
        return _insert(message)
    if message.origin == "ctas":
        return _create_as_select(message)
    return Write(message.mode, _dataframe_options(message.options))


def _dataframe_options(options: Mapping[str, str]) -> dict[str, str]:
    """`partitionBy` names the partition columns where no option does."""
    found = {key: value for key, value in options.items() if key != PARTITION_BY}
    if options.get(PARTITION_BY) and not found.get(PARTITION_PATH):
        found[PARTITION_PATH] = ",".join(json.loads(options[PARTITION_BY]))
    return found


def _create_as_select(message: WriteData) -> Write:
    properties = sql_options.table_options(
        {**message.properties, **message.options},
        table=message.table,
        database=message.database,
        partition_columns=message.partition_columns,
    )
    options = {**message.session, **properties}
    options.setdefault(OPERATION, "bulk_insert")
    return Write(message.mode, options)


def _insert(message: WriteData) -> Write:
    layers = (message.options, message.session, sql_options.hoodie_options(message.properties))
    settings = {key: value for layer in reversed(layers) for key, value in layer.items()}
    settings.pop(OVERWRITE_MODE.key, None)  # decided here, with the PARTITION clause in sight
    kind = message.overwrite.get("kind")
    config = open_table(message.path).config
    if kind is None:
        return Write("append", {**settings, OPERATION: sql_options.insert_operation(*layers)})
    if kind == "partitions":
        settings.pop(sql_options.REPLACED_PARTITIONS, None)
        paths = _replaced_partitions(message, config)
        return Write("append", {**settings, OPERATION: "insert_overwrite"}, paths)
    partitioned = bool(config.partition_fields)
    whole = kind == "everything" or sql_options.overwrites_table(kind, *layers, partitioned=partitioned)
    return Write("append", {**settings, OPERATION: "insert_overwrite_table" if whole else "insert_overwrite"})


def _replaced_partitions(message: WriteData, config: TableConfig) -> tuple[str, ...]:
    """Return the paths of the partitions that give way even if no new row falls into them."""
    wanted = {key.lower(): value for key, value in message.overwrite["partition"].items()}
    known = {name.lower() for name in config.partition_fields}
    if set(wanted) - known:
        raise InvalidInput(
            f"Cannot overwrite by {', '.join(sorted(set(wanted) - known))}: the table at {message.path} is partitioned "
            f"by {', '.join(config.partition_fields) or 'nothing'}. Name partition columns only.",
            condition="NOT_A_PARTITION_COLUMN",
            columns=sorted(set(wanted) - known),
            partition_columns=list(config.partition_fields),
        )
    snapshot = open_table(message.path).snapshot()
    return tuple(path for path, texts in live_partitions(config, snapshot) if _matches(texts, wanted))


def _matches(texts: Mapping[str, str], wanted: Mapping[str, str | None]) -> bool:
    lowered = {key.lower(): text for key, text in texts.items()}
    return all(
        lowered.get(key) == (NULL_PARTITION if value is None else value) for key, value in wanted.items()
    )


def _stored(message: WriteData, frame: Any) -> Any:
    columns = _columns(message, frame.columns)
    return frame if columns == frame.columns else frame.select(*(f"`{column}`" for column in columns))


def _columns(message: WriteData, columns: list[str]) -> list[str]:
    """The columns to store: without meta columns, and for tables that SQL makes with partition columns last."""
    own = sql_options.without_meta(columns)
    last = [name.lower() for name in message.partition_columns] if message.origin == "ctas" else []
    return sorted(own, key=lambda name: last.index(name.lower()) + 1 if name.lower() in last else 0)
