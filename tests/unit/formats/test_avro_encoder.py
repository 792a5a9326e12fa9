"""Arrow encoded as Avro: byte for byte what fastavro makes of the same rows, and decoded to the same."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.errors import IncompatibleSchema
from drawstring.formats import avro_encoder
from drawstring.formats.avro import decode_blocks
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.schema.avro_arrow import avro_schema_from_arrow

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
UTC = dt.timezone.utc
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    digits = st.integers(-(10**precision) + 1, 10**precision - 1)
    return digits.map(lambda number: Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)))


SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), INT32),
    (pa.int64(), INT64),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=200)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", tz="UTC"), MOMENTS.map(lambda moment: moment.replace(tzinfo=UTC))),
    (pa.timestamp("us"), MOMENTS),
    (pa.time32("ms"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (pa.time64("us"), st.times()),
    (pa.decimal128(5, 2), decimals(5, 2)),
    (pa.decimal128(38, 10), decimals(38, 10)),
    (pa.decimal256(50, 4), decimals(50, 4)),
]
Typed = tuple[pa.DataType, st.SearchStrategy[Any]]


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    optional = st.tuples(inner, st.booleans())
    return (
        optional.map(lambda found: _list(*found))
        | optional.map(lambda found: _map(*found))
        | st.lists(optional, min_size=1, max_size=3).map(_struct)
    )


def _values(values: st.SearchStrategy[Any], nullable: bool) -> st.SearchStrategy[Any]:
    return st.none() | values if nullable else values


def _list(typed: Typed, nullable: bool) -> Typed:
    arrow, values = typed
    return pa.list_(pa.field("element", arrow, nullable=nullable)), st.lists(
        _values(values, nullable), max_size=4
    )


def _map(typed: Typed, nullable: bool) -> Typed:
    arrow, values = typed
    entries = st.dictionaries(st.text(max_size=5), _values(values, nullable), max_size=3)
    return pa.map_(pa.string(), pa.field("value", arrow, nullable=nullable)), entries.map(
        lambda found: list(found.items())
    )


def _struct(parts: list[tuple[Typed, bool]]) -> Typed:
    fields = [pa.field(f"f{i}", arrow, nullable=null) for i, ((arrow, _), null) in enumerate(parts)]
    values = {f"f{i}": _values(values, null) for i, ((_, values), null) in enumerate(parts)}
    return pa.struct(fields), st.fixed_dictionaries(values)


TYPES = st.recursive(st.sampled_from(SCALARS), nested, max_leaves=4)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    parts = draw(st.lists(st.tuples(TYPES, st.booleans()), min_size=1, max_size=4))
    columns = [_values(values, null) for (_, values), null in parts]
    rows = draw(st.lists(st.tuples(*columns), max_size=6))
    schema = pa.schema([pa.field(f"c{i}", arrow, nullable=n) for i, ((arrow, _), n) in enumerate(parts)])
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    start = draw(st.integers(0, len(rows)))
    return batch.slice(start)


def avro_of(schema: pa.Schema) -> dict[str, Any]:
    return avro_schema_from_arrow(schema, name="t_record", namespace="hoodie.t")


def encoded(batch: pa.RecordBatch, avro: Any, **options: Any) -> list[bytes]:
    return [row for chunk in AvroEncoder(avro).encode(batch, **options) for row in chunk.to_pylist()]


def plain(value: Any, arrow: pa.DataType) -> Any:
    """A value as fastavro takes it: maps are dicts."""
    if value is None:
        return None
    if pa.types.is_map(arrow):
        return {key: plain(item, arrow.item_type) for key, item in value}
    if pa.types.is_list(arrow):
        return [plain(item, arrow.value_type) for item in value]
    if pa.types.is_struct(arrow):
        return {field.name: plain(value[field.name], field.type) for field in arrow}
    return value


def by_fastavro(batch: pa.RecordBatch, avro: Any) -> list[bytes]:
    parsed, found = fastavro.parse_schema(avro), []
    for row in batch.to_pylist():
        stream = io.BytesIO()
        record = {field.name: plain(row[field.name], field.type) for field in batch.schema}
        fastavro.schemaless_writer(stream, parsed, record)
        found.append(stream.getvalue())
    return found


@settings(deadline=None, max_examples=300)
@given(batches(), st.sampled_from([1, 3, 1000]))
def test_the_bytes_are_those_that_fastavro_makes(batch, chunk_rows):
    avro, before = avro_of(batch.schema), avro_encoder.CHUNK_ROWS
    avro_encoder.CHUNK_ROWS = chunk_rows
    try:
        found = encoded(batch, avro)
    finally:
        avro_encoder.CHUNK_ROWS = before
    assert found == by_fastavro(batch, avro)


@settings(deadline=None, max_examples=60)
@given(batches())
def test_what_was_encoded_is_decoded_to_the_same(batch):
    avro = avro_of(batch.schema)
    rows = encoded(batch, avro, with_length=True)
    assert all(len(row) - 4 == int.from_bytes(row[:4], "big") for row in rows)
    content = pa.py_buffer(struct.pack(">ii", 3, len(rows)) + b"".join(rows))
    found = [row for part in decode_blocks(json.dumps(avro), [content]) for row in part.to_pylist()]
    assert found == batch.to_pylist()


def one_column(avro_type: Any, values: pa.Array) -> list[bytes]:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": avro_type}]}
    return encoded(pa.record_batch({"c": values}), schema)


def test_null_may_be_the_second_branch():
    assert one_column(["int", "null"], pa.array([1, None], pa.int32())) == [b"\x00\x02", b"\x02"]


def test_milliseconds_are_cut_from_microseconds():
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    column = pa.array([1_999, -1], pa.timestamp("us", tz="UTC"))
    assert one_column(millis, column) == [b"\x02", b"\x01"]


def test_variable_decimals_have_no_byte_too_many():
    avro = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 0}
    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**29]
    column = pa.array([Decimal(number) for number in numbers], pa.decimal128(30, 0))
    for number, found in zip(numbers, one_column(avro, column), strict=True):
        size = (number + (number < 0)).bit_length() // 8 + 1
        assert found == bytes([2 * size]) + number.to_bytes(size, "big", signed=True)


def test_a_fixed_decimal_may_be_wider_than_its_digits():
    avro = {"type": "fixed", "name": "f", "size": 20, "logicalType": "decimal", "precision": 5, "scale": 0}
    found = one_column(avro, pa.array([Decimal(-2), Decimal(3)], pa.decimal128(5, 0)))
    assert found == [(-2).to_bytes(20, "big", signed=True), (3).to_bytes(20, "big")]


def test_unions_of_several_types_take_the_member_that_is_set():
    avro = ["null", "string", {"type": "record", "name": "w", "fields": [{"name": "value", "type": "int"}]}]
    rows = [{"member0": "a"}, None, {"member1": {"value": 5}}, {}]
    column = pa.array(rows, pa.struct({"member0": pa.string(), "member1": pa.struct({"value": pa.int32()})}))
    assert one_column(avro, column) == [b"\x02\x02a", b"\x00", b"\x04\x0a", b"\x00"]
    assert one_column(["int", "long"], pa.array([3], pa.int64())) == [b"\x02\x06"]
    with pytest.raises(IncompatibleSchema, match="union"):
        one_column(avro[1:], column)


def test_enums_and_fixed_are_checked():
    enum = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
    assert one_column(["null", enum], pa.array(["B", None])) == [b"\x02\x02", b"\x00"]
    with pytest.raises(IncompatibleSchema, match="another value than A, B"):
        one_column(enum, pa.array(["C"]))
    fixed = {"type": "fixed", "name": "f", "size": 2}
    assert one_column(fixed, pa.array([b"ab"])) == [b"ab"]
    with pytest.raises(IncompatibleSchema, match="another length"):
        one_column(fixed, pa.array([b"abc"]))


def test_names_stand_for_what_they_define():
    inner = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    fields = [
        {"name": "a", "type": inner},
        {"name": "b", "type": ["null", "n.p"]},
        {"name": "c", "type": "p"},
    ]
    schema = {"type": "record", "name": "r", "namespace": "n", "fields": fields}
    value = pa.array([{"x": 1}], pa.struct({"x": pa.int32()}))
    batch = pa.record_batch({"a": value, "b": value, "c": value})
    assert encoded(batch, schema) == [b"\x02\x02\x02\x02"]


def test_other_arrow_types_are_cast_and_nulls_and_missing_columns_refused():
    schema = pa.schema([pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int32())])
    columns = {
        "b": pa.array([1, None], pa.int16()),
        "other": pa.array([1, 2]),
        "a": pa.array(["x", "y"]).dictionary_encode(),
    }
    assert encoded(pa.record_batch(columns), avro_of(schema)) == [b"\x02x\x02\x02", b"\x02y\x00"]
    with pytest.raises(IncompatibleSchema, match="nulls"):
        encoded(pa.record_batch({**columns, "a": pa.array(["x", None])}), avro_of(schema))
    with pytest.raises(IncompatibleSchema, match="lack the column 'a'"):
        encoded(pa.record_batch({"b": columns["b"]}), avro_of(schema))
    with pytest.raises(IncompatibleSchema, match="does not become"):
        encoded(pa.record_batch({**columns, "b": pa.array(["x", "y"])}), avro_of(schema))
