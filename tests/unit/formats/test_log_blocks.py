from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from drawstring.errors import UnsupportedTable
from drawstring.formats.log_blocks import MAGIC, BlockType, Header, scan_log_file


class Files:
    """The one method of a storage that scanning needs."""

    root = "memory"

    def __init__(self, **files: bytes) -> None:
        self.files = files

    def open(self, path: str):
        return pa.BufferReader(self.files[path])


def block(
    content: bytes, *, instant="20260101000000000", kind=BlockType.AVRO_DATA, version=1, extra=None
) -> bytes:
    headers = {int(Header.INSTANT_TIME): instant, **(extra or {})}
    body = struct.pack(">iii", version, kind, len(headers))
    for key, value in headers.items():
        body += struct.pack(">ii", key, len(value.encode())) + value.encode()
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    return MAGIC + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


def scan(data: bytes):
    return scan_log_file(Files(log=data), "log")


def test_blocks_are_found_in_file_order_with_their_content():
    found = scan(block(b"one") + block(b"", kind=BlockType.COMMAND) + block(b"three", kind=BlockType.DELETE))
    assert [bytes(b.content()) for b in found.blocks] == [b"one", b"", b"three"]
    assert [b.type for b in found.blocks] == [BlockType.AVRO_DATA, BlockType.COMMAND, BlockType.DELETE]
    assert found.corrupt_regions == ()


def test_an_empty_file_holds_nothing():
    assert scan(b"").blocks == ()


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_torn_tail_keeps_the_blocks_before_it(cut):
    first = block(b"kept")
    found = scan(first + block(b"torn" * 5)[:cut])
    assert [bytes(b.content()) for b in found.blocks] == [b"kept"]
    (region,) = found.corrupt_regions
    assert region.is_tail
    assert region.offset == len(first)
    assert not region.is_damage(frozenset({"20250101000000000"}))


def test_a_torn_block_of_a_committed_instant_is_damage():
    (region,) = scan(block(b"kept") + block(b"torn" * 5)[:-9]).corrupt_regions
    assert region.instant == "20260101000000000"
    assert region.is_damage(frozenset({"20260101000000000"}))
    assert region.is_damage(None)
    assert not region.is_damage(None, committed_size=len(block(b"kept")))


def test_garbage_behind_the_last_block_does_not_hide_it():
    found = scan(block(b"kept") + b"garbage")
    assert len(found.blocks) == 1
    assert not found.corrupt_regions[0].is_damage(None)


def test_every_flipped_bit_of_the_framing_is_noticed():
    whole = block(b"one") + block(b"two") + block(b"three")
    start, size = len(block(b"one")), len(block(b"two"))
    framing = [i for i in range(size) if not 59 <= i < 62 and not 34 <= i < 51]
    for position in framing:
        for bit in range(8):
            data = bytearray(whole)
            data[start + position] ^= 1 << bit
            try:
                found = scan(bytes(data))
            except UnsupportedTable:
                continue
            kinds = [b.type for b in found.blocks]
            changed = len(kinds) == 3 and (
                kinds[1] != BlockType.AVRO_DATA or set(found.blocks[1].headers) != {0}
            )
            assert changed or any(r.is_damage(None) for r in found.corrupt_regions), (position, bit)


def test_a_broken_block_in_the_middle_is_skipped_and_told():
    second = bytearray(block(b"two"))
    second[-1] ^= 1
    found = scan(block(b"one") + bytes(second) + block(b"three"))
    assert [bytes(b.content()) for b in found.blocks] == [b"one", b"three"]
    assert found.corrupt_regions[0].is_damage(frozenset({"20260101000000000"}))
    assert not found.corrupt_regions[0].is_damage(frozenset())


@pytest.mark.parametrize(
    "data",
    [block(b"", version=2), block(b"", kind=7), block(b"", extra={9: "x"})],  # type: ignore[arg-type]
    ids=["format version", "block type", "header key"],
)
def test_what_a_newer_writer_left_is_refused_by_name(data, request):
    with pytest.raises(UnsupportedTable, match=request.node.callspec.id):
        scan(data)


def test_large_files_are_read_through_a_window(monkeypatch):
    monkeypatch.setattr("drawstring.formats.log_blocks._WHOLE_FILE_BYTES", 16)
    monkeypatch.setattr("drawstring.formats.log_blocks._SEARCH_BYTES", 32)
    data = block(b"x" * 100) + b"?" * 100 + block(b"y" * 1000) + block(b"z")
    found = scan(data)
    assert [bytes(b.content()) for b in found.blocks] == [b"x" * 100, b"y" * 1000, b"z"]
