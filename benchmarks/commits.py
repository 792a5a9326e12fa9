"""What a commit costs beyond the files that it writes: `python -m benchmarks.commits`.

Prints the overhead of an empty commit on timelines of 100 and 10,000 instants, how long it takes to clean and archive
such a timeline, commits per second of one process and of sixteen, how long upserts of one row wait for each other, and
the in-process write of a million rows beside pyarrow writing the same partitioned Parquet.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

import drawstring
from drawstring.errors import CommitConflict
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.storage import LocalStorage
from drawstring.write.commit_encoding import encode_commit, encode_inflight
from drawstring.write.plan import avro_schema_text
from drawstring.write.services.archiving import archive
from drawstring.write.services.cleaning import clean
from drawstring.write.transaction import Committed, Transaction

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])
EMPTY = CommitMetadata("INSERT", (), extra={"schema": avro_schema_text(SCHEMA, "t")})
OPTIONS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows: int = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for instants in (100, 10_000):
            table = _table_of(root / f"t{instants}", instants)
            clock, processor = _overhead(table)
            print(
                f"empty commit, {instants:6} instants: {clock * 1000:8.1f} ms, processor {processor * 1000:.1f} ms"
            )
        _in_order(root / "old", 10_000)
        print(f"commits per second, one process: {_rate(root / 'one', 1, 100):6.1f}")
        print(f"commits per second, 16 processes: {_rate(root / 'many', 16, 10):5.1f}")
        for processes in (2, 16):
            print(
                f"one row upserted by {processes:2} processes: {_contended(root / f'c{processes}', processes)}"
            )
        _bulk(root, rows)
    return 0


def _table_of(path: Path, instants: int) -> LocalStorage:
    drawstring.create_table(str(path), SCHEMA, options=OPTIONS)
    completed, inflight = encode_commit(EMPTY, is_replace=False), encode_inflight("INSERT")
    timeline = path / ".hoodie" / "timeline"
    for number in range(instants):
        start = 20200101000000000 + number * 10
        (timeline / f"{start}.commit.requested").write_bytes(b"")
        (timeline / f"{start}.inflight").write_bytes(inflight)
        (timeline / f"{start}_{start + 5}.commit").write_bytes(completed)
    return LocalStorage(str(path))


def _commit(storage: LocalStorage) -> None:
    outcome = Transaction.begin(storage, operation="INSERT").commit(EMPTY)
    assert isinstance(outcome, Committed)


def _overhead(storage: LocalStorage) -> tuple[float, float]:
    """The median by the clock, and the mean of the processor's time."""
    _commit(storage)
    before = time.process_time()
    clock = statistics.median(_seconds(lambda: _commit(storage)) for _ in range(7))
    return clock, (time.process_time() - before) / 7


def _in_order(path: Path, instants: int) -> None:
    """Clean and archive a timeline that nobody ever did."""
    storage = _table_of(path, instants)
    cleaned = _seconds(lambda: clean(storage))
    archived = archive(storage)
    print(
        f"clean and archive of {instants:,} instants: {cleaned + archived.seconds:.2f} s "
        f"(clean {cleaned:.2f} s, archive of {len(archived.instants):,} {archived.seconds:.2f} s)"
    )


def _rate(path: Path, processes: int, commits: int) -> float:
    storage = _table_of(path, 0)
    # What was written before this must not be brought to disk by the commits that are timed.
    os.sync()
    workers = [
        multiprocessing.Process(target=_commit_often, args=(storage, commits)) for _ in range(processes)
    ]
    start = time.perf_counter()
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert all(worker.exitcode == 0 for worker in workers)
    return processes * commits / (time.perf_counter() - start)


def _commit_often(storage: LocalStorage, commits: int) -> None:
    for _ in range(commits):
        _commit(storage)


def _contended(path: Path, processes: int, seconds: float = 15.0) -> str:
    """Let processes upsert the same row as often as they can; tell how evenly they got their turns."""
    table = drawstring.create_table(str(path), SCHEMA, options=OPTIONS)
    row = pa.table({"id": [1], "v": ["x"]}, schema=SCHEMA)
    table.write(row)
    os.sync()
    with multiprocessing.Pool(processes) as pool:
        turns = pool.starmap(_upsert_often, [(str(path), row, seconds)] * processes)
    waits = sorted(wait for writer, _ in turns for wait in writer)
    counts = sorted(len(writer) for writer, _ in turns)
    return (
        f"{len(waits)} commits in {seconds:.0f} s, {counts[0]} to {counts[-1]} each, wait median "
        f"{statistics.median(waits):.2f} s, longest {waits[-1]:.2f} s, "
        f"{sum(refused for _, refused in turns)} gave up after their tries"
    )


def _upsert_often(path: str, row: pa.Table, seconds: float) -> tuple[list[float], int]:
    """How long each commit took, and how many writes others were always ahead of."""
    table, end = drawstring.open_table(path), time.perf_counter() + seconds
    waits: list[float] = []
    refused = 0
    while time.perf_counter() < end:
        try:
            waits.append(_seconds(lambda: table.write(row)))
        except CommitConflict:
            refused += 1
    return waits, refused


def _bulk(root: Path, rows: int) -> None:
    table = _rows(rows)
    options = {**OPTIONS, "hoodie.datasource.write.partitionpath.field": "p"}
    ours = drawstring.create_table(str(root / "ours"), table.schema, options=options)
    plain = root / "plain"
    partitioning = ds.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    format_options = ds.ParquetFileFormat().make_write_options(compression="zstd")

    def write_plain() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        ds.write_dataset(
            table, plain, format="parquet", partitioning=partitioning, file_options=format_options
        )

    os.sync()
    plain_seconds, plain_processor = _medians(write_plain)
    seconds, processor = _medians(lambda: ours.write(table, operation="bulk_insert"))
    print(
        f"in-process bulk_insert of {rows:,} rows: {seconds:.2f} s, pyarrow's dataset {plain_seconds:.2f} s, "
        f"ratio {seconds / plain_seconds:.2f}, of processor time {processor / plain_processor:.2f}"
    )


def _medians(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    found = []
    for _ in range(5):
        before = time.process_time()
        found.append((_seconds(act), time.process_time() - before))
    clock, processor = zip(*found, strict=True)
    return statistics.median(clock), statistics.median(processor)


def _rows(count: int) -> pa.Table:
    random = np.random.default_rng(7)
    return pa.table(
        {
            "id": np.arange(count),
            "p": pa.array([f"p{n}" for n in range(8)]).take(pa.array(np.arange(count) % 8)),
            "amount": random.random(count),
            "quantity": random.integers(0, 100, count),
            "note": pa.array(random.integers(0, 1 << 40, count)).cast(pa.string()),
        }
    )


def _seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


if __name__ == "__main__":
    raise SystemExit(main())
