from __future__ import annotations

import contextlib
import io
import struct
import time
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats import delete_blocks
from drawstring.formats.delete_blocks import decode_delete_block


def block(deletes, *, version=3) -> pa.Buffer:
    schema = fastavro.parse_schema(
        {
            "type": "record",
            "name": "HoodieDeleteRecordList",
            "fields": [
                {"name": "list", "type": {"type": "array", "items": delete_blocks._full_schema()}},
            ],
        }
    )
    stream = io.BytesIO()
    rows = [{"recordKey": key, "partitionPath": "p", "orderingVal": ordering} for key, ordering in deletes]
    fastavro.schemaless_writer(stream, schema, {"list": rows})
    return pa.py_buffer(struct.pack(">ii", version, stream.tell()) + stream.getvalue())


def wrap(name, value):
    return (f"{name}Wrapper", {"value": value})


def array(*values):
    return ("ArrayWrapper", {"wrappedValues": list(values)})


def decoded(content):
    return {
        key: tuple(values)
        for batch in decode_delete_block(content)
        for key, *values in zip(
            batch.keys.to_pylist(), *(o.to_pylist() for o in batch.orderings), strict=True
        )
    }


@pytest.fixture(params=[0, 10**9], ids=["natively", "one by one"], autouse=True)
def few(request, monkeypatch):
    monkeypatch.setattr(delete_blocks, "_FEW", request.param)


def test_the_bytes_of_one_delete_that_hudi_wrote():
    payload = (
        bytes.fromhex("02020e") + b"TXN-002" + bytes.fromhex("0212") + b"region=us" + bytes.fromhex("040000")
    )
    content = pa.py_buffer(struct.pack(">ii", 3, len(payload)) + payload)
    (batch,) = decode_delete_block(content)
    assert batch.keys.to_pylist() == ["TXN-002"]
    assert batch.orderings == ()


def test_an_empty_list_holds_no_deletes():
    assert decode_delete_block(pa.py_buffer(bytes.fromhex("000000030000000100"))) == []


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Boolean", [True, False]),
        ("Int", [5, -7]),
        ("Long", [0, 1, -(2**62)]),
        ("Float", [0.5]),
        ("Double", [0.1, -1e300]),
        ("Bytes", [b"", b"\x01"]),
        ("String", ["", "ünï"]),
        ("Decimal", [Decimal("1.500000000000000"), Decimal("-123456789012345.000000000000001")]),
    ],
)
def test_ordering_values_of_every_type(name, values):
    deletes = {f"k{i}": value for i, value in enumerate(values)}
    content = block([(key, wrap(name, value)) for key, value in deletes.items()])
    assert decoded(content) == {key: (value,) for key, value in deletes.items()}


def test_int_zero_and_null_are_commit_time_deletes_and_long_zero_is_not():
    content = block(
        [
            ("a", wrap("Int", 0)),
            ("b", None),
            ("c", wrap("Long", 0)),
            ("d", wrap("Int", 3)),
            ("e", array(None)),
        ]
    )
    assert decoded(content) == {"a": (), "b": (), "c": (0,), "d": (3,), "e": ()}


def test_several_ordering_fields():
    content = block([(f"k{i}", array(wrap("Long", i), wrap("Double", 1.5))) for i in range(10)])
    assert decoded(content) == {f"k{i}": (i, 1.5) for i in range(10)}


def test_a_million_deletes_take_little_time(monkeypatch):
    monkeypatch.setattr(delete_blocks, "_FEW", 200)
    one = bytes.fromhex("020e") + b"%07d" + bytes.fromhex("0202") + b"p" + bytes.fromhex("0606")
    count = 1_000_000
    payload = delete_blocks.varint(count) + b"".join(one % i for i in range(count)) + b"\x00"
    content = pa.py_buffer(struct.pack(">ii", 3, len(payload)) + payload)
    started = time.process_time()
    (batch,) = decode_delete_block(content)
    assert len(batch.keys) == count
    assert batch.keys[-1].as_py() == "0999999"
    assert time.process_time() - started < 3


@pytest.mark.parametrize("position", range(4, 30))
def test_damage_is_reported_or_harmless(position):
    good = bytes(block([(f"key{i}", wrap("Long", i)) for i in range(20)]))
    for bit in range(8):
        data = bytearray(good)
        data[position] ^= 1 << bit
        with contextlib.suppress(CorruptTable):
            assert len(decoded(pa.py_buffer(bytes(data)))) in (19, 20)


@pytest.mark.parametrize("version", [0, 4])
def test_other_versions_are_refused_by_name(version):
    with pytest.raises(UnsupportedTable, match=f"version {version}"):
        decode_delete_block(block([], version=version))
