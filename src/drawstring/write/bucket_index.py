"""Hudi's simple bucket index: a hash of the key, or of some of its fields, names the file group.

The number of buckets and the hash fields are settings of writers, not of the table: file ids tell only which buckets
there are. Hashes are Java's, of lists of texts.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.index_options import IndexOptions
from drawstring.errors import InvalidInput, InvalidOption, UnsupportedTable
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import bucket_of_file_id
from drawstring.model.key_names import EMPTY_KEY_PART, NULL_KEY_PART

Hashes = npt.NDArray[np.int32]
_LARGEST = 0x7FFFFFFF


@dataclass(frozen=True)
class BucketRule:
    """How keys fall into buckets: `hash_fields` are some of `key_fields`, all of them by default."""

    buckets: int
    key_fields: tuple[str, ...]
    hash_fields: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unknown = sorted(set(self.hash_fields) - set(self.key_fields))
        if unknown or self.buckets < 1:
            raise InvalidOption(
                f"A bucket index of {self.buckets} buckets by {list(self.hash_fields)} is not possible: expected one "
                f"bucket at least, and fields of the record key {list(self.key_fields)}. Correct "
                "hoodie.bucket.index.num.buckets or hoodie.bucket.index.hash.field.",
                condition="INVALID_BUCKET_INDEX",
                buckets=self.buckets,
                hash_fields=list(self.hash_fields),
            )


def bucket_rule(options: IndexOptions, key_fields: Sequence[str]) -> BucketRule:
    """Return the rule that a write's options ask for."""
    if not key_fields:
        raise InvalidOption(
            "A bucket index needs a record key, whose hash tells the bucket. Set "
            "hoodie.datasource.write.recordkey.field, or another hoodie.index.type. Nothing was written.",
            condition="RECORD_KEY_MISSING",
            operation="bucket index",
        )
    return BucketRule(options.buckets, tuple(key_fields), options.hash_fields)


def check_buckets(slices: Iterable[FileSlice], rule: BucketRule, path: str) -> None:
    """Refuse partitions whose file groups are not the buckets of the rule: keys would be looked for in others."""
    seen: set[tuple[str, int | None]] = set()
    for found in slices:
        number = bucket_of_file_id(found.group.file_id)
        place = (found.group.partition_path, number)
        if number is None or number >= rule.buckets or place in seen:
            raise UnsupportedTable(
                f"Cannot write to {path}: the file group {found.group.file_id} of partition "
                f"{found.group.partition_path!r} is none of {rule.buckets} buckets, of one group each. Set "
                "hoodie.bucket.index.num.buckets, or hoodie.index.type, as the table's other writers do. Nothing was "
                "written.",
                condition="WRITE_BUCKET_INDEX",
                operation="write",
                path=path,
                found=found.group.file_id,
            )
        seen.add(place)


def bucket_numbers(keys: pa.Array, rule: BucketRule) -> npt.NDArray[np.int32]:
    """Return the bucket of each record key."""
    hashed: Hashes = np.ones(len(keys), dtype=np.int32)
    for values in _hash_values(keys, rule):
        hashed = hashed * np.int32(31) + string_hashes(values)
    numbers: Hashes = (hashed & np.int32(_LARGEST)) % np.int32(rule.buckets)
    return numbers


def bucket_file_id(bucket: int) -> str:
    """Return a new file id of a bucket: its number in eight digits, then the rest of a UUID."""
    return f"{bucket:08d}{str(uuid.uuid4())[8:]}-0"


def shared_bucket_file_id(bucket: int) -> str:
    """Return the file id of a bucket that writers agree on without asking each other, as Hudi's do."""
    return f"{bucket:08d}-0000-0000-0000-000000000000-0"


def bucket_places(groups: Iterable[FileGroupId]) -> frozenset[tuple[str, int]]:
    """Return partition path and bucket number of the groups that are buckets."""
    numbers = ((group.partition_path, bucket_of_file_id(group.file_id)) for group in groups)
    return frozenset((path, number) for path, number in numbers if number is not None)


def string_hashes(values: pa.Array) -> Hashes:
    """Return Java's hash of each text; that of null is 0."""
    hashes: Hashes = np.zeros(len(values), dtype=np.int32)
    units, offsets = _utf16(values)
    lengths = np.diff(offsets)
    for place in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > place)
        hashes[rows] = hashes[rows] * np.int32(31) + units[offsets[rows] + place]
    return hashes


def _utf16(values: pa.Array) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return the UTF-16 units of all texts, and where each begins."""
    texts = pc.fill_null(values, "").cast(pa.large_string())
    _, offset_buffer, data_buffer = texts.buffers()
    bounds = np.frombuffer(offset_buffer, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(data_buffer or b"", dtype=np.uint8)[bounds[0] : bounds[-1]]
    units = np.frombuffer(data.tobytes().decode().encode("utf-16-le"), dtype="<u2").astype(np.int32)
    # Every byte but those that continue a character begins one; characters of four bytes are two units.
    starts = ((data & 0xC0) != 0x80).astype(np.int64) + (data >= 0xF0)
    before = np.concatenate([[0], np.cumsum(starts)])
    return units, before[bounds - bounds[0]]


def _hash_values(keys: pa.Array, rule: BucketRule) -> list[pa.Array]:
    """Return what is hashed of each key: the whole key of one field, else the values of the hash fields.

    Values stand in the order of the key, whatever the order of the hash fields is; absent ones hash as null does.
    """
    if len(rule.key_fields) == 1:
        return [keys]
    parts = _key_parts(keys, rule.key_fields)
    absent = pa.array([NULL_KEY_PART, EMPTY_KEY_PART])
    return [
        pc.if_else(pc.is_in(values, value_set=absent), pa.scalar(None, values.type), values)
        for name, values in parts.items()
        if not rule.hash_fields or name in rule.hash_fields
    ]


def _key_parts(keys: pa.Array, fields: Sequence[str]) -> dict[str, pa.Array]:
    names = "".join(f",{re.escape(name)}:(?P<f{number}>.*?)" for number, name in enumerate(fields))
    found = pc.extract_regex(keys, f"(?s)^{names[1:]}$")
    if found.null_count:
        example = keys.filter(found.is_null())[0].as_py()
        raise InvalidInput(
            f"The record key {example!r} is not made of the fields {list(fields)}. Correct "
            "hoodie.datasource.write.recordkey.field.",
            condition="INVALID_RECORD_KEY",
            key=example,
        )
    return {name: found.field(number) for number, name in enumerate(fields)}
