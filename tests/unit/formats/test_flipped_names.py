from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from drawstring.errors import CorruptTable
from drawstring.formats.avro import block_schema
from drawstring.formats.parquet import ParquetSource
from drawstring.model.flipped_names import flipped_name
from drawstring.schema.meta_columns import META_COLUMNS


def test_a_name_that_lost_one_character_to_another_is_found():
    assert flipped_name(["id", "nama"], ["id", "name"]) == "nama"
    assert flipped_name(["id", "name"], ["id", "name"]) is None
    assert flipped_name(["id", "name", "nama"], ["id", "name"]) is None
    assert flipped_name(["id", "title"], ["id", "name"]) is None
    assert flipped_name(["id"], ["id", "name"]) is None


def flips_of(name: str):
    for position, character in enumerate(name):
        for bit in range(7):
            yield f"{name[:position]}{chr(ord(character) ^ (1 << bit))}{name[position + 1 :]}"


@pytest.mark.parametrize("name", META_COLUMNS)
def test_every_flipped_bit_in_a_meta_column_of_a_block_is_damage(name):
    for flipped in flips_of(name):
        names = [flipped if known == name else known for known in META_COLUMNS]
        fields = [{"name": each, "type": ["null", "string"]} for each in (*names, "id")]
        with pytest.raises(CorruptTable, match="schema"):
            block_schema(json.dumps({"type": "record", "name": "r", "fields": fields}))


def parquet(found: list[str], told: list[str]) -> ParquetSource:
    avro = {"type": "record", "name": "r", "fields": [{"name": name, "type": "long"} for name in told]}
    table = pa.table({name: [1] for name in found})
    sink = pa.BufferOutputStream()
    metadata = {"parquet.avro.schema": json.dumps(avro, separators=(",", ":"))}
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return ParquetSource(pa.BufferReader(sink.getvalue()), "f.parquet")


def test_a_footer_whose_names_differ_by_a_bit_is_damage():
    for flipped in flips_of("fare"):
        with pytest.raises(CorruptTable, match="damaged name"):
            parquet(["id", flipped], ["id", "fare"])


@pytest.mark.parametrize(
    ("found", "told"),
    [(["id", "ä"], ["id", "ä"]), (["id"], ["id", "fare"]), (["id", "x"], []), (["a"], ["a"])],
)
def test_footers_that_agree_or_say_nothing_are_no_damage(found, told):
    with parquet(found, told) as source:
        assert source.schema.names == found
