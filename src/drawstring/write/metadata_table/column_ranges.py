"""Ranges of columns in files, as the metadata table keeps them: they may be wider than the truth, never narrower.

Readers of Hudi skip a file by these bounds, and take a missing bound for a column of nothing but nulls. So a range
always has bounds where the file has values: where a Parquet footer has none, the column is read. NaN is greater than
every number to Java and to Spark, but Hudi 1.2 skips files by an upper bound of NaN whatever is asked; so infinity is
the upper bound wherever a float column may hold NaN. Only comparisons with NaN or infinity themselves see through it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Context
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.avro import decode_blocks
from drawstring.formats.log_blocks import BlockType, scan_log_file
from drawstring.storage.base import Storage

MAX_LENGTH = 512
"""Longer texts and binaries are cut to a bound of that length."""
LAST_TEXT = "\U0010ffff" * 4
"""Sorts behind every text that anybody stores."""
_ARROW = "parquet-cpp"
_DECIMAL_CONTEXT = Context(prec=100)


@dataclass(frozen=True)
class ColumnRange:
    """The range of one column in one file or partition; bounds as they are stored, both None without values.

    Dates are days, times microseconds or milliseconds, decimals their unscaled integers. `is_whole` is a partition's
    range that tells all that older records tell, so that Hudi need not merge it with them.
    """

    column: str
    type: pa.DataType
    lower: Any
    upper: Any
    value_count: int
    null_count: int
    total_size: int = 0
    total_uncompressed: int = 0
    is_whole: bool = False

    def widened(self, newer: ColumnRange) -> ColumnRange:
        """Return the newer range so that it covers this one too, most of which it counts already.

        Counts that were added up would grow without end; those that are kept tell whether there are nulls, and whether
        there is anything else.
        """
        both = self.merged(newer)
        nulls = max(self.null_count, newer.null_count)
        least = nulls if both.lower is None else nulls + 1
        return replace(
            both,
            value_count=max(self.value_count, newer.value_count, least),
            null_count=nulls,
            total_size=newer.total_size,
            total_uncompressed=newer.total_uncompressed,
        )

    def extended(self, newer: ColumnRange) -> ColumnRange:
        """Return the newer range with bounds that cover this one too, which is counted elsewhere."""
        both, nulls = self.merged(newer), newer.null_count
        least = nulls if both.lower is None else nulls + 1
        return replace(
            both,
            value_count=max(newer.value_count, least),
            null_count=nulls,
            total_size=newer.total_size,
            total_uncompressed=newer.total_uncompressed,
        )

    def merged(self, other: ColumnRange) -> ColumnRange:
        """Return a range that covers both, of the type to which a promoted column of either would have gone.

        Files come in any order, so neither of the two need be the newer one.
        """
        one, two = self, other
        if one.type != two.type:
            arrow = max(one.type, two.type, key=_promotion_rank)
            one, two = one.promoted(arrow), two.promoted(arrow)
        return ColumnRange(
            two.column,
            two.type,
            _least(one.lower, two.lower),
            _greatest(one.upper, two.upper),
            one.value_count + two.value_count,
            one.null_count + two.null_count,
            one.total_size + two.total_size,
            one.total_uncompressed + two.total_uncompressed,
            two.is_whole,
        )

    def promoted(self, arrow: pa.DataType) -> ColumnRange:
        """Return the range of the same values after a promotion of their column to another type."""
        if self.type == arrow:
            return self
        if self.lower is None:
            return replace(self, type=arrow)
        return replace(self, type=arrow, **_promoted_bounds(self, arrow))


def _promotion_rank(arrow: pa.DataType) -> tuple[int, int]:
    """Return a number that is greater for the type to which a column is promoted than for the one it had."""
    types = pa.types
    if types.is_null(arrow):
        # A range of no values says nothing of the column's type.
        return -1, 0
    if types.is_integer(arrow):
        return 0, int(arrow.bit_width)
    if types.is_floating(arrow):
        return 1, int(arrow.bit_width)
    if types.is_decimal(arrow):
        return 2, int(arrow.precision)
    if types.is_string(arrow) or types.is_large_string(arrow):
        return 4, 0
    return (5, 0) if types.is_binary(arrow) else (3, 0)


def _promoted_bounds(found: ColumnRange, arrow: pa.DataType) -> dict[str, Any]:
    types = pa.types
    if types.is_decimal(arrow) and (types.is_decimal(found.type) or types.is_integer(found.type)):
        factor = 10 ** (arrow.scale - (found.type.scale if types.is_decimal(found.type) else 0))
        return {"lower": math.floor(found.lower * factor), "upper": math.ceil(found.upper * factor)}
    is_text = isinstance(found.lower, str)
    if types.is_string(arrow) and not is_text:
        # Numbers and their texts do not sort alike.
        return {"lower": "", "upper": LAST_TEXT}
    if types.is_binary(arrow) and is_text:
        return {"lower": found.lower.encode(), "upper": found.upper.encode()}
    if is_text and not types.is_string(arrow):
        # Texts that became dates or decimals do not sort like them: everything that the type can hold.
        greatest = 10**arrow.precision - 1 if types.is_decimal(arrow) else 2**31 - 1
        return {"lower": -greatest, "upper": greatest}
    if types.is_floating(arrow):
        return {"lower": float(found.lower), "upper": float(found.upper)}
    return {"lower": found.lower, "upper": found.upper}


def can_have_range(arrow: pa.DataType) -> bool:
    """Whether Hudi keeps statistics of columns of this type."""
    types = pa.types
    return not types.is_nested(arrow) and not types.is_null(arrow) and not types.is_time(arrow)


def ranges_of_batches(
    batches: Iterable[pa.RecordBatch], columns: Mapping[str, pa.DataType]
) -> list[ColumnRange]:
    """Return the ranges of rows; for log files, which carry no statistics of their own.

    Args:
        batches: the rows, with meta columns.
        columns: which columns, dotted for fields of structs, with their types. Columns that the rows lack count
            as null.
    """
    found = {name: _empty(name, arrow) for name, arrow in columns.items()}
    for batch in batches:
        for name, arrow in columns.items():
            values = _column(batch, name)
            # A log file may be older than the promotion of a column.
            found[name] = found[name].merged(_range_of(name, values.type, values).promoted(arrow))
    return list(found.values())


def ranges_of_base_file(
    storage: Storage, path: str, columns: Mapping[str, pa.DataType], *, floats_are_exact: bool = False
) -> list[ColumnRange]:
    """Return the ranges of a Parquet file from its footer, reading a column only where the footer has no bounds.

    Args:
        storage: where the table is.
        path: the file.
        columns: which columns, dotted for fields of structs, with their types in the table.
        floats_are_exact: the file has no bounds where there is NaN. Files that Arrow wrote may have some.
    """
    with storage.open(path) as source:
        file = pq.ParquetFile(source)
        metadata = file.metadata
        exact = floats_are_exact or not str(metadata.created_by or "").startswith(_ARROW)
        leaves = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
        types = dict(_leaf_types(file.schema_arrow, ""))
        found = []
        for name, arrow in columns.items():
            if name not in leaves or name not in types:
                found.append(
                    replace(_empty(name, arrow), value_count=metadata.num_rows, null_count=metadata.num_rows)
                )
                continue
            chunks = [
                metadata.row_group(group).column(leaves[name]) for group in range(metadata.num_row_groups)
            ]
            known = _range_of_chunks(name, types[name], chunks, exact)
            found.append(known or _range_by_reading(file, name, types[name], chunks))
        return found


def ranges_of_log_file(storage: Storage, path: str, columns: Mapping[str, pa.DataType]) -> list[ColumnRange]:
    """Return the ranges of a log file by reading it: for files whose writer did not tell them."""
    return ranges_of_batches(_log_batches(storage, path), columns)


def _log_batches(storage: Storage, path: str) -> Iterator[pa.RecordBatch]:
    for block in scan_log_file(storage, path).blocks:
        if block.type is BlockType.AVRO_DATA:
            yield from decode_blocks(block.schema_json or "", [block.content()])
        elif block.type is BlockType.PARQUET_DATA:
            yield from pq.ParquetFile(pa.BufferReader(block.content())).iter_batches()


def _leaf_types(fields: Iterable[pa.Field], prefix: str) -> Iterable[tuple[str, pa.DataType]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaf_types(field.type, f"{prefix}{field.name}.")
        elif not pa.types.is_nested(field.type):
            yield f"{prefix}{field.name}", field.type


def _empty(name: str, arrow: pa.DataType) -> ColumnRange:
    return ColumnRange(name, arrow, None, None, 0, 0)


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    first, *rest = name.split(".")
    if batch.schema.get_field_index(first) < 0:
        return pa.nulls(batch.num_rows)
    return pc.struct_field(batch.column(first), rest) if rest else batch.column(first)


def _range_of(name: str, arrow: pa.DataType, values: pa.Array | pa.ChunkedArray) -> ColumnRange:
    if pa.types.is_dictionary(values.type):
        values, arrow = values.cast(values.type.value_type), values.type.value_type
    counted = ColumnRange(name, arrow, None, None, len(values), values.null_count)
    if values.null_count == len(values):
        return counted
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        numbers = values.filter(pc.invert(pc.is_nan(values)))
        lower = pc.min(numbers).as_py()
        return replace(counted, **_bounds(math.inf if lower is None else lower, math.inf))
    bounds = pc.min_max(values)
    return replace(counted, **_bounds(_stored(bounds["min"]), _stored(bounds["max"])))


def _stored(scalar: pa.Scalar) -> Any:
    """Return a value as it is stored: numbers for times, unscaled integers for decimals."""
    types, arrow = pa.types, scalar.type
    if types.is_timestamp(arrow):
        return scalar.cast(pa.timestamp("us", arrow.tz)).value
    if types.is_date(arrow):
        return scalar.cast(pa.date32()).value
    if types.is_decimal(arrow):
        return int(scalar.as_py().scaleb(arrow.scale, _DECIMAL_CONTEXT))
    return scalar.as_py()


def _range_of_chunks(name: str, arrow: pa.DataType, chunks: list[Any], exact: bool) -> ColumnRange | None:
    """Return the range by the footer, None when a chunk has values and no bounds."""
    found = _empty(name, arrow)
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None or not statistics.has_null_count:
            return None
        lower = upper = None
        if statistics.null_count < chunk.num_values:
            if not statistics.has_min_max:
                return None
            lower, upper = _raw(statistics.min_raw, arrow), _raw(statistics.max_raw, arrow)
            if lower is None or upper is None:
                return None
            if pa.types.is_floating(arrow) and not exact:
                upper = math.inf
        found = found.merged(
            ColumnRange(
                name,
                arrow,
                value_count=chunk.num_values,
                null_count=statistics.null_count,
                total_size=chunk.total_compressed_size,
                total_uncompressed=chunk.total_uncompressed_size,
                **_bounds(lower, upper),
            )
        )
    return found


def _raw(value: Any, arrow: pa.DataType) -> Any:
    """Return a footer's bound as it is stored; None for a physical form that is not known."""
    types = pa.types
    if types.is_timestamp(arrow):
        factor = {"ms": 1000, "us": 1}.get(arrow.unit)
        return value * factor if factor and isinstance(value, int) else None
    if types.is_decimal(arrow):
        return int.from_bytes(value, "big", signed=True) if isinstance(value, bytes) else value
    if types.is_string(arrow) or types.is_large_string(arrow):
        return value.decode() if isinstance(value, bytes) else value
    return value


def _range_by_reading(file: pq.ParquetFile, name: str, arrow: pa.DataType, chunks: list[Any]) -> ColumnRange:
    found = _empty(name, arrow)
    for batch in file.iter_batches(columns=[name]):
        found = found.merged(_range_of(name, arrow, _column(batch, name)))
    return replace(
        found,
        total_size=sum(chunk.total_compressed_size for chunk in chunks),
        total_uncompressed=sum(chunk.total_uncompressed_size for chunk in chunks),
    )


def _bounds(lower: Any, upper: Any) -> dict[str, Any]:
    """Return bounds that cover the values in every order: zeros of both signs, long texts cut."""
    if isinstance(lower, float) and lower == 0:
        lower = -0.0
    if isinstance(upper, float) and upper == 0:
        upper = 0.0
    if isinstance(lower, (str, bytes)) and len(lower) > MAX_LENGTH:
        lower = lower[:MAX_LENGTH]
    if isinstance(upper, str) and len(upper) > MAX_LENGTH:
        upper = _text_after(upper[:MAX_LENGTH]) or upper
    if isinstance(upper, bytes) and len(upper) > MAX_LENGTH:
        upper = _bytes_after(upper[:MAX_LENGTH]) or upper
    return {"lower": lower, "upper": upper}


def _text_after(prefix: str) -> str:
    """Return the least text behind all that begin with the prefix; empty when there is none."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return ""
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= following <= 0xDFFF else following)


def _bytes_after(prefix: bytes) -> bytes:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b""


def _least(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, float) or isinstance(other, float):
        return (
            one if math.isnan(other) or one < other or (one == other and math.copysign(1, one) < 0) else other
        )
    return min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, float) or isinstance(other, float):
        return (
            one if math.isnan(one) or one > other or (one == other and math.copysign(1, one) > 0) else other
        )
    return max(one, other)
