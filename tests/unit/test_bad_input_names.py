"""Hostile column names, record keys, table names and conditions: data to the last byte, never code."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring import open_table
from drawstring.config.table_options import TableOptions
from drawstring.errors import IncompatibleSchema, InvalidInput, UnsupportedTable
from drawstring.merge.keys import record_keys
from drawstring.model.read_task import KeySpec
from drawstring.predicates.ast import Column, Comparison, Literal
from drawstring.predicates.parse import parse
from drawstring.reading import read_task
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.schema.meta_columns import META_COLUMNS
from drawstring.storage import MemoryStorage
from drawstring.write.create import create_table
from drawstring.write.evolution import incoming_schema
from drawstring.write.key_generator import missing_key
from drawstring.write.table_names import avro_names
from tests.unit.merge.slices import Slice

PAYLOADS = [
    "'; DROP TABLE t; --", "' OR '1'='1", "\" OR \"1\"=\"1", "1; SELECT * FROM secrets", "') UNION SELECT 1 --",
    "`; DROP TABLE t; --", "a` OR `b", "\\'; DROP TABLE t; --", "/* */", "--", "#", "${spark.conf}", "{{7*7}}",
    "$(rm -rf /)", "`id`", "%00", "\x00", "\r\nSET x=1", "a.b.c", "../../etc/passwd", "file:///etc/passwd",
    "<script>", "{\"$ne\": null}", "parquet.`/etc/passwd`", "java_method('java.lang.Runtime', 'exit')",
]  # fmt: skip


def stored(schema: pa.Schema) -> dict:
    """What a write checks before it touches anything."""
    return avro_schema_from_arrow(incoming_schema(schema), name="r", namespace="n")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_in_quotes_is_a_value(payload):
    quoted = payload.replace("\\", "\\\\").replace("'", "''")
    assert parse(f"a = '{quoted}'") == Comparison("=", Column(("a",)), Literal(payload))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_behind_a_condition_is_refused(payload):
    with pytest.raises(InvalidInput):
        parse(f"a = 1 {payload}")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_as_a_column_name_cannot_be_stored(payload):
    with pytest.raises(IncompatibleSchema) as caught:
        stored(pa.schema([("id", pa.int32()), (payload, pa.int32())]))
    assert caught.value.condition == "INVALID_COLUMN_NAME"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_as_the_name_of_a_table_stays_text(payload, request):
    storage = MemoryStorage(f"memory://{request.node.name.encode().hex()}")
    create_table(storage, TableOptions(name=payload, record_key_fields=("id",)))
    assert open_table(storage.root).name == payload
    assert all(part.replace("_", "a").replace(".", "a").isalnum() for part in avro_names(payload))


@pytest.mark.parametrize("name", ["a.b", "a`b", "a'b", 'a"b', "1a", "a b", "", "é", "a-b", "a\0"])
@pytest.mark.parametrize("level", ["top", "nested"])
def test_column_names_that_cannot_be_stored_are_refused_before_rows_are_written(name, level):
    field = pa.field(name, pa.int32())
    schema = pa.schema([field if level == "top" else pa.field("s", pa.list_(pa.struct([field])))])
    with pytest.raises(IncompatibleSchema) as caught:
        stored(schema)
    assert caught.value.fields["column"] == name


@pytest.mark.parametrize("name", [*META_COLUMNS, "_hoodie_operation"])
def test_meta_columns_of_the_rows_are_not_the_users(name):
    assert incoming_schema(pa.schema([(name, pa.int32()), ("a", pa.int32())])).names == ["a"]
    with pytest.raises(IncompatibleSchema) as caught:
        incoming_schema(pa.schema([(name.upper(), pa.int32()), ("a", pa.int32())]))
    assert caught.value.condition == "DUPLICATE_COLUMN"


@pytest.mark.parametrize("twin", ["A", "a"])
def test_fields_of_a_struct_that_differ_only_in_case_are_refused(twin):
    struct = pa.struct([pa.field("a", pa.int32()), pa.field(twin, pa.int32())])
    for kind in (struct, pa.list_(struct), pa.map_(pa.string(), struct)):
        with pytest.raises(IncompatibleSchema) as caught:
            incoming_schema(pa.schema([("s", kind)]))
        assert caught.value.condition == "DUPLICATE_COLUMN"


def test_rows_that_nest_too_deep_are_refused():
    kind = pa.int32()
    for _ in range(100):
        kind = pa.struct([pa.field("a", kind)])
    with pytest.raises(UnsupportedTable) as caught:
        stored(pa.schema([("a", kind)]))
    assert caught.value.condition == "SCHEMA_TOO_DEEP"


def test_rows_of_ten_thousand_columns_are_accepted():
    assert len(stored(pa.schema([(f"c{i}", pa.string()) for i in range(10_000)]))["fields"]) == 10_000


KEYS = [
    "",
    "a",
    " a",
    "a ",
    "A",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "a\0",
    "\0",
    "a,b:c",
    "a:1,b:2",
    "x" * (1 << 20),
]


@pytest.mark.parametrize("parquet", [False, True], ids=["avro", "parquet"])
def test_hostile_record_keys_are_compared_by_bytes(parquet):
    made = Slice().base([{"id": key, "v": 0, "ts": 0} for key in KEYS])
    for number, key in enumerate(KEYS, start=1):
        made.upsert([{"id": key, "v": number, "ts": number}], parquet=parquet)
    made.delete({"a\0": 99, "a ": 99})
    batches = read_task(made.task(), storage=made.storage, table_schema=made.schema, columns=["id", "v"])
    found = {row["id"]: row["v"] for batch in batches for row in batch.to_pylist()}
    expected = {key: number for number, key in enumerate(KEYS, start=1) if key not in ("a\0", "a ")}
    assert found == expected


@given(
    st.lists(
        st.tuples(st.integers(), st.integers()).map(lambda p: tuple(map(str, p))), unique=True, max_size=9
    )
)
def test_computed_keys_of_separator_free_values_differ(rows):
    batch = pa.table(
        {"a": [a for a, _ in rows], "b": [b for _, b in rows]}, pa.schema([("a", "string"), ("b", "string")])
    )
    keys = record_keys(batch, KeySpec(False, ("a", "b"), "COMPLEX"))
    assert len(set(keys.to_pylist())) == len(rows)


def test_null_and_empty_parts_of_a_key_are_told_apart():
    batch = pa.table({"a": ["x", "x"], "b": [None, ""]}, pa.schema([("a", "string"), ("b", "string")]))
    keys = record_keys(batch, KeySpec(False, ("a", "b"), "COMPLEX")).to_pylist()
    assert keys == ["a:x,b:__null__", "a:x,b:__empty__"]


def test_the_example_of_a_row_without_key_is_short():
    error = missing_key(("id",), {"id": None, **{f"c{i}": "x" * (1 << 20) for i in range(100)}})
    assert len(str(error)) < 2000
