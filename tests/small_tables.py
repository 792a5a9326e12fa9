"""Tables of given rows, file by file, without a writer in between: the Parquet files are what the test makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import tables as bench
from drawstring.schema.meta_columns import META_COLUMNS


@dataclass(frozen=True)
class Group:
    """One file group: the rows of its base file, and those that a log updates or adds, if any.

    Rows have the columns `id` (unique in the table) and `ts`, and `p`, the partition. `bucket` is what the file id
    names, by default the position among the groups.
    """

    partition: str
    rows: pa.Table
    updates: pa.Table | None = None
    bucket: int | None = None


def make(
    path: Path, groups: Sequence[Group], *, write: Callable[[pa.Table, Any], Any] = pq.write_table
) -> str:
    """Write a table of version 9; merge-on-read when any group has updates. `write` makes a Parquet file."""
    merge_on_read = any(group.updates is not None for group in groups)
    writer = bench._Writer(path, path.name, merge_on_read=merge_on_read)
    writer.properties()
    schema = bench.avro_schema(groups[0].rows.schema)
    names = [_base_file(writer, number, group, write) for number, group in enumerate(groups)]
    writer.commit(bench.FIRST, schema)
    if merge_on_read:
        for file_id, group in zip(names, groups, strict=True):
            if group.updates is not None:
                _log_file(writer, file_id, group)
        writer.commit(bench.SECOND, schema)
    return str(path)


def _base_file(
    writer: bench._Writer, number: int, group: Group, write: Callable[[pa.Table, Any], Any]
) -> str:
    partition = f"p={group.partition}"
    first = f"{number:08x}" if group.bucket is None else f"{group.bucket:08d}"
    file_id = f"{first}-{number:04x}-4000-8000-{abs(hash(str(writer.path))) % 16**12:012x}-0"
    name = f"{file_id}_0-1-{number}_{bench.FIRST}.parquet"
    target = writer.partition(partition) / name
    write(with_meta(group.rows, partition, name), str(target))
    writer.note(partition, file_id, name, group.rows.num_rows, target.stat().st_size)
    return file_id


def _log_file(writer: bench._Writer, file_id: str, group: Group) -> None:
    partition = f"p={group.partition}"
    assert group.updates is not None
    block = bench._data_block(with_meta(group.updates, partition, file_id))
    name = f".{file_id}_{bench.SECOND}.log.1_0-2-0"
    (writer.path / partition / name).write_bytes(block)
    writer.note(partition, file_id, name, group.updates.num_rows, len(block))


def with_meta(rows: pa.Table, partition: str, file_name: str) -> pa.Table:
    """The rows with Hudi's columns in front."""
    count = rows.num_rows
    keys = [str(key) for key in rows["id"].to_pylist()]
    values = (
        [bench.FIRST] * count,
        [f"{bench.FIRST}_0_{number}" for number in range(count)],
        keys,
        [partition] * count,
        [file_name] * count,
    )
    meta = {name: pa.array(column, pa.string()) for name, column in zip(META_COLUMNS, values, strict=True)}
    return pa.table({**meta, **{name: rows[name] for name in rows.column_names}})
