import json

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, IncompatibleSchema, UnsupportedTable
from drawstring.schema.avro_arrow import arrow_schema_from_avro, avro_schema_from_arrow, decimal_size
from drawstring.schema.meta_columns import (
    META_COLUMNS,
    prepend_meta_columns,
    strip_meta_columns,
)

UTC = pa.timestamp("us", tz="UTC")
EVERYTHING = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("l", pa.int64()),
        pa.field("f", pa.float32()),
        pa.field("d", pa.float64()),
        pa.field("b", pa.bool_()),
        pa.field("s", pa.string()),
        pa.field("raw", pa.binary()),
        pa.field("dec", pa.decimal128(25, 4)),
        pa.field("day", pa.date32()),
        pa.field("at", UTC),
        pa.field("local", pa.timestamp("us")),
        pa.field("t3", pa.time32("ms")),
        pa.field("t6", pa.time64("us")),
        pa.field(
            "st",
            pa.struct([pa.field("x", pa.decimal128(5, 2)), pa.field("y", pa.struct([pa.field("z", UTC)]))]),
        ),
        pa.field("li", pa.list_(pa.field("element", pa.struct([pa.field("q", pa.int32())])))),
        pa.field(
            "ma", pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.decimal128(7, 3)))))
        ),
    ]
)


def record(type_, **more):
    return {"type": "record", "name": "r", "namespace": "n", "fields": [{"name": "x", "type": type_}], **more}


def only_type(type_):
    return arrow_schema_from_avro(record(type_)).field("x").type


def test_every_type_survives_the_way_to_avro_and_back():
    avro = avro_schema_from_arrow(EVERYTHING, name="t_record", namespace="hoodie.t")
    assert arrow_schema_from_avro(json.dumps(avro)) == EVERYTHING


def test_nested_names_follow_hudi():
    avro = avro_schema_from_arrow(EVERYTHING, name="t_record", namespace="hoodie.t")
    by_name = {field["name"]: field["type"] for field in avro["fields"]}
    assert by_name["dec"][1] | {"size": 11, "namespace": "hoodie.t.t_record.dec"} == by_name["dec"][1]
    struct = by_name["st"][1]
    assert (struct["name"], struct["namespace"]) == ("st", "hoodie.t.t_record")
    assert struct["fields"][0]["type"][1]["namespace"] == "hoodie.t.t_record.st.x"
    assert struct["fields"][1]["type"][1]["namespace"] == "hoodie.t.t_record.st"
    assert by_name["id"] == "int"
    assert avro["fields"][1] == {"name": "l", "type": ["null", "long"], "default": None}


@pytest.mark.parametrize(
    ("precision", "size"), [(5, 3), (7, 4), (10, 5), (25, 11), (38, 16), (1, 1), (2, 1), (18, 8)]
)
def test_decimals_take_the_fewest_bytes(precision, size):
    assert decimal_size(precision) == size


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
        ({"type": "fixed", "name": "f", "size": 4}, pa.binary()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 2)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, pa.decimal128(9, 0)),
        (
            {"type": "fixed", "name": "f", "size": 17, "logicalType": "decimal", "precision": 40},
            pa.decimal256(40, 0),
        ),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": "long", "logicalType": "timestamp-millis"}, UTC),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, pa.timestamp("us")),
        ({"type": "long", "logicalType": "made-up"}, pa.int64()),
        ({"type": {"type": "int", "logicalType": "date"}}, pa.date32()),
        (["null", "int", "long"], pa.int64()),
        (["float", "double"], pa.float64()),
        (["int", "string"], pa.struct([pa.field("member0", pa.int32()), pa.field("member1", pa.string())])),
        ("null", pa.null()),
    ],
)
def test_single_types(avro, arrow):
    assert only_type(avro) == arrow


@pytest.mark.parametrize("union", [["null", "string"], ["string", "null"]])
def test_null_may_stand_anywhere_in_a_union(union):
    assert arrow_schema_from_avro(record(union)).field("x").equals(pa.field("x", pa.string(), nullable=True))


def test_a_named_type_may_be_used_again():
    decimal = {
        "type": "fixed",
        "name": "fixed",
        "size": 3,
        "logicalType": "decimal",
        "precision": 5,
        "scale": 1,
    }
    fields = [
        {"name": "a", "type": decimal},
        {"name": "b", "type": ["null", "n.fixed"]},
        {"name": "c", "type": "fixed"},
    ]
    schema = arrow_schema_from_avro({"type": "record", "name": "r", "namespace": "n", "fields": fields})
    assert set(schema.types) == {pa.decimal128(5, 1)}


def test_recursion_is_refused():
    with pytest.raises(UnsupportedTable, match=r"n\.r contains itself"):
        only_type(["null", "r"])


def test_depth_is_limited():
    deep = "int"
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UnsupportedTable, match="deeper than 64"):
        only_type(deep)


@pytest.mark.parametrize(
    "schema", ["{", '"int"', "[]", record("nowhere"), record(None), record({"type": "array"}), "[" * 99999]
)
def test_what_is_no_record_schema_is_corrupt(schema):
    with pytest.raises(CorruptTable):
        arrow_schema_from_avro(schema)


@pytest.mark.parametrize(
    "field",
    [pa.field("a b", pa.int32()), pa.field("m", pa.map_(pa.int32(), pa.int32())), pa.field("u", pa.uint64())],
)
def test_what_hudi_cannot_store_is_refused(field):
    with pytest.raises(IncompatibleSchema):
        avro_schema_from_arrow(pa.schema([field]), name="r", namespace="n")


def test_meta_columns_are_put_first_and_taken_off():
    schema = pa.schema([("a", pa.int32()), ("_hoodie_record_key", pa.string())])
    full = prepend_meta_columns(schema)
    assert full.names == [*META_COLUMNS, "a"]
    assert strip_meta_columns(full).names == ["a"]


@pytest.mark.parametrize("kind", ["vector", "variant"])
def test_types_whose_stored_bytes_are_not_their_values_are_refused_by_name(kind):
    stored = {"type": "fixed", "name": f"{kind}_3", "size": 12}
    if kind == "variant":
        stored = {"type": "record", "name": "v", "fields": [{"name": "value", "type": "bytes"}]}
    stored["logicalType"] = kind
    schema = {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", stored]}]}
    with pytest.raises(UnsupportedTable, match=kind) as caught:
        arrow_schema_from_avro(schema)
    assert caught.value.condition == "COLUMN_TYPE_NOT_SUPPORTED"
