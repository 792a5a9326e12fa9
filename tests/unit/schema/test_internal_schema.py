import json

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable
from drawstring.model.read_task import ColumnMapping
from drawstring.schema.internal_schema import (
    column_mappings,
    parse_internal_schema,
    parse_schema_history,
    schema_history,
)
from drawstring.schema.table_schema import (
    canonical_type,
    internal_schema_from_extra_metadata,
    table_schema_from_avro,
    table_schema_from_file,
)


def schema(version, *fields):
    listed = [{"id": i, "name": n, "optional": True, "type": t} for i, n, t in fields]
    return {"max_column_id": 99, "version_id": version, "type": "record", "fields": listed}


def struct(*fields):
    return {
        "type": "record",
        "fields": [{"id": i, "name": n, "optional": True, "type": t} for i, n, t in fields],
    }


def array(element_id, element):
    return {"type": "array", "element_id": element_id, "element": element, "element_optional": True}


def map_of(value_id, value):
    return {
        "type": "map",
        "key-id": 90,
        "key": "string",
        "value-id": value_id,
        "value": value,
        "value_optional": False,
    }


def test_every_type_becomes_arrow():
    types = {
        "boolean": pa.bool_(),
        "long": pa.int64(),
        "decimal(10, 2)": pa.decimal128(10, 2),
        "decimal_fixed(5, 1)[3]": pa.decimal128(5, 1),
        "fixed[7]": pa.binary(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "local_timestamp_micros": pa.timestamp("us"),
        "uuid": pa.string(),
        "date": pa.date32(),
    }
    parsed = parse_internal_schema(schema(0, *((i, f"c{i}", name) for i, name in enumerate(types))))
    assert parsed.arrow_schema.types == list(types.values())
    nested = parse_internal_schema(schema(0, (1, "m", map_of(2, array(3, struct((4, "x", "int")))))))
    element = pa.field("element", pa.struct([pa.field("x", pa.int32())]))
    assert nested.arrow_schema.field("m").type == pa.map_(
        pa.string(), pa.field("value", pa.list_(element), nullable=False)
    )


def test_renames_follow_the_id_and_a_column_added_again_is_another_column():
    old = parse_internal_schema(
        schema(0, (1, "a", "int"), (2, "b", "int"), (3, "s", struct((4, "x", "int"))))
    )
    new = parse_internal_schema(
        schema(5, (2, "b2", "long"), (9, "a", "string"), (3, "s", struct((4, "x2", "int"), (5, "x", "int"))))
    )
    assert column_mappings(new, old) == (
        ColumnMapping("b2", "b"),
        ColumnMapping("a", None),
        ColumnMapping("s", "s", (ColumnMapping("x2", "x"), ColumnMapping("x", None))),
    )


def test_fields_inside_lists_and_maps_are_mapped():
    old = parse_internal_schema(
        schema(0, (1, "l", array(2, struct((3, "x", "int")))), (4, "m", map_of(5, struct((6, "y", "int")))))
    )
    new = parse_internal_schema(
        schema(1, (1, "l", array(2, struct((3, "z", "int")))), (4, "m", map_of(5, struct((6, "w", "int")))))
    )
    lists, maps = column_mappings(new, old)
    assert lists.children == (ColumnMapping("element", "element", (ColumnMapping("z", "x"),)),)
    assert maps.children[1] == ColumnMapping("value", "value", (ColumnMapping("w", "y"),))


def test_a_file_has_the_newest_version_not_after_its_instant():
    history = parse_schema_history(
        json.dumps({"schemas": [schema(v, (1, "a", "int")) for v in (30, 20, 0)]}).encode()
    )
    assert [history.at(t).version_id for t in ("10", "20", "25", "30", "99")] == [0, 20, 20, 30, 30]
    assert history.latest.version_id == 30
    assert history.mappings_from("31", to=history.latest) is None
    assert history.mappings_from("21", to=history.latest) == (ColumnMapping("a", "a"),)


def test_no_schemas_are_no_history():
    assert parse_schema_history('{"schemas": []}') is None
    assert schema_history([]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schemas": 3}',
        '{"schemas": [{"fields": [{}]}]}',
        '{"schemas": [3]}',
        b'{"schemas": [\xfb]}',
    ],
)
def test_what_is_no_history_is_corrupt(text):
    with pytest.raises(CorruptTable):
        parse_schema_history(text)


def test_a_table_schema_has_the_meta_columns_once_and_extra_metadata_may_have_ids():
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "_hoodie_record_key", "type": "string"}, {"name": "a", "type": "int"}],
    }
    found = table_schema_from_avro(json.dumps(avro))
    assert found.names == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "a",
    ]
    assert internal_schema_from_extra_metadata({}) is None
    assert (
        internal_schema_from_extra_metadata(
            {"latest_schema": json.dumps(schema(7, (1, "a", "int")))}
        ).version_id
        == 7
    )


def test_a_file_schema_is_put_into_canonical_types():
    file_schema = pa.schema(
        [
            ("a", pa.timestamp("ns")),
            ("l", pa.large_list(pa.field("array", pa.large_string()))),
            ("f", pa.binary(4)),
        ]
    )
    table_schema = table_schema_from_file(file_schema)
    assert table_schema.field("a").type == pa.timestamp("us", tz="UTC")
    assert table_schema.field("l").type == pa.list_(pa.field("element", pa.string()))
    assert canonical_type(pa.binary(4)) == pa.binary()
    assert canonical_type(pa.map_(pa.string(), pa.int16())).item_type == pa.int32()
