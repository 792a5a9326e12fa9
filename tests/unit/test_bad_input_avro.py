"""Avro bombs: a few bytes that claim much cost little, and end in an error that says so."""

from __future__ import annotations

import json
import struct
import time
import zlib

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, DrawstringError, UnsupportedTable
from drawstring.formats import hfile
from drawstring.formats.avro import block_schema, decode_blocks
from drawstring.formats.avro_native import varint
from drawstring.formats.delete_blocks import decode_delete_block
from drawstring.schema.avro_arrow import MAX_DEPTH, arrow_schema_from_avro, avro_schema_from_arrow
from drawstring.schema.internal_schema import parse_schema_history

HUGE = [1 << 31, 1 << 33, 1 << 60, -500, -(1 << 40), -(1 << 63)]


def record(kind, name="r"):
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}]}


def block(body: bytes, count: int = 1) -> pa.Buffer:
    return pa.py_buffer(struct.pack(">iii", 3, count, len(body)) + body)


def decode(kind, body: bytes) -> list[pa.RecordBatch]:
    return list(decode_blocks(json.dumps(record(kind)), [block(body)]))


@pytest.mark.parametrize("claimed", HUGE)
@pytest.mark.parametrize(
    "kind", ["string", "bytes", {"type": "array", "items": "int"}, {"type": "map", "values": "int"}], ids=str
)
def test_lengths_and_counts_beyond_the_bytes_allocate_nothing(kind, claimed):
    before = pa.total_allocated_bytes()
    with pytest.raises(CorruptTable) as caught:
        decode(kind, varint(claimed) + b"\0" * 20)
    assert caught.value.condition == "LOG_BLOCK_UNREADABLE"
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize(
    "items",
    [
        "null",
        ["null"],
        {"type": "record", "name": "e", "fields": []},
        {"type": "fixed", "name": "f", "size": 0},
    ],
    ids=str,
)
def test_arrays_of_nothing_are_refused(items):
    with pytest.raises(UnsupportedTable) as caught:
        decode({"type": "array", "items": items}, varint(1 << 60) + b"\0")
    assert caught.value.condition == "EMPTY_ARRAY_ITEMS"


@pytest.mark.parametrize("size", [1 << 33, 1 << 60, -1])
def test_a_giant_fixed_is_refused(size):
    with pytest.raises(DrawstringError):
        decode({"type": "fixed", "name": "f", "size": size}, b"\0" * 20)


@pytest.mark.parametrize("count", [1 << 20, 2**31 - 1, -1])
def test_a_block_cannot_claim_more_records_than_bytes(count):
    with pytest.raises(CorruptTable, match="claims"):
        list(decode_blocks(json.dumps(record("int")), [block(b"\0", count)]))


@pytest.mark.parametrize("count", HUGE)
def test_a_list_of_deletes_cannot_claim_more_than_its_bytes(count):
    body = varint(count) + b"\0" * 30
    with pytest.raises(CorruptTable):
        decode_delete_block(pa.py_buffer(struct.pack(">ii", 3, len(body)) + body))


def nested(depth: int, kind: str = "record"):
    schema = "int"
    for level in range(depth):
        schema = {"type": "array", "items": schema} if kind == "array" else record(schema, f"r{level}")
    return record(schema)


@pytest.mark.parametrize("kind", ["record", "array"])
def test_schemas_nest_as_deep_as_the_limit_and_no_deeper(kind):
    assert arrow_schema_from_avro(nested(MAX_DEPTH - 1, kind)).names == ["a"]
    for depth in (MAX_DEPTH + 1, 100, 300):
        with pytest.raises(UnsupportedTable) as caught:
            arrow_schema_from_avro(nested(depth, kind))
        assert caught.value.condition == "SCHEMA_TOO_DEEP"


def test_schemas_too_deep_to_be_parsed_at_all_are_refused():
    text = '{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000
    for schema in (text, "[" * 100_000):
        with pytest.raises(CorruptTable):
            arrow_schema_from_avro(schema)
        with pytest.raises(DrawstringError):
            block_schema(schema)
        with pytest.raises(CorruptTable):
            parse_schema_history(schema.encode())


def test_deep_rows_cannot_be_written():
    kind = pa.int32()
    for _ in range(100):
        kind = pa.struct([pa.field("a", kind)])
    with pytest.raises(UnsupportedTable) as caught:
        avro_schema_from_arrow(pa.schema([("a", kind)]), name="r", namespace="n")
    assert caught.value.condition == "SCHEMA_TOO_DEEP"


def test_recursive_schemas_are_refused():
    with pytest.raises(UnsupportedTable) as caught:
        arrow_schema_from_avro(record(["null", "r"]))
    assert caught.value.condition == "RECURSIVE_SCHEMA"


@pytest.mark.parametrize(
    "schema",
    ["null", "{}", "3", '"int"', '{"type":"record"}', json.dumps(record("teleport")), json.dumps(record(7))],
)
def test_schemas_that_are_none_are_refused(schema):
    with pytest.raises(DrawstringError):
        block_schema(schema)


def test_classes_named_in_a_schema_are_ignored():
    kind = {"type": "string", "java-class": "javax.naming.InitialContext", "java-key-class": "x"}
    assert arrow_schema_from_avro(record(kind)).field("a").type == pa.string()
    assert decode(kind, varint(2) + b"hi")[0].to_pydict() == {"a": ["hi"]}


def test_ten_thousand_columns_and_a_long_name_take_little_time():
    fields = [{"name": f"c{i}", "type": ["null", "string"], "default": None} for i in range(10_000)]
    fields.append({"name": "n" * 1_000_000, "type": "int"})
    started = time.monotonic()
    schema = arrow_schema_from_avro(json.dumps({"type": "record", "name": "r", "fields": fields}))
    back = avro_schema_from_arrow(schema, name="r", namespace="n")
    assert (len(schema), len(back["fields"])) == (10_001, 10_001)
    assert time.monotonic() - started < 20


def test_a_compressed_block_cannot_claim_more_than_the_limit():
    packed = zlib.compress(bytes(1 << 20), 9)
    for claimed, works in ((1 << 20, True), (hfile.MAX_EXPANDED_BYTES + 1, False)):
        raw = hfile._HEADER.pack(
            b"DATABLK*", len(packed), claimed, -1, 0, 0, hfile.HEADER_BYTES + len(packed)
        )
        content = memoryview(raw + packed)
        if works:
            assert len(hfile._parse_block(content, 1).content) == claimed
        else:
            with pytest.raises(ValueError, match="at most"):
                hfile._parse_block(content, 1)


def test_expansion_stops_at_the_claimed_size():
    packed = zlib.compress(bytes(8 << 20), 9)
    raw = hfile._HEADER.pack(b"DATABLK*", len(packed), 1000, -1, 0, 0, hfile.HEADER_BYTES + len(packed))
    assert len(hfile._parse_block(memoryview(raw + packed), 1).content) == 1000
