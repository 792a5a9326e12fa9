"""Which of two versions of a record wins: the only place that says so, for reads, rewrites and combining.

Values are normalised to types whose Arrow order is the order that Hudi compares by: floats become integers that
sort as in Java (NaN greatest and equal to itself, -0.0 below 0.0), binary values sort by signed bytes as Java's
byte buffers do, texts by their UTF-8 bytes, temporal values as their integers. Null sorts below everything (Hudi
fails on it). Several fields compare one after the other. Among equals the later in order wins: a write over what
is stored, a log block over the one before it, a row over those before it in the input.

`drawstring.spark.write.ordering` says the same in Spark's terms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]

DATA, EVENT_DELETE, COMMIT_DELETE = 1, 2, 3
"""Kinds of events; 0 stands for no event. A commit-time delete has no ordering value: it compares with nothing."""


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
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _signed_bytes(values.cast(pa.large_binary()))
    return values


def _signed_bytes(values: pa.Array) -> pa.Array:
    """Binary values with the top bit of every byte flipped: unsigned order becomes that of signed bytes."""
    validity, offsets, data = values.buffers()
    if data is None or not data.size:
        return values
    flipped = np.frombuffer(data, dtype=np.uint8) ^ np.uint8(0x80)
    return pa.Array.from_buffers(
        values.type, len(values), [validity, offsets, pa.py_buffer(flipped)], offset=values.offset
    )


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


def event_kinds(deleted: Mask, orderings: Sequence[pa.Array]) -> Kinds:
    """What each record is, by its ordering values as stored: data, or a delete of either kind."""
    kinds: Kinds = np.where(deleted, np.int8(EVENT_DELETE), np.int8(DATA))
    if deleted.any():
        kinds[deleted & _without_ordering(orderings, len(deleted))] = COMMIT_DELETE
    return kinds


def _without_ordering(stored: Sequence[pa.Array], size: int) -> Mask:
    """Where ordering values are missing; a plain int 0 is Hudi's way to say so."""
    missing = np.ones(size, dtype=bool)
    for values in stored:
        absent = np.asarray(values.is_null())
        if pa.types.is_int32(values.type) and len(stored) == 1:
            absent = absent | np.asarray(pc.equal(values, 0).fill_null(True))
        missing &= absent
    return missing


def older_stands(
    older: Sequence[pa.Array],
    newer: Sequence[pa.Array],
    *,
    newer_kinds: Kinds,
    older_kinds: Kinds | None = None,
) -> Mask:
    """Where the older version of a record wins over the newer one: only by a greater ordering value.

    Values are normalised. A commit-time delete deletes whatever stands, and any later record is alive again.
    """
    stands: Mask = greater(older, newer, size=len(newer_kinds)) & (newer_kinds != COMMIT_DELETE)
    if older_kinds is not None:
        stands &= older_kinds != COMMIT_DELETE
    return stands


def last_per_key(key_ids: Index, key_count: int) -> Index:
    """For each key its last event; -1 for keys without any."""
    last = np.full(key_count, -1, dtype=np.int64)
    last[key_ids] = np.arange(len(key_ids))
    return last


def winner_per_key(key_ids: Index, kinds: Kinds, orderings: Sequence[pa.Array], key_count: int) -> Index:
    """For each key the event that stands after all of them, by normalised ordering values.

    1. A commit-time delete makes everything before it void.
    2. Deletes right after it change nothing; from the first data record on, ordering values decide.
    3. Where only the commit-time delete is left, it stands.
    """
    everything = np.arange(len(key_ids))
    voids = everything[kinds == COMMIT_DELETE]
    if not len(voids):
        return latest_per_key(key_ids, orderings, everything, key_count)
    void = np.full(key_count, -1, dtype=np.int64)
    void[key_ids[voids]] = voids
    after = everything > void[key_ids]
    first_data = np.full(key_count, len(key_ids), dtype=np.int64)
    data_after = everything[after & (kinds == DATA)][::-1]
    first_data[key_ids[data_after]] = data_after
    counts = after & ((void[key_ids] < 0) | (everything >= first_data[key_ids]))
    latest = latest_per_key(key_ids, orderings, everything[counts], key_count)
    return np.where(latest < 0, void, latest)


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
