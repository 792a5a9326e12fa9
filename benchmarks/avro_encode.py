"""How fast Arrow rows become records of log blocks."""

from __future__ import annotations

import json

import pyarrow as pa

from benchmarks.avro_decode import SCHEMA, record
from benchmarks.measure import median_seconds
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.formats.log_writer import avro_block, data_headers
from drawstring.schema.avro_arrow import arrow_schema_from_avro


def rows_per_second(count: int) -> float:
    """Write a block of `count` records some times; the median speed."""
    few = [record(number) for number in range(min(count, 1000))]
    schema = arrow_schema_from_avro(SCHEMA)
    table = pa.concat_tables([pa.Table.from_pylist(few, schema=schema)] * -(-count // len(few)))
    (batch,) = table.slice(0, count).combine_chunks().to_batches()
    headers, encoder = data_headers("20260101000000000", json.dumps(SCHEMA)), AvroEncoder(SCHEMA)

    def encode() -> None:
        assert len(avro_block([batch], headers, encoder)) > 30 * count

    return count / median_seconds(encode, times=5, warm_up=2)
