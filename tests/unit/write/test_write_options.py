from __future__ import annotations

import pytest

from drawstring.config.write_options import ALL, WriteOptions
from drawstring.errors import InvalidOption


def test_defaults_are_those_of_hudi_but_for_the_codec():
    options = WriteOptions.of({})
    assert (options.operation, options.combine_before_upsert, options.combine_before_insert) == (
        None,
        True,
        False,
    )
    assert (options.files.max_file_size, options.files.small_file_limit) == (125829120, 104857600)
    assert (options.files.codec, options.sort_mode) == ("zstd", "NONE")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.write.operation", "upset"),
        ("hoodie.datasource.write.table.type", "COW"),
        ("hoodie.datasource.write.keygenerator.class", "com.example.Mine"),
        ("hoodie.datasource.write.keygenerator.type", "HOODIE_TABLE_METADATA"),
        ("hoodie.parquet.compression.codec", "zip"),
        ("hoodie.parquet.max.file.size", "120MB"),
        ("hoodie.bulkinsert.sort.mode", "RANDOM"),
        ("hoodie.record.merge.mode", "NEWEST"),
        ("hoodie.index.type", "BTREE"),
        ("hoodie.datasource.write.hive_style_partitioning", "yes"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.populate.meta.fields", "false"),
        ("hoodie.clean.max.commits", "0"),
    ],
)
def test_unknown_value_names_key_value_and_what_is_allowed(key, value):
    with pytest.raises(InvalidOption) as caught:
        WriteOptions.of({key: value})
    assert key in str(caught.value)
    assert value in str(caught.value)
    assert caught.value.fields["value"] == value


def test_aliases_and_spark_lower_casing_are_understood():
    options = WriteOptions.of(
        {
            "hoodie.table.ordering.fields": "ts, seq",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
        }
    )
    assert options.table.ordering_fields == ("ts", "seq")
    assert options.table.key_generator == "COMPLEX"


def test_every_option_is_documented_once():
    assert len({option.key for option in ALL}) == len(ALL)
    assert all(option.doc.endswith(".") for option in ALL)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.datasource.write.insert.drop.duplicates", "true"),
        ("hoodie.datasource.insert.dup.policy", "drop"),
        ("hoodie.datasource.insert.dup.policy", "fail"),
        ("hoodie.datasource.write.drop.partition.columns", "true"),
        ("hoodie.populate.meta.fields", "false"),
    ],
)
def test_what_would_change_the_stored_rows_and_is_not_done_is_refused(key, value):
    with pytest.raises(InvalidOption, match=key) as caught:
        WriteOptions.of({key: value})
    assert caught.value.condition == "OPTION_NOT_SUPPORTED"
    assert caught.value.fields["value"] == value
