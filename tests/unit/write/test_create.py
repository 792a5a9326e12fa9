from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from conftest_write import OPTIONS, paths_of

import drawstring
from drawstring.config.properties import parse_properties
from drawstring.config.table_options import TableOptions
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.storage.table_properties import PROPERTIES, read_table_config
from drawstring.write.create import create_table
from drawstring.write.table_facts import load_state, table_schema

AS_HUDI_WRITES = {
    "hoodie.table.keygenerator.type": "SIMPLE",
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.history.path": "history",
    "hoodie.table.checksum": "350432729",
    "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.table.format": "native",
    "hoodie.table.partition_extractor_class": "org.apache.hudi.hive.SinglePartPartitionValueExtractor",
    "hoodie.datasource.write.hive_style_partitioning": "false",
    "hoodie.datasource.write.partitionpath.urlencode": "false",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.table.version": "9",
    "hoodie.table.initial.version": "9",
    "hoodie.table.partition.fields": "p",
    "hoodie.table.cdc.enabled": "false",
    "hoodie.archivelog.folder": "history",
    "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.table.timeline.timezone": "LOCAL",
    "hoodie.table.name": "v9_cow_no_metadata",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.timeline.path": "timeline",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.populate.meta.fields": "true",
    "hoodie.table.base.file.format": "PARQUET",
}


def test_settings_are_those_that_hudi_writes(storage):
    options = TableOptions(
        name="v9_cow_no_metadata",
        record_key_fields=("id",),
        partition_fields=("p",),
        ordering_fields=("ts",),
    )
    create_table(storage, options)
    assert parse_properties(storage.read(PROPERTIES), source=PROPERTIES) == AS_HUDI_WRITES


def test_table_made_with_a_schema_has_it_before_any_commit(storage):
    schema = pa.schema([("id", pa.int32()), ("d", pa.decimal128(10, 2))])
    create_table(storage, OPTIONS, schema=schema)
    assert table_schema(load_state(storage)) == schema


@pytest.mark.parametrize(
    ("changes", "generator"),
    [
        ({"partition_fields": None}, "NON_PARTITION"),
        ({}, "SIMPLE"),
        ({"record_key_fields": ("a", "b")}, "COMPLEX"),
        ({"record_key_fields": None}, "SIMPLE"),
        ({"partition_fields": ("a", "b")}, "COMPLEX"),
    ],
)
def test_key_generator_is_told_from_the_fields(storage, changes, generator):
    create_table(storage, dataclasses.replace(OPTIONS, **changes))
    assert read_table_config(storage).key_generator == generator


@pytest.mark.parametrize(
    ("changes", "error", "condition"),
    [
        ({"version": 8}, InvalidOption, "TABLE_VERSION_NOT_CREATED"),
        ({"name": ""}, InvalidOption, "TABLE_NAME_MISSING"),
        ({"key_generator": "NON_PARTITION"}, InvalidOption, "KEY_GENERATOR_MISMATCH"),
        ({"partition_fields": ("ts:WEEKLY",)}, InvalidOption, "KEY_GENERATOR_MISMATCH"),
        ({"partition_fields": ("ts:TIMESTAMP", "p")}, InvalidOption, "KEY_GENERATOR_MISMATCH"),
        ({"partition_fields": ("ts:TIMESTAMP",)}, InvalidOption, "TIME_SETTING_MISSING"),
        ({"payload_class": "com.example.Mine"}, InvalidOption, "PAYLOAD_NOT_SUPPORTED"),
    ],
)
def test_bad_settings_make_nothing(storage, changes, error, condition):
    with pytest.raises(error) as caught:
        create_table(storage, dataclasses.replace(OPTIONS, **changes))
    assert caught.value.condition == condition
    assert not storage.exists(".hoodie")


def test_second_table_in_one_place_is_refused(table):
    before = paths_of(table)
    with pytest.raises(InvalidInput) as caught:
        create_table(table, OPTIONS)
    assert caught.value.condition == "TABLE_EXISTS"
    assert paths_of(table) == before


@pytest.mark.parametrize("key", ["recordkey.field", "partitionpath.field", "precombine.field"])
def test_table_whose_settings_name_a_column_that_is_not_there_is_not_made(tmp_path, key):
    options = {"hoodie.table.name": "t", f"hoodie.datasource.write.{key}": "a.nope"}
    schema = pa.schema([("a", pa.struct([("b", pa.string())]))])
    with pytest.raises(InvalidInput) as caught:
        drawstring.create_table(tmp_path / "t", schema, options=options)
    assert (caught.value.condition, caught.value.fields["column"]) == ("COLUMN_NOT_FOUND", "a.nope")
    assert not (tmp_path / "t" / ".hoodie" / "hoodie.properties").exists()
