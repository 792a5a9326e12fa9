"""Bloom filters and key ranges of footers; a filter that Apache Hudi wrote is the judge."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pytest

from drawstring.config.bloom_options import DYNAMIC, SIMPLE, BloomOptions
from drawstring.config.write_options import WriteOptions
from drawstring.formats.bloom import (
    BLOOM_FILTER,
    MAX_KEY,
    MIN_KEY,
    TYPE_CODE,
    BloomFilter,
    FooterKeys,
    KeyFooter,
    bit_size,
    hash_count,
)

KEYS = pa.array([f"key{i}" for i in range(50)])
# Footers of base files with these keys, written by Apache Hudi 1.2: num_entries=100 and fpp=0.01; num_entries=20,
# fpp=0.001 and 30 entries at most.
HUDI_SIMPLE = (
    "/////wAAAAcBAAADv14jkQECiIWgLLEMY7OkCJXEABEA9YwEilASCQgEIEAJGSDAASRxHEMBIazCoSuRkIVAEz8IwA"
    "mNJKtGwgJNAYBtEgJaAAkAIADSgpQIQrlAMgpHIgHyaW2pEDAVbAEQRAgxAJgCQuBQWBaIBlLEAADORSE00ASAEA=="
)
HUDI_DYNAMIC = (
    "/////wAAAAoBAAABIAAAABQAAAAeAAAAAv////8AAAAKAQAAASDXrfA1pOvdw6N/MggyXcHadjL6skjy6ud7ur17dm"
    "0cyS4X7Cn/////AAAACgEAAAEg7j4pybxRHBY2Eqzq6se2LDXuV9uc1Z4XyVFd39+tLq+/bvUB"
)


def metadata_of(options: BloomOptions, *arrays: pa.Array) -> dict[str, str]:
    keys = FooterKeys(options)
    for array in arrays:
        keys.add(array)
    return keys.metadata()


def footer_of(metadata: dict[str, str]) -> KeyFooter:
    return KeyFooter.of({key.encode(): value.encode() for key, value in metadata.items()})


@pytest.mark.parametrize(
    ("entries", "rate", "size", "hashes"),
    [(60_000, 1e-9, 2_587_966, 30), (20, 1e-9, 863, 30), (20, 0.001, 288, 10), (100, 0.01, 959, 7)],
)
def test_filters_have_the_size_that_hudi_gives_them(entries, rate, size, hashes):
    assert bit_size(entries, rate) == size
    assert hash_count(size, entries) == hashes


def test_simple_filter_is_hudis_bit_for_bit():
    metadata = metadata_of(
        BloomOptions(kind=SIMPLE, entries=100, rate=0.01), KEYS.slice(0, 30), KEYS.slice(30)
    )
    assert metadata == {BLOOM_FILTER: HUDI_SIMPLE, MIN_KEY: "key0", MAX_KEY: "key9"}


@pytest.mark.parametrize(("text", "kind"), [(HUDI_SIMPLE, ""), (HUDI_DYNAMIC, DYNAMIC)])
def test_filters_of_hudi_find_its_keys_and_hardly_any_other(text, kind):
    found = BloomFilter.decode(text, kind)
    assert found.might_contain(KEYS).all()
    others = pa.array([f"other{i}" for i in range(2000)])
    assert found.might_contain(others).mean() < 0.03


@pytest.mark.parametrize("count", [1, 7, 60_001, 100_001, 250_000])
@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_every_key_that_was_added_is_found(kind, count):
    keys = pa.array(np.arange(count) * 7919).cast(pa.string())
    metadata = metadata_of(BloomOptions(kind=kind), *(keys.slice(i, 33_333) for i in range(0, count, 33_333)))
    footer = footer_of(metadata)
    assert footer.candidates(keys).all()
    if count <= 60_001:
        others = pa.array(np.arange(10_000) * 7919 + 1).cast(pa.string())
        assert footer.filter.might_contain(others).mean() < 0.02
    assert metadata.get(TYPE_CODE) == (DYNAMIC if kind == DYNAMIC else None)


def test_few_keys_make_a_small_filter():
    assert len(metadata_of(BloomOptions(rate=1e-9), KEYS)[BLOOM_FILTER]) < 600


def test_keys_of_any_length_and_script_are_found():
    texts = ["a", "ab", "abc", "abcd", "abcde", "é", "漢字", "😀" * 5, "\uffff", "x" * 1000, "\x00"]
    keys = pa.array(["skipped", *texts]).slice(1)
    footer = footer_of(metadata_of(BloomOptions(), keys, pa.array(["zz"], pa.string())))
    assert footer.candidates(keys).all()
    # By UTF-16 the emoji stands below the last text of one unit.
    assert (footer.least, footer.greatest) == ("\x00", "\uffff")


def test_range_rules_out_what_lies_outside():
    footer = KeyFooter("b", "d")
    assert footer.candidates(pa.array(["a", "b", "c", "d", "da", "e"])).tolist() == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    assert footer.candidates(pa.array(["a", "\uffff"])).all()


def test_footers_that_tell_nothing_rule_nothing_out():
    assert KeyFooter.of(None).candidates(KEYS).all()
    assert KeyFooter.of({BLOOM_FILTER.encode(): base64.b64encode(b"no filter")}).filter is None
    for damaged in (base64.b64decode(HUDI_SIMPLE)[:-3], b"\0" * 40, b""):
        with pytest.raises(ValueError, match="bloom filter"):
            BloomFilter.decode(base64.b64encode(damaged))


def test_no_rows_and_disabled_filters_leave_the_footer_as_it_is():
    assert metadata_of(BloomOptions()) == {}
    assert metadata_of(BloomOptions(enabled=False), KEYS) == {}


def test_options_have_hudis_names():
    options = {
        "hoodie.index.type": "BLOOM",
        "hoodie.index.bloom.num_entries": "10",
        "hoodie.bloom.index.filter.type": "SIMPLE",
    }
    assert WriteOptions.of(options).files.bloom == BloomOptions(kind=SIMPLE, entries=10, rate=1e-9)
    assert WriteOptions.of({"hoodie.index.bloom.fpp": "0.5"}).files.bloom.rate == 0.5
    assert WriteOptions.of({}).files.bloom.rate == 0.01
