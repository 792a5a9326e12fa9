"""The memory that rewriting a large file group takes: `python -m benchmarks.large_rewrite`.

One base file of a gigabyte, into which a million rows of 200 bytes are upserted by one process, half of them updates
spread over the whole file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import drawstring
from benchmarks.large_group import Peak, anonymous_memory

SCHEMA = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("pad", pa.binary())])
OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.table.ordering.fields": "ts",
}
LARGE = {"hoodie.parquet.max.file.size": str(8 << 30), "hoodie.parquet.small.file.limit": str(8 << 30)}
_ROW_BYTES, _BATCH = 200, 100_000


def rows(ids: np.ndarray[Any, Any], ts: int) -> pa.RecordBatch:
    """Rows that nothing compresses."""
    noise = np.random.default_rng(int(ids[0]) + ts).bytes(184 * len(ids))
    offsets = np.arange(len(ids) + 1, dtype=np.int32) * 184
    pad = pa.Array.from_buffers(pa.binary(), len(ids), [None, pa.py_buffer(offsets), pa.py_buffer(noise)])
    return pa.record_batch([pa.array(ids), pa.array(np.full(len(ids), ts)), pad], schema=SCHEMA)


def make(path: Path, megabytes: int) -> int:
    """Write a table of one base file; returns its number of rows."""
    count = megabytes * 2**20 // _ROW_BYTES
    table = drawstring.create_table(str(path), SCHEMA, options=OPTIONS)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, count, _BATCH):
            yield rows(np.arange(start, min(count, start + _BATCH)), 1)

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    table.write(reader, operation="bulk_insert", options=LARGE)
    return count


def upsert_and_measure(path: str, count: int, incoming: int) -> dict[str, Any]:
    """Upsert rows, the first half of them spread over the file, in this process."""
    ids = np.concatenate(
        [np.arange(incoming // 2) * (2 * count // incoming), count + np.arange(incoming // 2)]
    )
    before = anonymous_memory()
    with Peak() as peak:
        batches = [rows(ids[start : start + _BATCH], 2) for start in range(0, len(ids), _BATCH)]
        result = drawstring.open_table(path).write(pa.Table.from_batches(batches), options=LARGE)
    return {
        "before": before,
        "anonymous": peak.anonymous,
        "counts": [result.updated, result.inserted, result.files_written],
    }


def measured(path: Path, count: int, incoming: int) -> dict[str, Any]:
    """Upsert in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.large_rewrite",
        "--upsert",
        str(path),
        str(count),
        str(incoming),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--upsert", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.upsert:
        path, count, incoming = arguments.upsert
        print(json.dumps(upsert_and_measure(path, int(count), int(incoming))))
        return 0
    with tempfile.TemporaryDirectory(prefix="drawstring-rewrite-") as folder:
        count = make(Path(folder) / "t", arguments.megabytes)
        found = measured(Path(folder) / "t", count, arguments.rows)
    used = (found["anonymous"] - found["before"]) / 2**20
    print(f"{arguments.megabytes} MB and {arguments.rows:,} rows: {used:.0f} MB of memory, {found['counts']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
