"""Writes Parquet files whose statistics mislead no reader, and returns their footer when they are finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.parquet_footer import without_bounds

_ROW_GROUP_ROWS = 1 << 20
_BUFFER_BYTES = 1 << 18
"""Bytes that are handed over together: pyarrow writes each page in several pieces."""


class ParquetWriter:
    """Writes tables as row groups into an open file, which it does not close.

    pyarrow's bounds of floats leave NaN out. Spark and Hudi hold NaN to be greater than everything and pass over
    row groups by those bounds, so that rows would be lost: column chunks that hold NaN get no bounds, as in files
    of Spark and Hudi. Options are those of pyarrow's writer.
    """

    def __init__(self, sink: Any, schema: pa.Schema, **options: Any) -> None:
        self._tail = _Tail(sink)
        self._schema = schema
        self._buffered = pa.BufferedOutputStream(pa.PythonFile(self._tail, "w"), _BUFFER_BYTES)
        self._writer = pq.ParquetWriter(self._buffered, schema, **options)
        self._unbounded: dict[int, list[int]] = {}
        self._groups = 0

    def write_table(self, table: pa.Table) -> None:
        """Write rows as one row group, or several when they are very many."""
        self._writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)
        columns = [number for number, flag in enumerate(_leaves_with_nan(table)) if flag]
        after = self._groups + -(-table.num_rows // _ROW_GROUP_ROWS)
        if columns:
            self._unbounded |= dict.fromkeys(range(self._groups, after), columns)
        self._groups = after

    @property
    def size(self) -> int:
        """Bytes written so far, those included that are not handed over yet."""
        return int(self._buffered.tell())

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Write the footer, with `metadata` by key."""
        if metadata:
            self._writer.add_key_value_metadata(dict(metadata))
        self._buffered.flush()
        self._tail.hold()
        self._writer.close()
        self._buffered.flush()
        self._tail.release(
            lambda footer: without_bounds(footer, self._unbounded) if self._unbounded else footer
        )


class _Tail:
    """A file to write to that can hold back what comes last."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._held: list[bytes] | None = None

    def write(self, data: Any) -> int:
        if self._held is None:
            return int(self._sink.write(data))
        self._held.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        return int(self._sink.tell()) + sum(map(len, self._held or ()))

    def flush(self) -> None:
        """Leave it to the file."""

    def close(self) -> None:
        """Leave the file open."""

    def hold(self) -> None:
        self._held = []

    def release(self, change: Any) -> None:
        held, self._held = b"".join(self._held or ()), None
        self._sink.write(change(held))


def _leaves_with_nan(table: pa.Table) -> list[bool]:
    """Tell for each column of the file, nested ones included, whether it holds NaN."""
    return [flag for column in table.columns for flag in _nan_flags(column.chunks, column.type)]


def _nan_flags(arrays: list[pa.Array], arrow: pa.DataType) -> list[bool]:
    if pa.types.is_floating(arrow):
        return [any(pc.any(pc.is_nan(array)).as_py() for array in arrays)]
    if pa.types.is_struct(arrow):
        return [
            flag
            for number in range(arrow.num_fields)
            for flag in _nan_flags([array.field(number) for array in arrays], arrow.field(number).type)
        ]
    if pa.types.is_map(arrow):
        keys = _nan_flags([array.keys for array in arrays], arrow.key_type)
        return keys + _nan_flags([array.items for array in arrays], arrow.item_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return _nan_flags([array.values for array in arrays], arrow.value_type)
    return [False]
