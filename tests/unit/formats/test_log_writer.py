"""Log blocks written and read back; fastavro and the framing made by hand in tests are the judges of the bytes."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from drawstring.errors import IncompatibleSchema
from drawstring.formats import avro_schemas
from drawstring.formats.avro import decode_blocks
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.formats.delete_blocks import decode_delete_block
from drawstring.formats.delete_encoder import encode_delete_block
from drawstring.formats.log_blocks import BlockType, Header, scan_log_file
from drawstring.formats.log_writer import (
    Positions,
    avro_block,
    data_headers,
    delete_block,
    delete_blocks,
    frame_block,
    hfile_block,
    parquet_block,
    rollback_block,
)
from drawstring.schema.avro_arrow import avro_schema_from_arrow
from drawstring.storage.memory import MemoryStorage
from tests.unit.merge.slices import framed

INSTANT, EARLIER = "20260101000000001", "20260101000000000"
SCHEMA = pa.schema([pa.field("id", pa.int32()), pa.field("s", pa.string())])
AVRO = json.dumps(avro_schema_from_arrow(SCHEMA, name="t_record", namespace="hoodie.t"))
ROWS = pa.record_batch({"id": pa.array([1, 2], pa.int32()), "s": ["a", None]}, schema=SCHEMA)


def scanned(*blocks):
    storage = MemoryStorage()
    storage.write("log", b"".join(blocks))
    scan = scan_log_file(storage, "log")
    assert not scan.corrupt_regions
    return scan.blocks


@given(
    st.sampled_from([BlockType.COMMAND, BlockType.DELETE, BlockType.AVRO_DATA]),
    st.dictionaries(st.sampled_from(list(Header)), st.text(max_size=10)),
    st.lists(st.binary(max_size=10)),
)
def test_blocks_are_framed_as_by_hand_and_read_back(kind, headers, pieces):
    block = frame_block(kind, headers, pieces)
    assert block == framed(b"".join(pieces), headers, kind)
    (found,) = scanned(block)
    assert (found.type, dict(found.headers)) == (kind, headers)
    assert bytes(found.content()) == b"".join(pieces)


def test_a_rollback_block_has_the_size_that_hudis_has():
    block = rollback_block(INSTANT, EARLIER)
    assert len(block) == 105
    (found,) = scanned(block)
    assert (found.type, found.instant_time) == (BlockType.COMMAND, INSTANT)
    assert found.target_instant_time == EARLIER


def test_records_come_back_from_every_kind_of_data_block():
    headers = data_headers(INSTANT, AVRO)
    encoder = AvroEncoder(AVRO)
    found = scanned(
        avro_block([ROWS, ROWS.slice(1)], headers, encoder),
        avro_block([ROWS], headers, encoder, kind=BlockType.CDC_DATA),
        parquet_block(pa.Table.from_batches([ROWS]), headers),
        hfile_block(b"an hfile", headers),
        avro_block([], headers, encoder),
    )
    assert [block.type for block in found] == [
        BlockType.AVRO_DATA,
        BlockType.CDC_DATA,
        BlockType.PARQUET_DATA,
        BlockType.HFILE_DATA,
        BlockType.AVRO_DATA,
    ]
    rows = [row for batch in decode_blocks(AVRO, [found[0].content()]) for row in batch.to_pylist()]
    assert rows == [*ROWS.to_pylist(), ROWS.to_pylist()[1]]
    assert pa.parquet.read_table(found[2].content()).to_pylist() == ROWS.to_pylist()
    assert all(block.instant_time == INSTANT and block.schema_json == AVRO for block in found)
    assert list(decode_blocks(AVRO, [found[4].content()])) == []


def test_positions_and_partial_blocks_are_told_in_headers():
    positions = Positions(EARLIER, [3, 2**40])
    headers = data_headers(INSTANT, AVRO, positions=positions, is_partial=True)
    (found,) = scanned(avro_block([ROWS], headers, AvroEncoder(AVRO)))
    assert found.is_partial
    assert found.headers[Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] == EARLIER
    bitmap = BitMap64.deserialize(base64.b64decode(found.headers[Header.RECORD_POSITIONS]))
    assert list(bitmap) == [3, 2**40]
    with pytest.raises(ValueError, match="ascend"):
        Positions(EARLIER, [3, 3])


def deletes_by_fastavro(content: bytes):
    stream = io.BytesIO(content[8:])
    found = fastavro.schemaless_reader(
        stream, avro_schemas.parsed_schema(avro_schemas.DELETES), None, return_record_name=True
    )
    assert stream.tell() == len(content) - 8 == int.from_bytes(content[4:8], "big")
    return [(row["recordKey"], row["partitionPath"], row["orderingVal"]) for row in found["deleteRecordList"]]


def short(ordering):
    name, held = ordering
    name = name.rsplit(".", 1)[-1]
    return (name, [short(v) for v in held["wrappedValues"]] if name == "ArrayWrapper" else held["value"])


def test_deletes_are_the_bytes_that_hudi_writes():
    content = encode_delete_block(pa.array(["TXN-002"]), "region=us")
    expected = bytes.fromhex("0000000300000018") + bytes.fromhex("02020e") + b"TXN-002"
    assert content == expected[:4] + len(content[8:]).to_bytes(4, "big") + expected[8:] + bytes.fromhex(
        "0212"
    ) + b"region=us" + bytes.fromhex("040000")
    assert encode_delete_block(pa.array([], pa.string()), "") == bytes.fromhex("000000030000000100")


@pytest.mark.parametrize(
    ("values", "wrapper", "stored"),
    [
        (pa.array([True]), "BooleanWrapper", True),
        (pa.array([7], pa.int16()), "IntWrapper", 7),
        (pa.array([0], pa.int64()), "LongWrapper", 0),
        (pa.array([1.5], pa.float32()), "FloatWrapper", 1.5),
        (pa.array([1.5]), "DoubleWrapper", 1.5),
        (pa.array([b"x"]), "BytesWrapper", b"x"),
        (pa.array(["x"]), "StringWrapper", "x"),
        (pa.array([dt.date(1970, 1, 3)]), "IntWrapper", 2),
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "DecimalWrapper", Decimal("1.25")),
        (pa.array([5], pa.timestamp("ms", tz="UTC")), "LongWrapper", 5000),
        (pa.array([5], pa.timestamp("us")), "LongWrapper", 5),
    ],
)
def test_ordering_values_lie_in_hudis_wrappers(values, wrapper, stored):
    content = encode_delete_block(pa.array(["k"]), pa.array(["p"]), [values])
    ((key, path, ordering),) = deletes_by_fastavro(content)
    assert (key, path, short(ordering)) == ("k", "p", (wrapper, stored))
    (batch,) = decode_delete_block(pa.py_buffer(content))
    assert batch.keys.to_pylist() == ["k"]
    assert len(batch.orderings) == 1


def test_deletes_without_an_ordering_value_carry_the_int_zero_in_their_place():
    keys = pa.array([f"k{i}" for i in range(3)])
    numbers = pa.array([5, None, 6], pa.int64())
    one = [
        short(ordering) for _, _, ordering in deletes_by_fastavro(encode_delete_block(keys, "p", [numbers]))
    ]
    assert one == [("LongWrapper", 5), ("IntWrapper", 0), ("LongWrapper", 6)]
    both = encode_delete_block(keys, "p", [numbers, pa.array(["a", "b", "c"])])
    assert [short(ordering) for _, _, ordering in deletes_by_fastavro(both)] == [
        ("ArrayWrapper", [("LongWrapper", 5), ("StringWrapper", "a")]),
        ("IntWrapper", 0),
        ("ArrayWrapper", [("LongWrapper", 6), ("StringWrapper", "c")]),
    ]
    none = encode_delete_block(keys, "p", [pa.array([None] * 3, pa.decimal128(5, 2))])
    assert {short(ordering) for _, _, ordering in deletes_by_fastavro(none)} == {("IntWrapper", 0)}


def test_deletes_with_and_without_ordering_values_get_blocks_of_their_own():
    keys, numbers = pa.array(["a", "b", "c"]), pa.array([5, None, 6], pa.int64())
    positions = Positions(EARLIER, [1, 4, 9])
    found = scanned(*delete_blocks(INSTANT, AVRO, keys, "p", [numbers], positions=positions))
    told = [[key for key, _, _ in deletes_by_fastavro(bytes(block.content()))] for block in found]
    assert told == [["a", "c"], ["b"]]
    assert [
        list(BitMap64.deserialize(base64.b64decode(block.headers[Header.RECORD_POSITIONS])))
        for block in found
    ] == [[1, 9], [4]]
    assert len(delete_blocks(INSTANT, AVRO, keys, "p")) == 1
    assert delete_blocks(INSTANT, AVRO, pa.array([], pa.string()), "p", [pa.array([], pa.int64())]) == []


def test_ordering_values_of_other_types_are_refused():
    with pytest.raises(IncompatibleSchema, match="list"):
        encode_delete_block(pa.array(["k"]), "p", [pa.array([[1]])])


@given(st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1)), max_size=300))
def test_deletes_come_back(rows):
    keys = pa.array([key for key, _ in rows], pa.string())
    orderings = pa.array([number for _, number in rows], pa.int64())
    (found,) = scanned(delete_block({Header.INSTANT_TIME: INSTANT}, keys, "p", [orderings]))
    batches = decode_delete_block(found.content())
    assert [key for batch in batches for key in batch.keys.to_pylist()] == [key for key, _ in rows]
    assert [n for batch in batches for n in batch.orderings[0].to_pylist()] == [number for _, number in rows]
