"""The process beside an executor: requests on standard input, frames on standard output.

A request is `R`, a length and JSON. The answer is frames of a kind, a length and bytes: `B` the number of base rows
and a bit for each that tells if it is hidden, `A` a piece of an Arrow stream, `E` an error and `Z` the end. Arrow
frames need credit: a request grants some, each `+` one more, and `!` calls the rest of the answer off. The process
ends when its input does.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.formats.avro import decode_blocks
from drawstring.spark.errors import error_to_wire
from drawstring.spark.worker.slices import SliceSource

FRAME_BYTES = 1 << 20
"""About so much goes to the JVM at once: larger pieces have it fill fresh memory again and again."""
_PIPE_BYTES = 1 << 20
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class Channel:
    """Both pipes, with the credit that flow control keeps."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._requests = requests
        self._replies = replies
        self._credit = 0

    def next_request(self) -> dict[str, Any] | None:
        """The next request, or None when the JVM is gone; late signals of the last answer are skipped."""
        while (signal := self._requests.read(1)) != b"R":
            if not signal:
                return None
        (length,) = struct.unpack(">i", self._requests.read(4))
        request: dict[str, Any] = json.loads(self._requests.read(length))
        self._credit = int(request.get("credits", 4))
        return request

    def send(self, kind: bytes, body: bytes | memoryview | pa.Buffer = b"") -> None:
        """Write one frame."""
        view = memoryview(body)
        self._replies.write(kind + struct.pack(">i", view.nbytes))
        self._replies.write(view)
        self._replies.flush()

    def may_send(self) -> bool:
        """Wait for credit; False when the answer is called off."""
        while self._credit == 0:
            signal = self._requests.read(1)
            if signal != b"+":
                return False
            self._credit += 1
        self._credit -= 1
        return True


def serve(channel: Channel) -> None:
    """Answer requests until there are no more."""
    while (request := channel.next_request()) is not None:
        try:
            answer(channel, request)
        except BrokenPipeError:
            return
        except Exception as error:
            channel.send(b"E", json.dumps(error_to_wire(error)).encode())
        else:
            channel.send(b"Z")


def answer(channel: Channel, request: dict[str, Any]) -> None:
    """Answer one request."""
    if request["kind"] == "warm_up":
        return answer_warm_up(channel)
    source = SliceSource.of(request)
    if request["kind"] == "merge":
        plan = source.kept_merge_plan(request)
        channel.send(b"B", struct.pack(">q", plan.base_rows) + plan.hidden_bits)
        winners = map(source.fitted, plan.batches(source.columns))
        send_batches(channel, source.schema, winners)
    else:
        send_batches(channel, source.schema, source.batches())


def answer_warm_up(channel: Channel) -> None:
    """Answer as if a slice of one row were merged, with a column of every common type."""
    row = {
        "text": pa.array(["a"]),
        "bytes": pa.array([b"a"]),
        "flag": pa.array([True]),
        "int": pa.array([1], pa.int32()),
        "long": pa.array([1]),
        "float": pa.array([1.0], pa.float32()),
        "double": pa.array([1.0]),
        "decimal": pa.array([1], pa.int32()).cast(pa.decimal128(18, 2)),
        "day": pa.array([1], pa.date32()),
        "time": pa.array([1], pa.timestamp("us", tz="UTC")),
    }
    batch = pa.record_batch(row)
    channel.send(b"B", struct.pack(">q", 0))
    send_batches(channel, batch.schema, [batch])


def send_batches(channel: Channel, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Send an Arrow stream, a frame per message, as far as it is wanted."""
    if not channel.may_send():
        return
    channel.send(b"A", schema.serialize())
    for batch in batches:
        for piece in _pieces(batch):
            if not channel.may_send():
                return
            channel.send(b"A", piece.serialize())
    if channel.may_send():
        channel.send(b"A", _END_OF_STREAM)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows = max(1, batch.num_rows * FRAME_BYTES // max(batch.nbytes, FRAME_BYTES))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


class _NoPandas:
    """Hides pandas from this process: pyarrow loads it, for a second or more, as soon as it sees it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse to find pandas."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def widen(pipe: int) -> None:
    """Let a pipe hold more, so that an answer can be on its way while its reader is busy with something else."""
    # Not every system has it, nor allows it.
    with contextlib.suppress(OSError, AttributeError, ImportError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def warm_up() -> None:
    """Do a little of everything, so that what is loaded at its first use is there before the first request."""
    block = struct.pack(">iii", 3, 1, 2) + b"\x02a"
    schema = '{"type":"record","name":"r","fields":[{"name":"a","type":"string"}]}'
    (decoded,) = decode_blocks(schema, [pa.py_buffer(block)])
    file = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([decoded]), file)
    found = pq.ParquetFile(pa.BufferReader(file.getvalue())).read()
    pc.index_in(found.column(0), value_set=decoded.column(0))


def main() -> None:
    """Serve on the standard streams; what anything prints goes to standard error instead."""
    sys.meta_path.insert(0, _NoPandas())
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    replies = os.fdopen(os.dup(1), "wb", buffering=1 << 18)
    widen(replies.fileno())
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    warm_up()
    serve(Channel(requests, replies))
    sys.stderr.flush()
    os._exit(0)
