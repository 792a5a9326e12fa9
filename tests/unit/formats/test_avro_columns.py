"""Records decoded field by field are those that a plain decoder reads one by one."""

import io

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.formats.avro_columns import CannotDecode, decode_columns

LONG_BOX = {"type": "record", "name": "LongBox", "fields": [{"name": "value", "type": "long"}]}
TEXT_BOX = {"type": "record", "name": "TextBox", "fields": [{"name": "value", "type": "string"}]}
SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "key", "type": {"type": "string", "avro.java.string": "String"}},
        {"name": "count", "type": ["null", "long"]},
        {"name": "low", "type": ["null", LONG_BOX, TEXT_BOX]},
        {"name": "high", "type": ["null", "LongBox", "TextBox"]},
        {"name": "flag", "type": "boolean"},
        {"name": "ratio", "type": ["null", "double", "float"]},
        {"name": "raw", "type": "bytes"},
    ],
}
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=9)
boxes = (
    st.none()
    | longs.map(lambda value: ("LongBox", {"value": value}))
    | texts.map(lambda value: ("TextBox", {"value": value}))
)
records = st.fixed_dictionaries(
    {
        "key": texts,
        "count": st.none() | longs,
        "low": boxes,
        "high": boxes,
        "flag": st.booleans(),
        "ratio": st.none() | st.floats(allow_nan=False),
        "raw": st.binary(max_size=200),
    }
)


def encoded(record, schema=SCHEMA):
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(dict(schema)), record)
    return memoryview(buffer.getvalue())


def box(values, row):
    found = values["value"] if isinstance(values, dict) else values
    return None if found is None else found[row]


@settings(max_examples=200, deadline=None)
@given(st.lists(records, min_size=1, max_size=6))
def test_every_value_comes_back(rows):
    found = decode_columns([encoded(row) for row in rows], SCHEMA)
    for number, row in enumerate(rows):
        for name in ("key", "count", "flag", "ratio", "raw"):
            values = found[name]
            assert (None if values is None else values[number]) == row[name]
        for name in ("low", "high"):
            assert box(found[name], number) == (row[name][1]["value"] if row[name] else None)


@pytest.mark.parametrize("kind", [{"type": "map", "values": "int"}, {"type": "array", "items": "int"}])
def test_what_it_does_not_know_is_told(kind):
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}
    with pytest.raises(CannotDecode):
        decode_columns([encoded({"x": {} if kind["type"] == "map" else []}, schema)], schema)


@settings(max_examples=200, deadline=None)
@given(records, st.data())
def test_damaged_bytes_are_told_or_decode_to_something(row, data):
    good = bytes(encoded(row))
    bad = bytearray(good)
    bad[data.draw(st.integers(0, len(bad) - 1))] ^= data.draw(st.integers(1, 255))
    cut = good[: data.draw(st.integers(0, len(good) - 1))]
    for content in (bytes(bad), cut):
        try:
            decode_columns([memoryview(content), memoryview(good)], SCHEMA)
        except CannotDecode:
            continue
