"""Arrow schemas and Spark's, both ways."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.errors import IncompatibleSchema
from drawstring.spark.types import arrow_schema, spark_schema

SCHEMA = pa.schema(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(20, 4)),
        ("s", pa.string()),
        ("bin", pa.binary()),
        ("dt", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("ntz", pa.timestamp("us")),
        ("a", pa.list_(pa.field("element", pa.struct([("x", pa.int32())])))),
        ("m", pa.map_(pa.string(), pa.list_(pa.field("element", pa.int64())))),
    ]
)


def test_a_schema_survives_the_way_there_and_back():
    assert arrow_schema(spark_schema(SCHEMA)).equals(SCHEMA)


def test_a_type_that_spark_lacks_is_refused_by_name():
    with pytest.raises(IncompatibleSchema, match="duration"):
        spark_schema(pa.schema([("x", pa.duration("s"))]))
