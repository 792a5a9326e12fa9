import gzip
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats import hfile, hfile_writer
from drawstring.formats.hfile import HFileReader
from drawstring.formats.hfile_writer import write_hfile

MANY = [(f"key{i:05d}".encode(), b"v" * (i % 50)) for i in range(2000)]


def read(content):
    return [(key, bytes(value)) for key, value in HFileReader(content).entries()]


def two_level_file(entries, per_block=10, per_leaf=5):
    """An HFile as HBase writes large ones: leaf index blocks between the data, a root above them."""
    file, leaf, root, data_offsets = bytearray(), [], [], []

    def close_leaf():
        body, offsets = b"", [0]
        for key, offset, size in leaf:
            body += struct.pack(">qi", offset, size) + hfile_writer._key(key)
            offsets.append(len(body))
        content = struct.pack(f">i{len(offsets)}i", len(leaf), *offsets) + body
        block = hfile_writer._block(b"IDXLEAF2", content)
        root.append((leaf[0][0], len(file), len(block)))
        file.extend(block)
        leaf.clear()

    for start in range(0, len(entries), per_block):
        chunk = entries[start : start + per_block]
        block = hfile_writer._block(hfile.DATA_MAGIC, b"".join(hfile_writer._cell(k, v) for k, v in chunk))
        leaf.append((chunk[0][0], len(file), len(block)))
        data_offsets.append(len(file))
        file.extend(block)
        if len(leaf) == per_leaf:
            close_leaf()
    if leaf:
        close_leaf()
    whole = bytearray(
        hfile_writer._finish(file, root, {"KEY_VALUE_VERSION": struct.pack(">i", 1)}, len(entries))
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


def test_compressed_blocks_are_read():
    content = bytearray(write_hfile([(b"a", b"1")], schema="{}"))
    squeezed = bytearray()
    position = 0
    offsets = []
    trailer = len(content) - hfile.TRAILER_BYTES
    while position < trailer:
        size = hfile.HEADER_BYTES + struct.unpack_from(">i", content, position + 8)[0]
        plain = struct.unpack_from(">i", content, position + 12)[0]
        start = position + hfile.HEADER_BYTES
        data = gzip.compress(bytes(content[start : start + plain]))
        offsets.append(len(squeezed))
        end = hfile.HEADER_BYTES + len(data)
        header = struct.pack(
            ">8siiqbii", bytes(content[position : position + 8]), len(data) + 4, plain, -1, 0, 16384, end
        )
        squeezed += header + data + b"\0" * 4
        position += size
    fields = {1: offsets[3], 2: offsets[1], 5: 1, 7: 1, 8: 1, 9: 0, 10: 0, 12: 1}
    root = struct.pack(">qi", 0, offsets[1]) + b"\x03" + b"\0\x01a"
    assert len(root) == 16
    message = b"".join(hfile_writer._varint(n << 3) + hfile_writer._varint(v) for n, v in fields.items())
    body = hfile.TRAILER_MAGIC + hfile_writer._varint(len(message)) + message
    whole = bytes(squeezed) + body.ljust(hfile.TRAILER_BYTES - 4, b"\0") + struct.pack(">i", 3)
    assert read(whole) == [(b"a", b"1")]


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
