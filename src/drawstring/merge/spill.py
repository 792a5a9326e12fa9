"""Log records larger than memory: partitioned by key into files, so that each part can be merged by itself."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drawstring.merge.log_records import LogRecords, Segment
from drawstring.merge.ordering import DATA

_KEY, _KIND, _SEGMENT, _ORDERING = "__key", "__kind", "__segment", "__ordering"
_MULTIPLIERS = np.random.default_rng(20_260_101).integers(1, 2**63, 64, dtype=np.uint64) | np.uint64(1)


@dataclass(frozen=True)
class Parts:
    """Files of events, one per part of the keys."""

    paths: tuple[str, ...]
    assigned: tuple[frozenset[str] | None, ...]
    level: int = 0

    def size(self, index: int) -> int:
        """The bytes of a part, decoded."""
        return os.path.getsize(self.paths[index])

    @contextlib.contextmanager
    def split(self, index: int, *, count: int) -> Iterator[Parts]:
        """Split a part again, by other bits of its keys' hashes."""
        with (
            tempfile.TemporaryDirectory(prefix="drawstring-merge-") as folder,
            pa.memory_map(self.paths[index]) as source,
        ):
            stored = pa.ipc.open_file(source)
            tables = (
                pa.Table.from_batches([stored.get_batch(number)])
                for number in range(stored.num_record_batches)
            )
            paths = _write_parts(tables, folder, count=count, level=self.level + 1)
            yield Parts(paths, self.assigned, self.level + 1)

    def load(self, index: int, names: Sequence[str], ordering_count: int) -> LogRecords | None:
        """The events of one part; None when it has none."""
        with pa.memory_map(self.paths[index]) as source:
            table = pa.ipc.open_file(source).read_all()
        if not table.num_rows:
            return None
        table = table.combine_chunks()
        encoded = table.column(_KEY).chunk(0).dictionary_encode()
        kinds = np.asarray(table.column(_KIND).chunk(0))
        return LogRecords(
            table.select(list(names)),
            encoded.dictionary,
            np.asarray(encoded.indices).astype(np.int64),
            kinds,
            np.where(kinds == DATA, np.arange(len(kinds)), -1),
            tuple(table.column(f"{_ORDERING}{i}").chunk(0) for i in range(ordering_count)),
            tuple(self._segments(np.asarray(table.column(_SEGMENT).chunk(0)))),
        )

    def _segments(self, numbers: npt.NDArray[np.int32]) -> Iterator[Segment]:
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(bounds):
            yield Segment(range(start, stop), self.assigned[int(numbers[start])])


@contextlib.contextmanager
def parted(stream: Iterable[LogRecords], *, count: int) -> Iterator[Parts]:
    """Write events to `count` files by their keys."""
    with tempfile.TemporaryDirectory(prefix="drawstring-merge-") as folder:
        assigned: list[frozenset[str] | None] = []
        paths = _write_parts((_events(records, assigned) for records in stream), folder, count=count, level=0)
        yield Parts(paths, tuple(assigned))


def _write_parts(tables: Iterable[pa.Table], folder: str, *, count: int, level: int) -> tuple[str, ...]:
    paths = tuple(os.path.join(folder, f"part-{index}.arrow") for index in range(count))
    with contextlib.ExitStack() as stack:
        writers: list[pa.RecordBatchFileWriter] = []
        for events in tables:
            if not writers:
                writers = [stack.enter_context(pa.ipc.new_file(path, events.schema)) for path in paths]
            part = _hashes(events.column(_KEY).chunk(0), level) % np.uint64(count)
            for index, writer in enumerate(writers):
                writer.write_table(events.filter(pa.array(part == index)))
    return paths


def _events(records: LogRecords, assigned: list[frozenset[str] | None]) -> pa.Table:
    """One row per event: its data (null for deletes) and what merging needs to know."""
    rows = pa.array(records.rows, mask=records.rows < 0)
    table = records.data.take(rows)
    numbers = np.empty(len(records.kinds), dtype=np.int32)
    for segment in records.segments:
        numbers[segment.events.start : segment.events.stop] = len(assigned)
        assigned.append(segment.columns)
    table = table.append_column(_KEY, records.keys.take(pa.array(records.key_ids)))
    table = table.append_column(_KIND, pa.array(records.kinds))
    table = table.append_column(_SEGMENT, pa.array(numbers))
    for index, values in enumerate(records.orderings):
        table = table.append_column(f"{_ORDERING}{index}", values)
    return table.combine_chunks()


def _hashes(keys: pa.Array, level: int) -> npt.NDArray[np.uint64]:
    """A number for each key, from all its bytes and their places; each level has numbers of its own."""
    _, offsets_buffer, data_buffer = keys.cast(pa.binary()).buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(
        np.int64
    )
    octets = np.frombuffer(data_buffer, dtype=np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    lengths = np.diff(offsets)
    places = np.arange(len(octets)) - np.repeat(starts, lengths)
    products = np.append((octets + np.uint64(1)) * _MULTIPLIERS[(places + 7 * level) % 64], np.uint64(0))
    sums = np.add.reduceat(products, starts) if len(starts) else np.empty(0, dtype=np.uint64)
    sums = np.where(lengths > 0, sums, np.uint64(0))
    mixed: npt.NDArray[np.uint64] = (sums ^ (sums >> np.uint64(29))) >> np.uint64(7)
    return mixed


class WinnerFile:
    """Winners of part after part, in a file that is mapped rather than read. Use it as a context."""

    def __init__(self, schema: pa.Schema) -> None:
        handle, self._path = tempfile.mkstemp(prefix="drawstring-winners-", suffix=".arrow")
        os.close(handle)
        self._writer = pa.ipc.new_file(self._path, schema)

    def __enter__(self) -> WinnerFile:
        return self

    def __exit__(self, *error: object) -> None:
        """Unlink the file; its bytes live as long as the table that `finish` returned."""
        with contextlib.suppress(pa.ArrowException, OSError):
            self._writer.close()
        os.unlink(self._path)

    def add(self, winners: pa.Table) -> None:
        """Append rows."""
        self._writer.write_table(winners)

    def finish(self) -> pa.Table:
        """All rows."""
        self._writer.close()
        return pa.ipc.open_file(pa.memory_map(self._path)).read_all()
