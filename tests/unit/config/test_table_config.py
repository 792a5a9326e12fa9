from __future__ import annotations

import pytest

from drawstring.config.support import check_readable
from drawstring.config.table_config import PartitionField, TableConfig, verify_checksum
from drawstring.errors import CorruptTable, InvalidOption, UnsupportedTable

MODEL = "org.apache.hudi.common.model."
EVENT_STRATEGY = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"


def config(**properties: str) -> TableConfig:
    named = {key.replace("__", "."): value for key, value in properties.items()}
    return TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9", **named})


@pytest.mark.parametrize(
    ("version", "properties", "mode", "partial"),
    [
        (9, {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "COMMIT_TIME_ORDERING", None),
        (9, {}, "EVENT_TIME_ORDERING", None),
        (
            9,
            {"hoodie.table.precombine.field": "", "hoodie.table.ordering.fields": ""},
            "COMMIT_TIME_ORDERING",
            None,
        ),
        (8, {"hoodie.record.merge.strategy.id": EVENT_STRATEGY}, "EVENT_TIME_ORDERING", None),
        (
            8,
            {
                "hoodie.record.merge.mode": "CUSTOM",
                "hoodie.compaction.payload.class": MODEL + "OverwriteNonDefaultsWithLatestAvroPayload",
            },
            "COMMIT_TIME_ORDERING",
            "IGNORE_DEFAULTS",
        ),
        (
            6,
            {
                "hoodie.compaction.payload.class": MODEL + "OverwriteWithLatestAvroPayload",
                "hoodie.compaction.record.merger.strategy": EVENT_STRATEGY,
            },
            "COMMIT_TIME_ORDERING",
            None,
        ),
        (
            6,
            {"hoodie.compaction.payload.class": MODEL + "PartialUpdateAvroPayload"},
            "EVENT_TIME_ORDERING",
            "IGNORE_DEFAULTS",
        ),
        (6, {}, "EVENT_TIME_ORDERING", None),
    ],
)
def test_merge_mode_is_inferred(version, properties, mode, partial):
    given = {"hoodie.table.version": str(version), "hoodie.table.precombine.field": "ts", **properties}
    merge = TableConfig.from_properties({"hoodie.table.name": "t", **given}).merge
    assert (merge.mode, merge.partial_update_mode) == (mode, partial)


@pytest.mark.parametrize(
    ("payload", "unordered"),
    [
        (MODEL + "PartialUpdateAvroPayload", True),
        (MODEL + "debezium.PostgresDebeziumAvroPayload", True),
        (MODEL + "DefaultHoodieRecordPayload", False),
    ],
)
def test_payloads_that_hudi_runs_as_classes_let_every_delete_delete(payload, unordered):
    old = config(**{"hoodie.table.version": "6", "hoodie.compaction.payload.class": payload})
    assert old.merge.deletes_unordered is unordered
    newer = config(**{"hoodie.table.version": "8", "hoodie.compaction.payload.class": payload})
    assert newer.merge.deletes_unordered is False


def test_delete_marker_comes_from_merge_properties():
    prefix = "hoodie.record.merge.property.hoodie.payload.delete."
    merge = config(**{prefix + "field": "op", prefix + "marker": "D"}).merge
    assert (merge.delete_field, merge.delete_marker) == ("op", "D")


def test_partition_fields_lose_their_kinds():
    found = config(
        hoodie__table__partition__fields="p:SIMPLE,ts:timestamp", hoodie__table__keygenerator__type="CUSTOM"
    )
    assert found.partitioning == (PartitionField("p"), PartitionField("ts", derived=True, is_time=True))


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator"}, "COMPLEX"),
        ({"hoodie.table.keygenerator.type": "SIMPLE_AVRO"}, "SIMPLE"),
        ({"hoodie.table.partition.fields": "p", "hoodie.table.recordkey.fields": "a,b"}, "COMPLEX"),
        ({}, "NON_PARTITION"),
    ],
)
def test_key_generator_is_told_from_type_class_or_fields(properties, expected):
    assert config(**properties).key_generator == expected


@pytest.mark.parametrize(
    ("properties", "condition"),
    [
        ({"hoodie.table.version": "10"}, "TABLE_VERSION_TOO_NEW"),
        ({"hoodie.table.version": "1"}, "TABLE_VERSION_NOT_SUPPORTED"),
        ({"hoodie.timeline.layout.version": "3"}, "TIMELINE_LAYOUT_NOT_SUPPORTED"),
        ({"hoodie.table.base.file.format": "LANCE"}, "BASE_FILE_FORMAT_NOT_SUPPORTED"),
        (
            {"hoodie.table.type": "MERGE_ON_READ", "hoodie.compaction.payload.class": "com.acme.Payload"},
            "MERGER_NOT_SUPPORTED",
        ),
    ],
)
def test_unsupported_tables_are_refused_by_name(properties, condition):
    with pytest.raises(UnsupportedTable) as caught:
        check_readable(config(**properties), path="/t")
    assert caught.value.condition == condition


def test_malformed_values_and_missing_names():
    with pytest.raises(InvalidOption, match=r"hoodie\.table\.type.*COPY_ON_WRITE"):
        config(hoodie__table__type="COW")
    with pytest.raises(CorruptTable, match=r"hoodie\.table\.name"):
        TableConfig.from_properties({"hoodie.table.version": "9"})


def test_wrong_checksum_is_corruption():
    verify_checksum({"hoodie.table.name": "t"}, source="s")
    with pytest.raises(CorruptTable, match="checksum"):
        verify_checksum({"hoodie.table.name": "t", "hoodie.table.checksum": "1"}, source="s")
