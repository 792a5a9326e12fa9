"""How fast records of log blocks become Arrow."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa

from benchmarks.measure import median_seconds
from drawstring.formats.avro import decode_blocks

_KINDS: dict[str, Any] = {
    "id": "long",
    "name": "string",
    "city": "string",
    "amount": {
        "type": "fixed",
        "name": "money",
        "size": 6,
        "logicalType": "decimal",
        "precision": 12,
        "scale": 2,
    },
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "score": "double",
    "count": "int",
    "flag": "boolean",
}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "bench",
    "fields": [{"name": name, "type": ["null", kind], "default": None} for name, kind in _KINDS.items()],
}


def rows_per_second(count: int) -> float:
    """Decode a block of `count` records some times; the median speed."""
    content = pa.py_buffer(_block(count))
    text = json.dumps(SCHEMA)

    def decode() -> None:
        assert sum(batch.num_rows for batch in decode_blocks(text, [content])) == count

    return count / median_seconds(decode, times=5, warm_up=2)


def _block(count: int) -> bytes:
    # A thousand different records, over and over: the decoder does not remember them.
    parsed, encoded = fastavro.parse_schema(SCHEMA), []
    for number in range(min(count, 1000)):
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, record(number))
        encoded.append(struct.pack(">i", buffer.tell()) + buffer.getvalue())
    records = b"".join(encoded[number % len(encoded)] for number in range(count))
    return struct.pack(">ii", 3, count) + records


def record(number: int) -> dict[str, Any]:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=number)
    texts = {"name": f"name {number}", "city": f"city {number % 50}"}
    numbers = {"id": number, "score": number / 7, "count": number % 100, "flag": number % 2 == 0}
    return {**texts, **numbers, "amount": Decimal(number) / 100, "at": moment}
