"""Timelines that lack something or hold what nobody knows: told by name, never guessed."""

from __future__ import annotations

import io
import json
import zlib

import fastavro
import pytest

from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats import avro_container
from drawstring.formats.avro_native import varint
from drawstring.storage import MemoryStorage
from drawstring.timeline.commit_metadata import parse_commit_metadata
from drawstring.timeline.reader import TimelineReader

T1, T2 = "20260101000000001", "20260101000000002"
FOLDER = ".hoodie/timeline"
TEXT = {"type": "record", "name": "r", "fields": [{"name": "operationType", "type": "string"}]}


@pytest.fixture
def reader(request):
    config = TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9"})
    return TimelineReader(MemoryStorage(f"memory://{request.node.name}"), config)


def test_an_action_of_a_newer_writer_is_refused(reader):
    reader.storage.write(f"{FOLDER}/{T1}_{T2}.teleport", b"")
    with pytest.raises(UnsupportedTable, match="teleport") as caught:
        reader.load()
    assert caught.value.condition == "UNKNOWN_ACTION"


def test_a_damaged_name_of_the_timelines_folder_does_not_pass_for_an_empty_table(reader):
    properties = {**reader.config.properties, "hoodie.timeline.path": "timelinE"}
    other = TimelineReader(reader.storage, TableConfig.from_properties(properties))
    assert other.load().ascending_instants == ()
    reader.storage.write(f"{FOLDER}/{T1}_{T2}.commit", b"")
    with pytest.raises(CorruptTable, match=r"hoodie\.timeline\.path"):
        other.load()


def test_an_instant_that_vanishes_is_named(reader):
    reader.storage.write(f"{FOLDER}/{T1}_{T2}.commit", b"")
    instant = reader.load().ascending_instants[0]
    reader.storage.delete(f"{FOLDER}/{instant.file_name}")
    with pytest.raises(CorruptTable, match=T1) as caught:
        reader.commit_metadata(instant)
    assert caught.value.condition == "INSTANT_MISSING"


def test_a_compaction_without_plan_is_named(reader):
    reader.storage.write(f"{FOLDER}/{T1}.compaction.inflight", b"")
    with pytest.raises(CorruptTable, match=r"compaction\.requested") as caught:
        reader.compaction_plan(reader.load().pending_compactions[0])
    assert caught.value.fields["instant"] == T1


def container(schema, rows, codec="null") -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, schema, rows, codec=codec)
    return stream.getvalue()


def header(schema, codec="null") -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [], codec=codec)
    return stream.getvalue()


def with_block(start: bytes, count: int, data: bytes) -> bytes:
    return start + varint(count) + varint(len(data)) + data + start[-16:]


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_ordinary_containers_are_read(codec):
    found = parse_commit_metadata(container(TEXT, [{"operationType": "UPSERT"}], codec), source="s")
    assert found.operation == "UPSERT"
    assert parse_commit_metadata(header(TEXT, codec), source="s").stats == ()


def test_a_decompression_bomb_is_stopped_at_the_limit(monkeypatch):
    monkeypatch.setattr(avro_container, "MAX_BLOCK_BYTES", 1 << 20)
    packer = zlib.compressobj(9, wbits=-15)
    bomb = packer.compress(varint(8 << 20) + bytes(8 << 20)) + packer.flush()
    assert len(bomb) < 20_000
    with pytest.raises(CorruptTable, match="at most 1048576"):
        parse_commit_metadata(with_block(header(TEXT, "deflate"), 1, bomb), source="s")


@pytest.mark.parametrize(
    ("count", "data"),
    [
        (1, varint(1 << 60) + b"x"),
        (1, varint(-5) + b"x"),
        (1 << 60, varint(1) + b"x"),
        (-1, varint(1) + b"x"),
        (1, b"\xff" * 12),
    ],
)
def test_impossible_counts_and_lengths_are_corruption(count, data):
    with pytest.raises(CorruptTable) as caught:
        parse_commit_metadata(with_block(header(TEXT), count, data), source="the/instant")
    assert caught.value.condition == "CORRUPT_INSTANT"
    assert "the/instant" in str(caught.value)


def test_a_block_beyond_the_end_is_corruption():
    with pytest.raises(CorruptTable, match="claims"):
        parse_commit_metadata(header(TEXT) + varint(1) + varint(1 << 40) + b"x", source="s")


@pytest.mark.parametrize("items", ["null", {"type": "record", "name": "e", "fields": []}])
def test_arrays_of_nothing_are_refused_before_they_are_counted(items):
    fields = [{"name": "operationType", "type": {"type": "array", "items": items}}]
    schema = {"type": "record", "name": "r", "fields": fields}
    with pytest.raises(UnsupportedTable) as caught:
        parse_commit_metadata(with_block(header(schema), 1, varint(1 << 60) + b"\0"), source="s")
    assert caught.value.condition == "EMPTY_ARRAY_ITEMS"


@pytest.mark.parametrize(
    "content",
    [
        b"\0",
        b"[]",
        b'"text"',
        b"{",
        b"[" * 100_000,
        json.dumps({"a": "b"}).encode()[:-1],
        b"Obj\x01 nonsense",
    ],
)
def test_what_is_no_record_is_corruption(content):
    with pytest.raises(CorruptTable) as caught:
        parse_commit_metadata(content, source="s")
    assert caught.value.condition == "CORRUPT_INSTANT"


@pytest.mark.parametrize(
    "record",
    [
        {"partitionToWriteStats": ["p"]},
        {"partitionToWriteStats": {"p": [5]}},
        {"partitionToWriteStats": {"p": 5}},
        {"extraMetadata": 3},
        {"partitionToReplaceFileIds": {"p": 5}},
    ],
)
def test_a_record_of_another_shape_is_corruption(record):
    with pytest.raises(CorruptTable, match="the/instant") as caught:
        parse_commit_metadata(json.dumps(record).encode(), source="the/instant")
    assert caught.value.condition == "CORRUPT_INSTANT"


STAT = {
    "fileId": "f-0",
    "path": "p/f-0_0-0-0_1.parquet",
    "partitionPath": "p",
    "numWrites": 3,
    "fileSizeInBytes": 9,
}
COMMIT = {
    "partitionToWriteStats": {"p": [STAT]},
    "extraMetadata": {"schema": "{}"},
    "operationType": "UPSERT",
}


@pytest.mark.parametrize("name", [*COMMIT, "partitionToReplaceFileIds", *STAT])
@pytest.mark.parametrize("bit", [0, 2, 4])
def test_a_flipped_bit_in_a_name_does_not_pass_for_a_commit_that_says_less(name, bit):
    content = json.dumps(COMMIT | {"partitionToReplaceFileIds": {}}).encode()
    assert parse_commit_metadata(content, source="s").stats[0].file_size == 9
    for position in range(len(name)):
        damaged = bytearray(content)
        damaged[content.index(f'"{name}"'.encode()) + 1 + position] ^= 1 << bit
        with pytest.raises(CorruptTable, match="the/instant"):
            parse_commit_metadata(bytes(damaged), source="the/instant")
