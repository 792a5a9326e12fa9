"""Buckets of record keys, as Apache Hudi 1.2 laid them out with 7 buckets."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.file_names import bucket_of_file_id
from drawstring.write.bucket_index import BucketRule, bucket_file_id, bucket_numbers, string_hashes

# The fields of the key, the fields that are hashed, and the bucket of each key.
HUDI: list[tuple[tuple[str, ...], tuple[str, ...], dict[str, int]]] = [
    (
        ("id",),
        (),
        {
            "k0é😀": 4,
            "k10": 6,
            "k12é😀": 2,
            "k14": 3,
            "k16": 5,
            "k18é😀": 3,
            "k2": 3,
            "k21é😀": 0,
            "k23": 5,
            "k25": 0,
            "k27é😀": 1,
            "k29": 4,
        },
    ),
    (
        ("id", "n"),
        (),
        {
            "id:k0é😀,n:0": 2,
            "id:k10,n:10": 3,
            "id:k12é😀,n:12": 2,
            "id:k14,n:14": 5,
            "id:k16,n:16": 6,
            "id:k18é😀,n:18": 4,
            "id:k2,n:2": 3,
            "id:k21é😀,n:21": 5,
            "id:k23,n:23": 6,
            "id:k25,n:25": 0,
            "id:k27é😀,n:27": 0,
            "id:k29,n:29": 2,
        },
    ),
    (
        ("id", "n"),
        ("n",),
        {
            "id:k0é😀,n:0": 2,
            "id:k10,n:10": 2,
            "id:k12é😀,n:12": 4,
            "id:k14,n:14": 6,
            "id:k16,n:16": 1,
            "id:k18é😀,n:18": 3,
            "id:k2,n:2": 4,
            "id:k21é😀,n:21": 6,
            "id:k23,n:23": 1,
            "id:k25,n:25": 3,
            "id:k27é😀,n:27": 5,
            "id:k29,n:29": 0,
        },
    ),
    (
        ("s",),
        (),
        {
            "n:0,x": 5,
            "n:10,x": 4,
            "n:12,x": 1,
            "n:14,x": 5,
            "n:16,x": 2,
            "n:18,x": 6,
            "n:2,x": 2,
            "n:21,x": 5,
            "n:23,x": 2,
            "n:25,x": 6,
            "n:27,x": 3,
            "n:29,x": 0,
        },
    ),
    (
        ("id", "s", "n"),
        (),
        {
            "id:__null__,s:__empty__,n:0": 5,
            "id:__null__,s:__empty__,n:24": 5,
            "id:__null__,s:x:16,y,n:16": 4,
            "id:__null__,s:x:28,y,n:28": 4,
            "id:__null__,s:x:4,y,n:4": 6,
            "id:a1,s:x:1,y,n:1": 0,
            "id:a11,s:x:11,y,n:11": 0,
            "id:a14,s:x:14,y,n:14": 6,
            "id:a17,s:x:17,y,n:17": 5,
            "id:a19,s:x:19,y,n:19": 2,
            "id:a21,s:__empty__,n:21": 4,
            "id:a23,s:x:23,y,n:23": 3,
        },
    ),
    (
        ("id", "s", "n"),
        ("s", "id"),
        {
            "id:__null__,s:__empty__,n:0": 2,
            "id:__null__,s:__empty__,n:24": 2,
            "id:__null__,s:x:16,y,n:16": 3,
            "id:__null__,s:x:28,y,n:28": 6,
            "id:__null__,s:x:4,y,n:4": 4,
            "id:a1,s:x:1,y,n:1": 3,
            "id:a11,s:x:11,y,n:11": 1,
            "id:a14,s:x:14,y,n:14": 2,
            "id:a17,s:x:17,y,n:17": 3,
            "id:a19,s:x:19,y,n:19": 6,
            "id:a21,s:__empty__,n:21": 5,
            "id:a23,s:x:23,y,n:23": 5,
        },
    ),
    (
        ("n",),
        (),
        {
            "n:0": 4,
            "n:10": 1,
            "n:12": 3,
            "n:14": 5,
            "n:16": 0,
            "n:18": 2,
            "n:2": 6,
            "n:21": 5,
            "n:23": 0,
            "n:25": 2,
            "n:27": 4,
            "n:29": 6,
        },
    ),
]


@pytest.mark.parametrize(("key_fields", "hash_fields", "buckets"), HUDI)
def test_keys_fall_into_the_buckets_that_hudi_puts_them_in(key_fields, hash_fields, buckets):
    found = bucket_numbers(pa.array(list(buckets)), BucketRule(7, key_fields, hash_fields))
    assert found.tolist() == list(buckets.values())


def java_hash(text: str) -> int:
    units = text.encode("utf-16-le")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[place : place + 2], "little")) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def test_hashes_are_javas_for_texts_of_any_length_and_script():
    texts = [
        "",
        "a",
        "hello world" * 50,
        "\u00e9",
        "\u6f22\u5b57",
        "\U0001f600x",
        "a\U0001f600",
        "\uffff\x00",
    ]
    values = pa.array(["cut off", *texts, None]).slice(1)
    assert string_hashes(values).tolist() == [*map(java_hash, texts), 0]
    assert string_hashes(pa.array([], pa.string())).tolist() == []


def test_file_ids_begin_with_the_bucket():
    first, second = bucket_file_id(3), bucket_file_id(3)
    assert first.startswith("00000003-")
    assert first.endswith("-0")
    assert first != second
    assert len(first) == len("00000003-de90-474f-bcef-c56ecbaf1041-0")
    assert bucket_of_file_id(first) == 3
    assert bucket_of_file_id("3f7a1c00-de90-474f-bcef-c56ecbaf1041-0") is None


@pytest.mark.parametrize(("buckets", "hash_fields"), [(0, ()), (4, ("other",))])
def test_rules_that_make_no_sense_are_refused(buckets, hash_fields):
    with pytest.raises(InvalidOption) as caught:
        BucketRule(buckets, ("id",), hash_fields)
    assert caught.value.condition == "INVALID_BUCKET_INDEX"


def test_key_of_other_fields_is_refused():
    with pytest.raises(InvalidInput) as caught:
        bucket_numbers(pa.array(["a:1,c:2"]), BucketRule(4, ("a", "b")))
    assert caught.value.condition == "INVALID_RECORD_KEY"
