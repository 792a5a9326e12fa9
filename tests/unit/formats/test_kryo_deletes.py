"""Blocks of deletes as Hudi 0.9 to 0.13 wrote them: the bytes are theirs."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats.delete_blocks import decode_delete_block

_KEYS = b"\x01\x00[Lorg.apache.hudi.common.model.HoodieKey\xbb\x01"
_KEY = b"\x01\x01org.apache.hudi.common.model.HoodieKe\xf9"
_DELETES = b"\x01\x00[Lorg.apache.hudi.common.model.DeleteRecord\xbb\x01"
_DELETE = b"\x01\x01org.apache.hudi.common.model.DeleteRecor\xe4\x01\x01\x02org.apache.hudi.common.model.HoodieKe\xf9"


def _decoded(version: int, payload: bytes):
    return decode_delete_block(pa.py_buffer(struct.pack(">ii", version, len(payload)) + payload))


def test_keys_of_version_1_are_deletes_that_win_over_everything():
    (batch,) = _decoded(1, _KEYS + b"\x03" + _KEY + b"\x01\x01\x82a\x01\x820\x01\x01\x01\x01\x82a\x01\x823")
    assert batch.keys.to_pylist() == ["0", "3"]
    assert batch.orderings == ()


def test_long_keys_and_texts_beyond_ascii_are_read():
    ascii_key = b"\x01id:9,k:a,\xe2"
    umlaut = b"\x01" + bytes([0x80 | 3]) + "ü€".encode()
    length = 70 + 1
    long_key = b"\x01" + bytes([0x80 | 0x40 | (length & 0x3F), length >> 6]) + b"x" * 70
    payload = _KEYS + b"\x04" + _KEY + b"\x01\x01\x82a" + ascii_key
    payload += b"\x01\x01\x01\x01\x82a" + umlaut + b"\x01\x01\x01\x01\x82a" + long_key
    (batch,) = _decoded(1, payload)
    assert batch.keys.to_pylist() == ["id:9,k:a,b", "ü€", "x" * 70]


def test_a_text_that_came_before_is_named_by_its_number():
    # Objects so far: the array, the first key, its path and its record key; the path comes again.
    payload = _KEYS + b"\x03" + _KEY + b"\x01\x01\x82a\x01\x820" + b"\x01\x01\x01\x04\x01\x823"
    (batch,) = _decoded(1, payload)
    assert batch.keys.to_pylist() == ["0", "3"]


@pytest.mark.parametrize(
    ("encoded", "arrow", "value"),
    [
        (b"\t(", pa.int64(), 20),
        (b"\x02\x14", pa.int32(), 10),
        (b"\x0c\x01\x0310", pa.string(), "10"),
        (b"\x1d\x01\x0310", pa.string(), "10"),
        (b"\x03\x01\x821", pa.string(), "1"),
        (b"\x0a" + struct.pack(">d", 2.5), pa.float64(), 2.5),
        (b"\x04" + struct.pack(">f", 2.5), pa.float32(), 2.5),
        (b"\x01\x03java.math.BigDecima\xec\x01\x03\x00\xfa\x04", pa.decimal128(30, 15), Decimal("2.5")),
        (
            b"\x01\x03java.math.BigDecima\xec\x01\x0e\x01" + bytes(11) + b"\x01\x1e",
            pa.decimal128(30, 15),
            Decimal("79228162514264.337593543950337"),
        ),
    ],
)
def test_ordering_values_of_version_2_are_read(encoded: bytes, arrow: pa.DataType, value: object):
    (batch,) = _decoded(2, _DELETES + b"\x02" + _DELETE + b"\x01\x01\x82a\x01\x826" + encoded)
    assert batch.keys.to_pylist() == ["6"]
    assert [each.type for each in batch.orderings] == [arrow]
    assert batch.orderings[0].to_pylist() == [value]


@pytest.mark.parametrize("encoded", [b"\x02\x00", b"\x00"])
def test_an_int_0_or_a_null_is_no_ordering_value(encoded: bytes):
    (batch,) = _decoded(2, _DELETES + b"\x02" + _DELETE + b"\x01\x01\x82b\x01\x821" + encoded)
    assert batch.orderings == ()


def test_no_deletes_are_none():
    assert _decoded(2, _DELETES + b"\x01") == []


def test_an_ordering_value_of_an_unknown_class_is_refused_by_name():
    payload = _DELETES + b"\x02" + _DELETE + b"\x01\x01\x82b\x01\x821\x01\x03java.util.Dat\xe5\x01"
    with pytest.raises(UnsupportedTable, match=r"java\.util\.Date"):
        _decoded(2, payload)


def test_an_unknown_version_is_refused_by_name():
    with pytest.raises(UnsupportedTable, match="version 4"):
        _decoded(4, _DELETES + b"\x01")


def test_every_cut_and_every_wrong_class_is_an_error():
    whole = _DELETES + b"\x02" + _DELETE + b"\x01\x01\x82a\x01\x826\t("
    for length in range(len(whole)):
        with pytest.raises((CorruptTable, UnsupportedTable)):
            _decoded(2, whole[:length])
    with pytest.raises(CorruptTable, match="HoodieKey"):
        _decoded(2, _KEYS + b"\x02" + _KEY + b"\x01\x01\x82a\x01\x820")
