"""Writes the content of DELETE log blocks; `delete_blocks` reads them and says how they look.

All deletes of one kind are rows with plain fields, the branches of their unions spelt out as numbers, so that the
encoder of records makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import IncompatibleSchema
from drawstring.formats.avro_encoder import AvroEncoder, joined_octets
from drawstring.formats.avro_native import varint
from drawstring.formats.delete_blocks import (
    ARRAY_BRANCH,
    DELETE_BLOCK_VERSION,
    INT_BRANCH,
    KEY_FIELD,
    PATH_FIELD,
    PREFIX,
    WRAPPED,
    plain_fields,
)

_BRANCH_OF = {name: number for number, (name, _, _) in enumerate(WRAPPED)}


def encode_delete_block(
    keys: pa.Array, partition_paths: pa.Array | str, orderings: Sequence[pa.Array] = ()
) -> bytes:
    """Encode the content of a DELETE block, as Hudi 1.2 does.

    Args:
        keys: record keys.
        partition_paths: one per key, or one for all.
        orderings: an array of values per ordering field. A delete without them, or with a null among them, wins
            over everything before it: Hudi writes the int 0 for that.
    """
    if isinstance(partition_paths, str):
        partition_paths = _constant(partition_paths, len(keys), pa.string())
    rows = _rows(keys, partition_paths, (INT_BRANCH,), [_constant(0, len(keys), pa.int32())])
    if orderings:
        rows = _with_orderings(rows, keys, partition_paths, orderings)
    items = b"".join(joined_octets(chunk) for chunk in rows)
    payload = (varint(len(keys)) + items if len(keys) else b"") + varint(0)
    return PREFIX.pack(DELETE_BLOCK_VERSION, len(payload)) + payload


def _with_orderings(
    unordered: list[pa.Array], keys: pa.Array, paths: pa.Array, orderings: Sequence[pa.Array]
) -> list[pa.Array]:
    branches = tuple(ordering_branch(values.type) for values in orderings)
    shape = branches if len(branches) == 1 else (ARRAY_BRANCH, *branches)
    null = np.zeros(len(keys), np.bool_)
    for values in orderings:
        null |= values.is_null().to_numpy(zero_copy_only=False)
    if null.all():
        return unordered
    ordered = _rows(keys, paths, shape, [_filled(values) for values in orderings])
    if not null.any():
        return ordered
    flags = pa.array(null)
    chosen, start = [], 0
    for with_value, without in zip(ordered, unordered, strict=True):
        chosen.append(pc.if_else(flags.slice(start, len(without)), without, with_value))
        start += len(without)
    return chosen


def ordering_branch(arrow: pa.DataType) -> int:
    """Return the branch of the union that holds ordering values of a column of this type."""
    types = pa.types
    if types.is_timestamp(arrow) or types.is_int64(arrow) or types.is_uint32(arrow):
        return _BRANCH_OF["LongWrapper"]
    if types.is_date32(arrow) or (types.is_integer(arrow) and not types.is_uint64(arrow)):
        # Hudi 1.2 cannot compare what its own wrapper of dates holds with a column of dates.
        return INT_BRANCH
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return _BRANCH_OF["StringWrapper"]
    if types.is_decimal(arrow):
        return _BRANCH_OF["DecimalWrapper"]
    for name, _, held in WRAPPED[1:]:
        if held == arrow:
            return _BRANCH_OF[name]
    raise IncompatibleSchema(
        f"Deletes cannot carry ordering values of type {arrow}. Use an ordering field that is a number, a text, a "
        "date or a time.",
        condition="UNSUPPORTED_ORDERING_TYPE",
        type=str(arrow),
    )


def _rows(
    keys: pa.Array, paths: pa.Array, shape: tuple[int, ...], values: Sequence[pa.Array]
) -> list[pa.Array]:
    fields, numbers, names = plain_fields(shape)
    columns = {"recordKey": keys, "partitionPath": paths}
    columns |= {name: _constant(number, len(keys), pa.int64()) for name, number in numbers.items()}
    columns |= dict(zip(names, map(_stored, values), strict=True))
    encoder = AvroEncoder({"type": "record", "name": "deletes", "fields": [KEY_FIELD, PATH_FIELD, *fields]})
    return encoder.encode(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)))


def _stored(values: pa.Array) -> pa.Array:
    """Times are stored as the numbers that they are."""
    types = pa.types
    if types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    if types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if types.is_time64(values.type) else values


def _filled(values: pa.Array) -> pa.Array:
    """Any value in place of nulls: the rows that have them are not used."""
    return values.fill_null(values.drop_null()[0]) if values.null_count else values


def _constant(value: object, count: int, arrow: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(value, arrow), count)
