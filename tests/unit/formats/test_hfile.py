import gzip
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats import hfile, hfile_writer
from drawstring.formats.hfile import HFileReader
from drawstring.formats.hfile_writer import record_key_info, write_hfile, write_sorted

MANY = [(f"key{i:05d}".encode(), b"v" * (i % 50)) for i in range(2000)]


CELL_SUFFIX = b"\x00" + b"\x7f" + b"\xff" * 7 + b"\x04"


def cell(key, value):
    """A cell as HBase describes it, made by hand."""
    whole = struct.pack(">h", len(key)) + key + CELL_SUFFIX
    return struct.pack(">ii", len(whole), len(value)) + whole + value + b"\x00"


def read(content):
    return [(key, bytes(value)) for key, value in HFileReader(content).entries()]


def two_level_file(entries, per_block=10, per_leaf=5):
    """An HFile as HBase writes large ones: leaf index blocks between the data, a root above them."""
    file, leaf, root, data_offsets = bytearray(), [], [], []

    def close_leaf():
        body, offsets = b"", [0]
        for key, offset, size in leaf:
            body += struct.pack(">qi", offset, size) + struct.pack(">h", len(key)) + key + CELL_SUFFIX
            offsets.append(len(body))
        content = struct.pack(f">i{len(offsets)}i", len(leaf), *offsets) + body
        block = hfile_writer._block(b"IDXLEAF2", content)
        root.append((struct.pack(">h", len(leaf[0][0])) + leaf[0][0], len(file), len(block)))
        file.extend(block)
        leaf.clear()

    for start in range(0, len(entries), per_block):
        chunk = entries[start : start + per_block]
        block = hfile_writer._block(hfile.DATA_MAGIC, b"".join(cell(k, v) for k, v in chunk))
        leaf.append((chunk[0][0], len(file), len(block)))
        data_offsets.append(len(file))
        file.extend(block)
        if len(leaf) == per_leaf:
            close_leaf()
    if leaf:
        close_leaf()
    whole = bytearray(
        hfile_writer._File(content=file, index=root).finish(
            {"KEY_VALUE_VERSION": struct.pack(">i", 1)}, len(entries)
        )
    )
    trailer = len(whole) - hfile.TRAILER_BYTES
    length, start = hfile._varint(memoryview(bytes(whole)), trailer + 8)
    fields = dict(hfile._protobuf(memoryview(bytes(whole[start : start + length]))))
    fields |= {8: 2, 9: data_offsets[0], 10: data_offsets[-1], 12: 2}
    message = b"".join(
        hfile_writer._varint(n << 3) + hfile_writer._varint(v)
        for n, v in fields.items()
        if isinstance(v, int)
    )
    body = hfile.TRAILER_MAGIC + hfile_writer._varint(len(message)) + message
    whole[trailer:] = body.ljust(hfile.TRAILER_BYTES - 4, b"\0") + struct.pack(">i", 0x03000003)
    return bytes(whole)


@pytest.mark.parametrize("build", [lambda e: write_hfile(e, schema="{}", block_bytes=500), two_level_file])
def test_what_was_written_is_read_whole_by_key_and_by_range(build):
    reader = HFileReader(build(MANY))
    assert [(key, bytes(value)) for key, value in reader.entries()] == MANY
    assert reader.entry_count == len(MANY)
    assert [key for key, _ in reader.lookup([b"key00007", b"key01999", b"nothing", b"", b"key00007"])] == [
        b"key00007",
        b"key01999",
    ]
    assert [key for key, _ in reader.with_prefix(b"key0012")] == [f"key0012{i}".encode() for i in range(10)]
    assert len(list(reader.scan(b"key00010", b"key00020"))) == 10
    assert len(list(reader.scan(b"key01990"))) == 10
    assert list(reader.with_prefix(b"\xff")) == []


def test_a_lookup_reads_only_the_blocks_it_needs():
    content = write_hfile(MANY, schema="{}", block_bytes=500)

    class Counting(pa.PythonFile):
        reads = 0

        def read(self, nbytes=None):
            Counting.reads += 1
            return super().read(nbytes)

    limit, hfile._WHOLE_FILE_BYTES = hfile._WHOLE_FILE_BYTES, 0
    try:
        reader = HFileReader(Counting(pa.BufferReader(content), mode="r"))
        assert len(list(reader.lookup([b"key00007"]))) == 1
        assert Counting.reads < 12
    finally:
        hfile._WHOLE_FILE_BYTES = limit


@pytest.mark.parametrize(("compression", "codec"), [("gzip", 1), ("none", 2)])
def test_blocks_are_compressed_or_not(compression, codec):
    content = write_hfile(MANY, schema="{}", block_bytes=500, compression=compression)
    assert HFileReader(content).trailer.codec == codec
    assert read(content) == MANY
    first = hfile.HEADER_BYTES
    data = content[first : struct.unpack_from(">i", content, 29)[0]]
    assert (gzip.decompress(data) if codec == 1 else data).startswith(cell(*MANY[0]))


def test_the_bytes_do_not_depend_on_the_time():
    assert write_hfile(MANY, schema="{}") == write_hfile(MANY, schema="{}")


def test_a_block_is_closed_when_it_is_full():
    entries = [(f"{i:03d}".encode(), b"v" * 100) for i in range(100)]
    for size, blocks in ((1, 100), (1000, 12), (1 << 20, 1)):
        reader = HFileReader(write_hfile(entries, schema="{}", block_bytes=size))
        assert reader.trailer.data_index_count == blocks
        assert [key for key, _ in reader.lookup([b"000", b"050", b"099"])] == [b"000", b"050", b"099"]


def test_a_file_tells_of_its_keys_and_has_meta_blocks():
    keys, values = pa.array([b"a", b"b"]), pa.array([b"1", b"2"])
    info = record_key_info(keys) | {"bloomFilterTypeCode": b"DYNAMIC_V0"}
    content = write_sorted(keys, values, schema="{}", info=info, meta_blocks={"bloomFilter": b"AAAA"})
    reader = HFileReader(content)
    assert [key for key, _ in reader.entries()] == [b"a", b"b"]
    assert reader.file_info["minRecordKey"] == b"a"
    assert reader.file_info["maxRecordKey"] == b"b"
    assert reader.file_info["hfile.LASTKEY"] == b"\x00\x01b"
    assert content.count(hfile.META_MAGIC) == 1


def test_an_empty_file_has_no_entries():
    reader = HFileReader(write_hfile([], schema="{}"))
    assert list(reader.entries()) == []
    assert list(reader.lookup([b"x"])) == []
    assert list(reader.scan(b"")) == []
    assert reader.schema == "{}"


def test_keys_out_of_order_are_refused():
    with pytest.raises(ValueError, match="not ascending"):
        write_hfile([(b"b", b""), (b"a", b"")], schema="{}")


def test_other_versions_and_codecs_are_refused_by_name():
    content = bytearray(write_hfile(MANY, schema="{}"))
    content[-1] = 2
    with pytest.raises(UnsupportedTable, match="format version 2"):
        HFileReader(bytes(content))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_noticed_or_harmless_but_never_another_error(data):
    content = bytearray(write_hfile(MANY[:50], schema="{}", block_bytes=300))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    for damaged in (bytes(content), bytes(content[:cut])):
        try:
            reader = HFileReader(damaged)
            list(reader.entries())
            list(reader.lookup([b"key00007"]))
            list(reader.with_prefix(b"key0"))
        except (CorruptTable, UnsupportedTable):
            pass
