"""Blocks of log files, written as Hudi 1.x writes them; `log_blocks` tells how they are framed.

A block is returned as bytes: it is held whole anyway, because its length stands in front of it. Who writes large
logs makes several blocks of at most `hoodie.logfile.data.block.max.size`.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from drawstring.formats.avro import DATA_BLOCK_VERSION
from drawstring.formats.avro_encoder import AvroEncoder, joined_octets
from drawstring.formats.delete_encoder import encode_delete_block
from drawstring.formats.log_blocks import FORMAT_VERSION, MAGIC, MAX_BLOCK_BYTES, BlockType, Header

_ROLLBACK = "0"
_INTS = struct.Struct(">ii")

Headers = Mapping[Header, str]


def frame_block(kind: BlockType, headers: Headers, content: Iterable[Any]) -> bytes:
    """Return a block around its content, which may come in pieces that have the buffer protocol."""
    pieces = [memoryview(piece).cast("B") for piece in content]
    size = sum(len(piece) for piece in pieces)
    head = struct.pack(">iii", FORMAT_VERSION, kind, len(headers))
    for key, value in headers.items():
        text = value.encode()
        head += _INTS.pack(key, len(text)) + text
    head += struct.pack(">q", size)
    length = len(head) + size + 4 + 8
    if length > MAX_BLOCK_BYTES:
        raise ValueError(f"a log block of {length} bytes; no reader takes more than {MAX_BLOCK_BYTES}")
    tail = struct.pack(">iq", 0, length + 6)
    return b"".join([MAGIC, struct.pack(">q", length), head, *pieces, tail])


def data_headers(
    instant: str,
    schema: str,
    *,
    positions: Positions | None = None,
    is_partial: bool = False,
    compacted: Sequence[str] = (),
) -> dict[Header, str]:
    """Return the headers of a block of records; `schema` is Avro JSON, meta columns included.

    A block stands for those of the `compacted` instants, where there are any.
    """
    headers = {Header.INSTANT_TIME: instant, Header.SCHEMA: schema}
    if compacted:
        headers[Header.COMPACTED_BLOCK_TIMES] = ",".join(compacted)
    if is_partial:
        headers[Header.IS_PARTIAL] = "true"
    return headers | (positions.headers() if positions is not None else {})


class Positions:
    """Where in a base file the rows lie that a block's records replace, in the order of the records."""

    def __init__(self, base_instant: str, ascending_rows: Sequence[int] | np.ndarray[Any, Any]) -> None:
        rows = np.asarray(ascending_rows, np.uint64)
        if np.any(rows[1:] <= rows[:-1]):
            # A bitmap has no order of its own: the i-th bit is taken for the i-th record.
            raise ValueError("record positions must ascend; sort the records by them before they are written")
        self._base_instant, self._rows = base_instant, rows

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, records: np.ndarray[Any, Any]) -> Positions:
        """Return the positions of some of the records, in their order."""
        return Positions(self._base_instant, self._rows[records])

    def headers(self) -> dict[Header, str]:
        """Return the headers that tell the positions."""
        return {
            Header.RECORD_POSITIONS: b64encode(BitMap64(self._rows).serialize()).decode(),
            Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS: self._base_instant,
        }


def avro_block(
    batches: Iterable[pa.RecordBatch],
    headers: Headers,
    encoder: AvroEncoder,
    *,
    kind: BlockType = BlockType.AVRO_DATA,
) -> bytes:
    """Return a block of Avro records, also of change records (`kind` CDC_DATA)."""
    chunks = [chunk for batch in batches for chunk in encoder.encode(batch, with_length=True)]
    return avro_block_of(chunks, headers, kind=kind)


def avro_block_of(
    chunks: Sequence[pa.Array], headers: Headers, *, kind: BlockType = BlockType.AVRO_DATA
) -> bytes:
    """Return a block of records that are encoded already, each with its length in front."""
    prefix = _INTS.pack(DATA_BLOCK_VERSION, sum(map(len, chunks)))
    return frame_block(kind, headers, [prefix, *map(joined_octets, chunks)])


def parquet_block(table: pa.Table, headers: Headers, *, compression: str = "gzip") -> bytes:
    """Return a block that is a Parquet file."""
    sink = pa.BufferOutputStream()
    # Blocks are read whole, so statistics would serve nobody, and those of floats hide NaN.
    pq.write_table(table, sink, compression=compression, store_schema=False, write_statistics=False)
    return frame_block(BlockType.PARQUET_DATA, headers, [sink.getvalue()])


def hfile_block(content: bytes, headers: Headers) -> bytes:
    """Return a block that is an HFile, as the metadata table has them."""
    return frame_block(BlockType.HFILE_DATA, headers, [content])


def delete_block(
    headers: Headers,
    keys: pa.Array,
    partition_paths: pa.Array | str,
    orderings: Sequence[pa.Array] = (),
) -> bytes:
    """Return a block of deletes; see `encode_delete_block`. INSTANT_TIME is the only header that it needs."""
    return frame_block(BlockType.DELETE, headers, [encode_delete_block(keys, partition_paths, orderings)])


def delete_blocks(
    instant: str,
    schema: str,
    keys: pa.Array,
    partition_path: str,
    orderings: Sequence[pa.Array] = (),
    *,
    positions: Positions | None = None,
) -> list[bytes]:
    """Return blocks of deletes of one partition: those with ordering values, and those without, apart.

    Hudi takes them mixed in one block, and hudi-rs refuses that.
    """
    null = np.zeros(len(keys), np.bool_) if orderings else np.ones(len(keys), np.bool_)
    for values in orderings:
        null |= values.is_null().to_numpy(zero_copy_only=False)
    blocks = []
    for rows, kept in ((np.flatnonzero(~null), orderings), (np.flatnonzero(null), ())):
        if len(rows):
            headers = data_headers(instant, schema, positions=positions.take(rows) if positions else None)
            chosen = pa.array(rows)
            values_of = [values.take(chosen) for values in kept]
            blocks.append(delete_block(headers, keys.take(chosen), partition_path, values_of))
    return blocks


def rollback_block(instant: str, target: str) -> bytes:
    """Return the block that takes back what `target` wrote to this slice, in tables of version 6."""
    headers = {
        Header.COMMAND_BLOCK_TYPE: _ROLLBACK,
        Header.TARGET_INSTANT_TIME: target,
        Header.INSTANT_TIME: instant,
    }
    return frame_block(BlockType.COMMAND, headers, [])
