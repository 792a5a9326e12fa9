"""Each rule of equality, both ways, at the top and nested."""

from __future__ import annotations

import copy
import json

import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.schema.avro_equality import canonical, expand, is_null_schema, same_schema


def record(*fields, name="r", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, avro, **more):
    return {"name": name, "type": avro, **more}


def enum(symbols, name="e", **more):
    return {"type": "enum", "name": name, "symbols": symbols, **more}


def fixed(size, name="f", **more):
    return {"type": "fixed", "name": name, "size": size, **more}


def decimal(precision, scale, **more):
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale, **more}


def logical(kind, name, **more):
    return {"type": kind, "logicalType": name, **more}


# Pairs of lists of fields: how a field, or what follows it, is changed.
DIFFERENT = {
    "name": ([field("a", "int")], [field("b", "int")]),
    "case of a name": ([field("a", "int")], [field("A", "int")]),
    "order": ([field("a", "int"), field("b", "int")], [field("b", "int"), field("a", "int")]),
    "one more": ([field("a", "int")], [field("a", "int"), field("b", "int")]),
    "type": ([field("a", "int")], [field("a", "long")]),
    "text and bytes": ([field("a", "string")], [field("a", "bytes")]),
    "nullability": ([field("a", "int")], [field("a", ["null", "int"])]),
    "logical type": ([field("a", "int")], [field("a", logical("int", "date"))]),
    "unit": (
        [field("a", logical("long", "timestamp-millis"))],
        [field("a", logical("long", "timestamp-micros"))],
    ),
    "local time": (
        [field("a", logical("long", "timestamp-micros"))],
        [field("a", logical("long", "local-timestamp-micros"))],
    ),
    "uuid": ([field("a", "string")], [field("a", logical("string", "uuid"))]),
    "precision": ([field("a", decimal(10, 2))], [field("a", decimal(11, 2))]),
    "scale": ([field("a", decimal(10, 2))], [field("a", decimal(10, 3))]),
    "decimal as fixed": (
        [field("a", decimal(10, 2))],
        [field("a", fixed(5, logicalType="decimal", precision=10, scale=2))],
    ),
    "precision of fixed": (
        [field("a", fixed(5, logicalType="decimal", precision=9, scale=2))],
        [field("a", fixed(5, logicalType="decimal", precision=10, scale=2))],
    ),
    "default": ([field("a", "int", default=1)], [field("a", "int", default=2)]),
    "no default": ([field("a", "int", default=1)], [field("a", "int")]),
    "null default": ([field("a", ["null", "int"], default=None)], [field("a", ["null", "int"])]),
    "default true and 1": ([field("a", "int", default=1)], [field("a", "int", default=True)]),
    "sort attribute": ([field("a", "int")], [field("a", "int", order="ignore")]),
    "enum symbols": ([field("a", enum(["X"]))], [field("a", enum(["X", "Y"]))]),
    "enum symbols' order": ([field("a", enum(["X", "Y"]))], [field("a", enum(["Y", "X"]))]),
    "enum name": ([field("a", enum(["X"]))], [field("a", enum(["X"], name="e2"))]),
    "fixed size": ([field("a", fixed(4))], [field("a", fixed(5))]),
    "fixed name": ([field("a", fixed(4))], [field("a", fixed(4, name="f2"))]),
    "union member": ([field("a", ["null", "int"])], [field("a", ["null", "int", "string"])]),
    "array element": (
        [field("a", {"type": "array", "items": "int"})],
        [field("a", {"type": "array", "items": "long"})],
    ),
    "map value": (
        [field("a", {"type": "map", "values": "int"})],
        [field("a", {"type": "map", "values": ["null", "int"]})],
    ),
    "array and map": (
        [field("a", {"type": "array", "items": "int"})],
        [field("a", {"type": "map", "values": "int"})],
    ),
}
EQUAL = {
    "namespace": ([field("a", enum(["X"], namespace="p"))], [field("a", enum(["X"], namespace="q"))]),
    "doc": ([field("a", "int")], [field("a", "int", doc="text")]),
    "doc of a type": ([field("a", enum(["X"]))], [field("a", enum(["X"], doc="text"))]),
    "aliases": ([field("a", "int")], [field("a", "int", aliases=["b"])]),
    "property": ([field("a", "int")], [field("a", {"type": "int", "custom": 1})]),
    "property of a field": ([field("a", "int")], [field("a", "int", custom=[1])]),
    "Java's string": ([field("a", "string")], [field("a", {"type": "string", "avro.java.string": "String"})]),
    "wrapped type": ([field("a", "int")], [field("a", {"type": {"type": "int"}})]),
    "unknown logical type": ([field("a", "int")], [field("a", logical("int", "mood"))]),
    "logical type of another type": ([field("a", "long")], [field("a", logical("long", "date"))]),
    "union order": ([field("a", ["null", "int"])], [field("a", ["int", "null"])]),
    "scale 0": (
        [field("a", decimal(10, 0))],
        [field("a", {"type": "bytes", "logicalType": "decimal", "precision": 10})],
    ),
    "default as double": ([field("a", "double", default=0)], [field("a", "double", default=0.0)]),
    "sort attribute as is": ([field("a", "int")], [field("a", "int", order="ascending")]),
    "record name": (
        [field("a", record(field("x", "int"), name="p"))],
        [field("a", record(field("x", "int"), name="q"))],
    ),
    "type given again by its name": (
        [field("a", fixed(4, name="m")), field("b", fixed(4, name="m"))],
        [field("a", fixed(4, name="m")), field("b", "m")],
    ),
    "full name": (
        [field("a", fixed(4, name="n", namespace="s")), field("b", fixed(4, name="n", namespace="s"))],
        [field("a", fixed(4, name="s.n")), field("b", "s.n")],
    ),
}
PLACES = {
    "top": lambda fields: record(*fields),
    "struct": lambda fields: record(field("s", record(*fields, name="inner"))),
    "nullable struct": lambda fields: record(field("s", ["null", record(*fields, name="inner")])),
    "array": lambda fields: record(field("s", {"type": "array", "items": record(*fields, name="inner")})),
    "map": lambda fields: record(
        field("before", "int"), field("s", {"type": "map", "values": record(*fields, name="inner")})
    ),
}
CASES = [
    pytest.param(place, pair, expected, id=f"{rule}-{where}")
    for expected, rules in ((False, DIFFERENT), (True, EQUAL))
    for rule, pair in rules.items()
    for where, place in PLACES.items()
]


def test_there_are_two_hundred_pairs():
    assert len(CASES) >= 200


@pytest.mark.parametrize(("place", "pair", "expected"), CASES)
def test_rule(place, pair, expected):
    left, right = (place(copy.deepcopy(fields)) for fields in pair)
    assert same_schema(left, right) is expected
    assert same_schema(json.dumps(right), left) is expected
    assert same_schema(left, json.dumps(left))


def test_meta_columns_do_not_count():
    plain = record(field("a", "int"))
    assert same_schema(plain, record(field("_hoodie_commit_time", ["null", "string"]), field("a", "int")))
    assert [
        f["name"] for f in expand(record(field("_hoodie_file_name", "string"), field("a", "int")))["fields"]
    ] == ["a"]


def test_recursive_types_are_compared_by_shape():
    def tree(name, value="int"):
        return record(field("v", value), field("next", ["null", name]), name=name)

    assert same_schema(tree("t"), tree("u"))
    assert not same_schema(tree("t"), tree("t", "long"))


@pytest.mark.parametrize("schema", ["", "{", '{"type": "record"}', '"nothing"', "[3]", '{"a": 1}'])
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(CorruptTable):
        canonical(schema)


def test_schema_that_nests_too_deep_is_refused():
    avro = "int"
    for _ in range(70):
        avro = {"type": "array", "items": avro}
    with pytest.raises(UnsupportedTable):
        canonical(record(field("a", avro)))


@pytest.mark.parametrize("schema", ["null", '"null"', '{"type": "null"}', {"type": "null"}])
def test_null_schema(schema):
    assert is_null_schema(schema)
    assert not is_null_schema('["null", "int"]')
