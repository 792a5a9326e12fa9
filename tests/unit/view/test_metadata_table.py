import io
import json
import logging
import uuid

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.config.properties import format_properties
from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.formats.hfile_writer import write_hfile
from drawstring.model.instant import Action, Instant, State
from drawstring.storage.memory import MemoryStorage
from drawstring.timeline.timeline import Timeline
from drawstring.view.metadata_records import decode_files, decode_record
from drawstring.view.metadata_table import MetadataTable, open_metadata_table

INFO = {
    "type": "record",
    "name": "HoodieMetadataFileInfo",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
META = ["_hoodie_commit_time", "_hoodie_file_name"]
FIELDS = [
    *({"name": name, "type": ["null", "string"], "default": None} for name in META),
    {"name": "key", "type": {"type": "string", "avro.java.string": "String"}},
    {"name": "type", "type": "int"},
    {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": INFO}], "default": None},
]
SCHEMA = json.dumps({"type": "record", "name": "HoodieMetadataRecord", "fields": FIELDS})
OTHER = json.dumps(
    {"type": "record", "name": "R", "fields": [{"name": "n", "type": "double", "default": 0.5}, *FIELDS]}
)

T1, T2 = "20240101000000000", "20240102000000000"


def encode(files, schema=SCHEMA, **more):
    infos = {name: {"size": size or 0, "isDeleted": size is None} for name, size in files.items()}
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out,
        fastavro.parse_schema(json.loads(schema)),
        {"key": "", "type": 2, "filesystemMetadata": infos, **more},
    )
    return out.getvalue()


def file_name(instant):
    return f"{uuid.uuid4()}-0_0-1-2_{instant}.parquet"


@pytest.fixture
def storage():
    return MemoryStorage(f"memory://{uuid.uuid4()}")


def config(**properties):
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "9",
            "hoodie.timeline.layout.version": "2",
            "hoodie.table.metadata.partitions": "files",
            **properties,
        }
    )


def completed(time, action=Action.COMMIT):
    return Instant(time, action, State.COMPLETED, time, f"{time}_{time}.{action.value}")


def write_metadata(storage, entries, instants=("00000000000000000", T1)):
    root = ".hoodie/metadata"
    properties = {
        "hoodie.table.name": "t_metadata",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "9",
        "hoodie.timeline.layout.version": "2",
    }
    storage.write(f"{root}/.hoodie/hoodie.properties", format_properties(properties, comment="x"))
    for instant in instants:
        storage.write(f"{root}/.hoodie/timeline/{instant}_{max(instant, T1)}.deltacommit", b"x")
    content = write_hfile(sorted((key.encode(), value) for key, value in entries.items()), schema=SCHEMA)
    storage.write(f"{root}/files/files-0000-0_0-0-0_{instants[-1]}.hfile", content)


def test_partitions_and_files_come_from_the_files_index(storage):
    name = file_name(T1)
    entries = {
        "__all_partitions__": encode({"p=a": 0, "gone": None}),
        "p=a": encode({name: 7, "deleted": None}),
    }
    write_metadata(storage, entries)
    table = open_metadata_table(storage, config(), Timeline.of([completed(T1)]))
    assert table.partitions() == ["p=a"]
    assert table.files("p=a") == [(name, 7)]
    assert table.files("elsewhere") == []
    assert table.all_files() == {"p=a": [(name, 7)]}


def test_an_unpartitioned_table_is_listed_under_a_dot(storage):
    write_metadata(storage, {"__all_partitions__": encode({".": 0}), ".": encode({"f": 7})})
    table = open_metadata_table(storage, config(), Timeline.of([completed(T1)]))
    assert table.all_files() == {"": [("f", 7)]}


def test_a_write_that_the_metadata_table_lacks_makes_it_untrusted(storage, caplog):
    write_metadata(storage, {"__all_partitions__": encode({})})
    timeline = Timeline.of([completed(T1), completed(T2)])
    with caplog.at_level(logging.WARNING):
        assert open_metadata_table(storage, config(), timeline) is None
    assert T2 in caplog.text


def test_a_metadata_table_that_was_just_filled_covers_what_completed_before(storage):
    write_metadata(storage, {"__all_partitions__": encode({})}, instants=("00000000000000000",))
    assert open_metadata_table(storage, config(), Timeline.of([completed(T1)])) is not None
    assert open_metadata_table(storage, config(), Timeline.of([completed(T2)])) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: s.delete(".hoodie/metadata", recursive=True),
        lambda s: s.delete(".hoodie/metadata/files", recursive=True),
        lambda s: s.write(f".hoodie/metadata/files/files-0000-0_0-0-0_{T1}.hfile", b"damaged"),
    ],
)
def test_a_damaged_metadata_table_is_not_used(storage, spoil, caplog):
    write_metadata(storage, {"__all_partitions__": encode({})})
    spoil(storage)
    with caplog.at_level(logging.WARNING):
        assert open_metadata_table(storage, config(), Timeline.of([completed(T1)])) is None
    assert "listed instead" in caplog.text


def test_a_table_without_the_files_index_has_no_metadata_table(storage):
    assert (
        open_metadata_table(storage, config(**{"hoodie.table.metadata.partitions": ""}), Timeline()) is None
    )
    assert MetadataTable(storage, config(), Timeline()).indexes == ("files",)


names = st.text(max_size=20)
maps = st.dictionaries(names, st.none() | st.integers(0, 2**62), max_size=20)


@given(maps, names, st.sampled_from([SCHEMA, OTHER]))
def test_the_hand_written_decoder_agrees_with_avro(files, meta, schema):
    value = memoryview(encode(files, schema, **{META[1]: meta}))
    assert decode_files(value, schema) == files
    assert len(decode_record(value, schema)["filesystemMetadata"]) == len(files)


def test_records_without_a_map_and_maps_in_sized_blocks_are_decoded():
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(SCHEMA)), {"key": "k", "type": 1})
    assert decode_files(memoryview(out.getvalue()), SCHEMA) == {}
    entry = bytes([2]) + b"a" + bytes([14, 0])
    sized = bytes([0, 0, 0, 4, 2, 1]) + bytes([len(entry) * 2]) + entry + bytes([0])
    assert decode_files(memoryview(sized), SCHEMA) == {"a": 7}


@given(maps, st.data())
def test_cut_records_are_corrupt(files, data):
    value = encode(files)
    cut = data.draw(st.integers(0, len(value) - 1))
    for decode in (decode_files, decode_record):
        with pytest.raises(CorruptTable):
            decode(memoryview(value[:cut]), SCHEMA)
