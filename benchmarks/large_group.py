"""One file group whose logs are larger than the memory they are merged in.

    python -m benchmarks.large_group                 # makes the tables, reads each in a process of its own
    python -m benchmarks.large_group --megabytes 200

Records are laid out by numpy, all of one length, so that gigabytes of Avro take seconds to make.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.tables import FIRST, SECOND, _framed, _Writer, avro_schema
from drawstring.schema.meta_columns import META_COLUMNS

FILE_ID = "00000000-0000-4000-8000-000000000000-0"
_AVRO_DATA, _PARQUET_DATA = 3, 5
_INSTANT, _SCHEMA, _IS_PARTIAL = 0, 2, 7
_PAD = 150
_COLUMNS = {"id": pa.string(), "ts": pa.int64(), "v": pa.int64(), "pad": pa.string()}
_TABLE = pa.schema([*_COLUMNS.items(), ("kept", pa.string()), ("p", pa.string())])
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class GroupShape:
    """How the logs are cut: `blocks` of `rows` records over `files` log files, about a base file of `base_rows`."""

    name: str
    blocks: int
    rows: int
    files: int = 1
    base_rows: int = 500_000
    partial: bool = False
    parquet: bool = False

    @property
    def keys(self) -> int:
        """How many keys there are; each is updated about twice."""
        return max(1, self.blocks * self.rows // 2)


@dataclass(frozen=True)
class Events:
    """Log records as numbers: each event's key, ordering value and value."""

    keys: Numbers
    ts: Numbers
    v: Numbers


def events_of(shape: GroupShape, block: int) -> Events:
    """The records of one block; no two blocks are alike."""
    random = np.random.default_rng([7, block])
    keys = random.integers(0, shape.keys, shape.rows)
    return Events(keys, *(random.integers(10_000, 1_000_000, shape.rows) for _ in range(2)))


def make(path: Path, shape: GroupShape) -> Path:
    """Make a merge-on-read table with one file group."""
    path.mkdir(parents=True)
    writer = _Writer(path, path.name, merge_on_read=True)
    writer.properties()
    folder = writer.partition("p=0")
    name = f"{FILE_ID}_0-1-0_{FIRST}.parquet"
    pq.write_table(_base(shape), folder / name, row_group_size=100_000)
    writer.note("p=0", FILE_ID, name, shape.base_rows, (folder / name).stat().st_size)
    writer.commit(FIRST, avro_schema(_TABLE))
    for number, blocks in enumerate(np.array_split(np.arange(shape.blocks), shape.files), start=1):
        _write_log(writer, folder / f".{FILE_ID}_{SECOND}.log.{number}_0-2-0", shape, blocks.tolist())
    writer.commit(SECOND, avro_schema(_TABLE))
    return path


def _write_log(writer: _Writer, file: Path, shape: GroupShape, blocks: list[int]) -> None:
    with file.open("wb") as stream:
        for block in blocks:
            stream.write(_block(shape, events_of(shape, block)))
    writer.note("p=0", FILE_ID, file.name, shape.rows * len(blocks), file.stat().st_size)


def _base(shape: GroupShape) -> pa.Table:
    """Base rows: every key's ordering value lies in the middle, so that some updates come too late."""
    numbers = np.arange(shape.base_rows)
    rows = _rows(Events(numbers, np.full(shape.base_rows, 100_000), numbers), FIRST)
    kept = pc.binary_join_element_wise("kept", rows.column("id"), "-")
    return rows.append_column("kept", kept).append_column("p", _repeated("0", shape.base_rows))


def _rows(events: Events, instant: str) -> pa.Table:
    count = len(events.keys)
    keys = pa.array(_texts(events.keys))
    meta = {name: _repeated("m", count) for name in META_COLUMNS}
    meta |= {"_hoodie_commit_time": _repeated(instant, count), "_hoodie_record_key": keys}
    data = {
        "id": keys,
        "ts": pa.array(events.ts),
        "v": pa.array(events.v),
        "pad": _repeated("x" * _PAD, count),
    }
    return pa.table({**meta, **data})


def _repeated(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), [text]).cast(pa.string())


def _texts(keys: Numbers) -> npt.NDArray[np.str_]:
    return np.char.zfill(keys.astype(np.str_), 12)


def _block(shape: GroupShape, events: Events) -> bytes:
    schema = pa.schema([*((name, pa.string()) for name in META_COLUMNS), *_COLUMNS.items()])
    if not shape.partial:
        schema = pa.schema([*schema, ("kept", pa.string()), ("p", pa.string())])
    headers = {_INSTANT: SECOND, _SCHEMA: json.dumps(json.loads(_avro_of(schema)))}
    if shape.partial:
        headers[_IS_PARTIAL] = "true"
    if shape.parquet:
        sink = io.BytesIO()
        rows = _rows(events, SECOND)
        more = {} if shape.partial else {"kept": _repeated("new", len(rows)), "p": _repeated("0", len(rows))}
        pq.write_table(pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **more}), sink)
        return _framed(_PARQUET_DATA, headers, sink.getvalue())
    content = struct.pack(">ii", 3, len(events.keys)) + _avro_records(events, partial=shape.partial)
    return _framed(_AVRO_DATA, headers, content)


def _avro_of(schema: pa.Schema) -> str:
    fields = [
        {
            "name": field.name,
            "type": ["null", "long" if field.type == pa.int64() else "string"],
            "default": None,
        }
        for field in schema
    ]
    return json.dumps({"type": "record", "name": "bench", "namespace": "hoodie", "fields": fields})


def _avro_records(events: Events, *, partial: bool) -> bytes:
    """All records at once: a matrix of bytes, one row per record."""
    keys = _texts(events.keys).astype("S12").view(np.uint8).reshape(-1, 12)
    text = [_text(SECOND), _text("m"), (_prefix(12), keys), _text("m"), _text("m")]
    data = [(_prefix(12), keys), _number(events.ts), _number(events.v), _text("x" * _PAD)]
    parts = [*text, *data, *([] if partial else [_text("new"), _text("0")])]
    pieces = [piece for part in parts for piece in part]
    width = sum(piece.shape[1] for piece in pieces)
    length = np.frombuffer(struct.pack(">i", width), np.uint8).reshape(1, -1)
    count = len(events.keys)
    rows = [np.broadcast_to(piece, (count, piece.shape[1])) for piece in (length, *pieces)]
    return np.concatenate(rows, axis=1).tobytes()


def _prefix(length: int) -> npt.NDArray[np.uint8]:
    """The branch of a nullable text, and its length."""
    zigzag = 2 * length
    octets = [zigzag] if zigzag < 128 else [zigzag & 127 | 128, zigzag >> 7]
    return np.array([[2, *octets]], dtype=np.uint8)


def _text(text: str) -> tuple[npt.NDArray[np.uint8], ...]:
    return _prefix(len(text)), np.frombuffer(text.encode(), np.uint8).reshape(1, -1)


def _number(values: Numbers) -> tuple[npt.NDArray[np.uint8], ...]:
    """Numbers between 8,192 and 1,048,575, which take three bytes."""
    zigzag = 2 * values
    octets = np.stack([zigzag & 127 | 128, zigzag >> 7 & 127 | 128, zigzag >> 14], axis=1)
    return np.full((1, 1), 2, np.uint8), octets.astype(np.uint8)


def expected(shape: GroupShape) -> dict[str, int]:
    """What a read must find, from the numbers alone: the number of rows, and sums of what won."""
    blocks = [events_of(shape, block) for block in range(shape.blocks)]
    base = np.arange(shape.base_rows)
    keys = np.concatenate([base, *(block.keys for block in blocks)])
    ts = np.concatenate([np.full(shape.base_rows, 100_000), *(block.ts for block in blocks)])
    v = np.concatenate([base, *(block.v for block in blocks)])
    order = np.lexsort((np.arange(len(keys)), ts, keys))
    last = order[np.append(np.flatnonzero(np.diff(keys[order])), len(order) - 1)]
    return {"rows": len(last), "ts": int(ts[last].sum()), "v": int(v[last].sum())}


class Peak:
    """The most memory of its own that this process had, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.anonymous = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.anonymous = max(self.anonymous, anonymous_memory())


def anonymous_memory() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


def read_and_measure(path: str) -> dict[str, Any]:
    """Read a table batch by batch and forget the batches: what was found, and the most memory it took."""
    import drawstring

    found = {"rows": 0, "ts": 0, "v": 0}
    scan = drawstring.open_table(path).snapshot().scan()
    before, started = anonymous_memory(), time.perf_counter()
    with Peak() as peak:
        for batch in scan.to_batches():
            found["rows"] += batch.num_rows
            for name in ("ts", "v"):
                found[name] += pc.sum(batch.column(name)).as_py() or 0
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "found": found,
        "before": before,
        "anonymous": peak.anonymous,
        "resident": most,
        "seconds": seconds,
    }


def measured(path: Path) -> dict[str, Any]:
    """Read a table in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_group", "--read", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def shapes(megabytes: int) -> list[GroupShape]:
    """The ways in which so many megabytes of log records are laid out."""
    rows = megabytes * 2**20 // 275
    return [
        GroupShape("few large blocks", 3, rows // 3),
        GroupShape("many small blocks", 3000, rows // 3000, files=1500),
        GroupShape("few large partial updates", 3, rows // 3, partial=True),
        GroupShape("many small partial updates", 3000, rows // 3000, files=30, partial=True),
        GroupShape("few large Parquet blocks", 3, rows // 3, parquet=True),
    ]


def main() -> int:
    """Make and read each kind of large file group."""
    parser = argparse.ArgumentParser(description="The memory that merging a large file group takes")
    parser.add_argument("--megabytes", type=int, default=1500, help="log records per file group, decoded")
    parser.add_argument("--only", help="one shape, by a part of its name")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read_and_measure(arguments.read)))
        return 0
    for shape in shapes(arguments.megabytes):
        if arguments.only and arguments.only not in shape.name:
            continue
        with tempfile.TemporaryDirectory(prefix="drawstring-large-") as folder:
            path = make(Path(folder) / "t", shape)
            result = measured(path)
            size = sum(file.stat().st_size for file in path.rglob(".*.log.*"))
            right = result["found"] == expected(shape)
            shutil.rmtree(path)
        print(
            f"{shape.name:28} {size / 2**20:6.0f} MB of logs  {result['seconds']:6.1f} s  "
            f"{result['anonymous'] / 2**20:6.0f} MB of memory  {result['resident'] / 2**20:6.0f} MB resident  "
            f"{'right' if right else 'WRONG'}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
