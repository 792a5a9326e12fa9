"""Small Avro container files, decoded with limits: a file of few bytes must not fill the memory."""

from __future__ import annotations

import io
import zlib
from functools import lru_cache
from typing import Any

import fastavro

from drawstring.formats.avro_native import read_varint
from drawstring.schema.avro_arrow import arrow_schema_from_avro

MAX_BLOCK_BYTES = 200 << 20
"""Largest block after decompression, as in Avro for Java."""
_SYNC_BYTES = 16


def first_record(content: bytes) -> Any:
    """Decode the first record of a container; None when it has none.

    Raises ValueError, or what the decoder raises, for bytes that are no container or exceed the limits, and
    the errors of `arrow_schema_from_avro` for schemas that no table's file has.
    """
    stream = io.BytesIO(content)
    reader: Any = fastavro.reader(stream)
    _check_schema(reader.metadata["avro.schema"])
    if stream.tell() == len(content):
        return None
    _check_block(content, stream.tell(), reader.codec)
    return next(iter(reader), None)


@lru_cache(maxsize=64)
def _check_schema(schema_json: str) -> None:
    arrow_schema_from_avro(schema_json)


def _check_block(content: bytes, position: int, codec: str) -> None:
    data = memoryview(content)
    count, position = read_varint(data, position)
    size, position = read_varint(data, position)
    if not 0 <= size <= len(content) - position - _SYNC_BYTES:
        raise ValueError(f"a block claims {size} bytes, {len(content) - position} are left")
    expanded = _expanded_size(data[position : position + size], codec)
    if not 0 <= count <= expanded <= MAX_BLOCK_BYTES:
        raise ValueError(f"a block claims {count} records in {expanded} bytes, at most {MAX_BLOCK_BYTES}")


def _expanded_size(data: memoryview, codec: str) -> int:
    if codec == "null":
        return len(data)
    if codec != "deflate":
        raise ValueError(f"its codec is {codec}, expected null or deflate")
    return len(zlib.decompressobj(wbits=-15).decompress(data, MAX_BLOCK_BYTES + 1))
