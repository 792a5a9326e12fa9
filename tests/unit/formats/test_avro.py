from __future__ import annotations

import datetime as dt
import io
import json
import random
import struct
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats import avro
from drawstring.formats.avro import decode_blocks
from drawstring.formats.avro_native import NativeDecodeError


def nullable(avro_type):
    return ["null", avro_type]


def fixed_decimal(field, precision, scale, size):
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"hoodie.t.t_record.{field}",
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


UTC = dt.timezone.utc
STRUCT = {
    "type": "record",
    "name": "st",
    "namespace": "hoodie.t.t_record",
    "fields": [{"name": "x", "type": nullable("int")}, {"name": "y", "type": "string"}],
}
TYPES = {
    "boolean": ("boolean", [True, False]),
    "int": ("int", [1, -(2**31), 2**31 - 1]),
    "long": ("long", [1, -(2**63), 2**63 - 1]),
    "float": ("float", [0.5, float("-inf")]),
    "double": ("double", [0.1, -0.0, 1e308]),
    "string": ("string", ["", "ünï", "a" * 300]),
    "bytes": ("bytes", [b"", b"\xff\x00"]),
    "date": ({"type": "int", "logicalType": "date"}, [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "timestamp": (
        {"type": "long", "logicalType": "timestamp-micros"},
        [dt.datetime(1900, 1, 1, 1, 1, 1, 999, UTC), dt.datetime(2024, 2, 29, tzinfo=UTC)],
    ),
    "timestamp_ntz": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        [dt.datetime(1900, 1, 1, 1, 1, 1, 999), dt.datetime(2024, 2, 29)],
    ),
    "decimal_fixed": (fixed_decimal("d", 10, 2, 5), [Decimal("-12345678.90"), Decimal("0.01")]),
    "decimal_38": (fixed_decimal("d38", 38, 18, 16), [Decimal("-12345678901234567890.123456789012345678")]),
    "decimal_bytes": (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        [Decimal("1.500"), Decimal("-1.000")],
    ),
    "array": ({"type": "array", "items": nullable("int")}, [[], [1, None, 3]]),
    "array_of_array": (
        {"type": "array", "items": nullable({"type": "array", "items": "int"})},
        [[[1], None, []]],
    ),
    "array_of_struct": ({"type": "array", "items": nullable(STRUCT)}, [[{"x": None, "y": "q"}, None]]),
    "map": ({"type": "map", "values": nullable("double")}, [{}, {"a": 1.5, "b": None}]),
    "map_of_struct": ({"type": "map", "values": nullable(STRUCT)}, [{"k": {"x": 1, "y": "z"}, "n": None}]),
    "struct": (STRUCT, [{"x": 7, "y": ""}, {"x": None, "y": "b"}]),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["A", "B"]),
    "time": ({"type": "long", "logicalType": "time-micros"}, [dt.time(1, 2, 3, 4)]),
}


def block(schema, rows) -> pa.Buffer:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    body = b""
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, row)
        body += struct.pack(">i", stream.tell()) + stream.getvalue()
    return pa.py_buffer(struct.pack(">ii", 3, len(rows)) + body)


def record(*fields):
    return {
        "type": "record",
        "name": "t_record",
        "namespace": "hoodie.t",
        "fields": [{"name": name, "type": avro_type} for name, avro_type in fields],
    }


def rows_of(batches):
    return [row for batch in batches for row in batch.to_pylist(maps_as_pydicts="strict")]


@pytest.mark.parametrize("path", ["native", "slow"])
@pytest.mark.parametrize("null_first", [True, False, None], ids=["null first", "null last", "required"])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back_exactly(name, null_first, path, monkeypatch):
    avro_type, values = TYPES[name]
    if null_first is not None:
        avro_type = ["null", avro_type] if null_first else [avro_type, "null"]
        values = [None, *values]
    schema = record(("c", avro_type), ("after", "string"))
    rows = [{"c": value, "after": str(i)} for i, value in enumerate(values)]
    refuse(monkeypatch, "_decode_slowly" if path == "native" else "decode_rows")
    assert rows_of(decode_blocks(json.dumps(schema), [block(schema, rows)])) == rows


def test_milliseconds_become_microseconds():
    schema = record(("c", nullable({"type": "long", "logicalType": "timestamp-millis"})))
    moment = dt.datetime(2024, 2, 29, 1, 2, 3, 4000, UTC)
    assert rows_of(decode_blocks(json.dumps(schema), [block(schema, [{"c": moment}])])) == [{"c": moment}]


def refuse(monkeypatch, name):
    def refused(*_, **__):
        raise NativeDecodeError("switched off")

    monkeypatch.setattr(avro, name, refused)


def test_without_room_for_temporary_files_records_are_decoded_one_by_one(monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", full)
    schema = record(("a", "long"))
    assert rows_of(decode_blocks(json.dumps(schema), [block(schema, [{"a": 7}])])) == [{"a": 7}]


def test_blocks_of_one_schema_are_decoded_together_and_in_order():
    schema = record(("a", "long"))
    contents = [block(schema, [{"a": i}, {"a": -i}]) for i in range(50)] + [block(schema, [])]
    found = rows_of(decode_blocks(json.dumps(schema), contents))
    assert [row["a"] for row in found] == [sign * i for i in range(50) for sign in (1, -1)]


def test_only_the_columns_asked_for_come_back_in_that_order():
    schema = record(("a", "long"), ("B", "string"), ('odd "name"', "int"), ("c", "double"))
    schema["fields"][2]["name"] = "_odd"
    content = block(schema, [{"a": 1, "B": "x", "_odd": 5, "c": 0.5}])
    assert rows_of(decode_blocks(json.dumps(schema), [content], columns=["c", "B", "missing"])) == [
        {"c": 0.5, "B": "x"}
    ]


def test_no_columns_still_tell_the_number_of_rows():
    schema = record(("a", "long"))
    batches = list(decode_blocks(json.dumps(schema), [block(schema, [{"a": 1}] * 3)], columns=[]))
    assert sum(batch.num_rows for batch in batches) == 3


def test_a_flipped_bit_in_lengths_or_counts_is_reported():
    schema = record(("a", nullable("string")), ("b", nullable("long")))
    good = bytes(block(schema, [{"a": f"text {i}", "b": i} for i in range(100)]))
    for position in [*range(4, 12), *range(12, 40)]:
        for bit in range(8):
            data = bytearray(good)
            data[position] ^= 1 << bit
            try:
                found = rows_of(decode_blocks(json.dumps(schema), [pa.py_buffer(bytes(data))]))
            except CorruptTable:
                continue
            assert position >= 12
            assert len(found) == 100


def test_no_damage_crashes_the_decoder():
    schema = record(
        ("a", {"type": "map", "values": nullable("string")}), ("b", {"type": "array", "items": "long"})
    )
    good = bytes(block(schema, [{"a": {"k": "v" * i}, "b": list(range(i))} for i in range(20)]))
    chance = random.Random(7)
    for _ in range(300):
        data = bytearray(good)
        for _ in range(3):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        try:
            for batch in decode_blocks(json.dumps(schema), [pa.py_buffer(bytes(data))]):
                batch.validate(full=True)
        except CorruptTable:
            pass


def test_unknown_block_versions_are_refused_by_name():
    with pytest.raises(UnsupportedTable, match="version 4"):
        list(decode_blocks(json.dumps(record(("a", "long"))), [pa.py_buffer(struct.pack(">ii", 4, 0))]))
