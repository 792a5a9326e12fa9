"""Ordering values: which of two versions of a record is the later event.

Values are normalised to types whose Arrow order is the order wanted: floats become integers that sort as Java
compares them (NaN greatest, -0.0 below 0.0), temporal values their integers. Null sorts below everything.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]


def normalised(values: pa.Array) -> pa.Array:
    """Ordering values in a type that compares as they do."""
    kind = values.type
    if pa.types.is_floating(kind):
        return _float_ranks(values)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return values.cast(pa.int64())
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values.cast(pa.int32()).cast(pa.int64())
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return values.cast(pa.int64())
    return values


def _float_ranks(values: pa.Array) -> pa.Array:
    doubles = values.cast(pa.float64())
    numbers = np.asarray(doubles.fill_null(0.0))
    bits = np.where(np.isnan(numbers), np.inf, numbers).view(np.int64) + np.isnan(numbers)
    ranks = np.where(bits < 0, np.int64(-(2**63)) - bits - 1, bits)
    return pa.array(ranks, mask=np.asarray(doubles.is_null()))


def as_column(values: pa.Array, column: pa.DataType) -> pa.Array | None:
    """Ordering values of a delete record in the type of the ordering column; None when they cannot compare."""
    try:
        if pa.types.is_integer(values.type) and pa.types.is_timestamp(column):
            return values.cast(pa.int64()).cast(column)
        if pa.types.is_integer(values.type) and pa.types.is_date32(column):
            return values.cast(pa.int32()).cast(column)
        if pa.types.is_decimal(values.type) and pa.types.is_decimal(column):
            return pc.round(values, column.scale).cast(column)
        return values.cast(column)
    except pa.ArrowException:
        return None


def greater(left: Sequence[pa.Array], right: Sequence[pa.Array], *, size: int) -> Mask:
    """Where the left values are later than the right ones, comparing field by field."""
    result = np.zeros(size, dtype=bool)
    undecided = np.ones(size, dtype=bool)
    for one, other in zip(left, right, strict=True):
        one_null, other_null = np.asarray(one.is_null()), np.asarray(other.is_null())
        above = _filled(pc.greater(one, other)) | (~one_null & other_null)
        equal = _filled(pc.equal(one, other)) | (one_null & other_null)
        result |= undecided & above
        undecided &= equal
    return result


def _filled(mask: pa.Array) -> Mask:
    return np.asarray(mask.fill_null(False))


def latest_per_key(key_ids: Index, orderings: Sequence[pa.Array], candidates: Index, key_count: int) -> Index:
    """For each key the candidate of highest ordering value, the last among equals; -1 for keys without any."""
    latest = np.full(key_count, -1, dtype=np.int64)
    ids = key_ids[candidates]
    sorted_candidates = candidates
    if len(ids) and np.bincount(ids, minlength=key_count).max() > 1:
        columns: dict[str, pa.Array] = {"key": pa.array(ids)}
        for index, values in enumerate(orderings):
            taken = values.take(pa.array(candidates))
            if taken.null_count:
                columns[f"is_set{index}"] = taken.is_valid().cast(pa.int8())
            columns[f"ordering{index}"] = taken
        columns["sequence"] = pa.array(candidates)
        keys = [(name, "ascending") for name in columns]
        order = pc.sort_indices(pa.table(columns), sort_keys=keys)
        sorted_candidates = candidates[np.asarray(order)]
    latest[key_ids[sorted_candidates]] = sorted_candidates
    return latest
