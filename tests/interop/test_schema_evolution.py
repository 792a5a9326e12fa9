"""The schema that a table has after a write: drawstring's answer beside that of Apache Hudi's own rule."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from drawstring.errors import IncompatibleSchema
from drawstring.schema.avro_arrow import arrow_schema_from_avro, avro_schema_from_arrow
from drawstring.write.evolution import incoming_schema, reconcile
from tests.interop.hudi_jvm import hudi_jvm

pytestmark = pytest.mark.interop

I32, I64, TEXT = pa.int32(), pa.int64(), pa.string()
TYPES = {
    "int": I32,
    "long": I64,
    "float": pa.float32(),
    "double": pa.float64(),
    "string": TEXT,
    "bytes": pa.binary(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "local timestamp": pa.timestamp("us"),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(12,2)": pa.decimal128(12, 2),
    "decimal(12,4)": pa.decimal128(12, 4),
    "struct": pa.struct([("x", I32)]),
    "list": pa.list_(pa.field("element", I32)),
    "map": pa.map_(TEXT, I32),
}
# Hudi takes these, and fails or loses values that do not fit, or changes what a column means.
DECIMALS = ("decimal(10,2)", "decimal(12,2)", "decimal(12,4)")
REFUSED_HERE = {
    *((number, decimal) for number in ("int", "long", "float", "double", "string") for decimal in DECIMALS),
    ("string", "date"),
    ("timestamp", "long"),
    ("local timestamp", "long"),
}
TAKEN_HERE = {("int", "decimal(12,2)")}
PLACES = {
    "top": lambda arrow: arrow,
    "struct": lambda arrow: pa.struct([("x", arrow)]),
    "list": lambda arrow: pa.list_(pa.field("element", arrow)),
    "map": lambda arrow: pa.map_(TEXT, arrow),
}


@pytest.fixture(scope="module")
def jvm():
    with hudi_jvm() as found:
        yield found


def by_hudi(jvm, incoming, table, *, nulls=False):
    """The schema that Hudi would write with; None when it refuses."""
    from py4j.protocol import Py4JJavaError

    properties = jvm.org.apache.hudi.common.config.TypedProperties()
    properties.setProperty("hoodie.write.set.null.for.missing.columns", str(nulls).lower())

    def parsed(schema):
        avro = avro_schema_from_arrow(schema, name="t_record", namespace="hoodie.t")
        return jvm.org.apache.hudi.common.schema.HoodieSchema.parse(json.dumps(avro))

    option = jvm.org.apache.hudi.common.util.Option
    try:
        found = jvm.org.apache.hudi.HoodieSchemaUtils.deduceWriterSchema(
            parsed(incoming), option.of(parsed(table)), option.empty(), properties
        )
    except Py4JJavaError:
        return None
    return arrow_schema_from_avro(found.toString())


def by_us(incoming, table, *, nulls=False):
    try:
        return reconcile(incoming_schema(incoming), table, null_for_missing=nulls)
    except IncompatibleSchema:
        return None


@pytest.mark.parametrize("place", PLACES)
def test_types_widen_as_in_hudi(jvm, place):
    wrap, differences = PLACES[place], []
    for found, arrow in TYPES.items():
        for wanted, other in TYPES.items():
            incoming = pa.schema([("k", I32), ("c", wrap(arrow))])
            table = pa.schema([("k", I32), ("c", wrap(other))])
            hudi, ours = by_hudi(jvm, incoming, table), by_us(incoming, table)
            if (found, wanted) in REFUSED_HERE - TAKEN_HERE:
                assert ours is None, (found, wanted)
            elif hudi != ours:
                differences.append((found, wanted, hudi, ours))
    assert not differences


def columns(**fields):
    return pa.schema(list(fields.items()))


def struct(**fields):
    return pa.struct(list(fields.items()))


def listed(arrow):
    return pa.list_(pa.field("element", arrow))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    ("incoming", "table"),
    [
        (columns(k=I32), columns(k=I32, c=I32)),
        (columns(k=I32, s=struct(x=I32)), columns(k=I32, s=struct(x=I32, y=I32))),
        (columns(k=I32, s=listed(struct(x=I32))), columns(k=I32, s=listed(struct(x=I32, y=I32)))),
        (
            columns(k=I32, s=pa.map_(TEXT, struct(x=I32))),
            columns(k=I32, s=pa.map_(TEXT, struct(x=I32, y=I32))),
        ),
        (columns(k=I32, s=struct(x=I32, y=I32)), columns(k=I32, s=struct(x=I32))),
        (columns(k=I32, s=struct(x=I64, y=I32)), columns(k=I32, s=struct(x=I32))),
        (columns(k=I32, d=I32), columns(k=I32, c=I32)),
        (columns(c=I32, k=I32), columns(k=I32, c=I32)),
        (columns(k=I32, n=I32, c=I32), columns(k=I32, c=I32)),
        (columns(a=I64, b=I32), columns(a=I32, b=I64)),
        (columns(c=I32), pa.schema([pa.field("k", I32, nullable=False), pa.field("c", I32)])),
    ],
)
def test_columns_are_added_and_missing_ones_filled_as_in_hudi(jvm, incoming, table, nulls):
    assert by_us(incoming, table, nulls=nulls) == by_hudi(jvm, incoming, table, nulls=nulls)
