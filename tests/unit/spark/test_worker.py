"""The worker's protocol, over pipes in memory."""

from __future__ import annotations

import io
import json
import struct

import pyarrow as pa

from drawstring.spark.worker import server as worker
from drawstring.spark.worker.server import Channel, send_batches, serve

SCHEMA = pa.schema([("x", pa.int64())])
BATCH = pa.record_batch([pa.array(range(10))], schema=SCHEMA)


def frames(data: bytes) -> list[tuple[str, bytes]]:
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack(">i", data[at + 1 : at + 5])
        found.append((data[at : at + 1].decode(), data[at + 5 : at + 5 + length]))
        at += 5 + length
    return found


def request(**fields) -> bytes:
    body = json.dumps(fields).encode()
    return b"R" + struct.pack(">i", len(body)) + body


def served(incoming: bytes) -> list[tuple[str, bytes]]:
    replies = io.BytesIO()
    serve(Channel(io.BytesIO(incoming), replies))
    return frames(replies.getvalue())


def test_the_frames_are_an_arrow_stream(monkeypatch):
    monkeypatch.setattr(worker, "answer", lambda channel, _: send_batches(channel, SCHEMA, [BATCH, BATCH]))
    found = served(request(credits=9))
    stream = b"".join(body for kind, body in found if kind == "A")
    assert pa.ipc.open_stream(stream).read_all().num_rows == 20
    assert found[-1][0] == "Z"


def test_without_credit_the_worker_waits_and_an_answer_can_be_called_off(monkeypatch):
    monkeypatch.setattr(worker, "answer", lambda channel, _: send_batches(channel, SCHEMA, [BATCH] * 9))
    found = served(request(credits=1) + b"+" + b"!")
    assert [kind for kind, _ in found] == ["A", "A", "Z"]


def test_late_signals_do_not_disturb_the_next_request(monkeypatch):
    monkeypatch.setattr(worker, "answer", lambda channel, _: send_batches(channel, SCHEMA, []))
    found = served(request(credits=4) + b"+++!" + request(credits=4))
    assert [kind for kind, _ in found] == ["A", "A", "Z"] * 2


def test_an_error_is_an_answer_and_the_worker_goes_on():
    found = served(request(kind="read") + request(kind="read"))
    assert [kind for kind, _ in found] == ["E", "E"]
    assert json.loads(found[0][1])["condition"] == "INTERNAL_ERROR"


def test_a_large_batch_goes_in_frames_of_about_a_megabyte(monkeypatch):
    large = pa.record_batch({"a": pa.array(["x" * 100] * 50_000)})
    monkeypatch.setattr(worker, "answer", lambda channel, _: send_batches(channel, large.schema, [large]))
    bodies = [body for kind, body in served(request(credits=99)) if kind == "A"]
    assert max(len(body) for body in bodies) < 1.1 * 2**20
    assert len(bodies) < 9
    assert pa.ipc.open_stream(b"".join(bodies)).read_all().column("a").combine_chunks() == large.column("a")


def test_a_warm_up_is_a_merged_slice_of_one_row():
    found = served(request(kind="warm_up", credits=9))
    assert [kind for kind, _ in found] == ["B", "A", "A", "A", "Z"]
    assert pa.ipc.open_stream(b"".join(body for kind, body in found if kind == "A")).read_all().num_rows == 1
