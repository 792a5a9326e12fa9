"""Where tasks write: to files that no reader lists, until a decided commit gives them their names.

A task of a lost executor or a dead driver may go on writing for long. What it leaves is below the instant's folder in
`.hoodie/.temp`, which the next writer deletes.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from drawstring.errors import CorruptTable
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_names import join_path
from drawstring.model.instant import Instant
from drawstring.storage.base import Storage
from drawstring.view.listing import METAFILE
from drawstring.write.markers import CREATE, MERGE, TEMP, marker_path, staged_path
from drawstring.write.slots import Step

_THREADS = 8
_PARQUET_END = b"PAR1"
_UNPUBLISHED = re.compile(r"^\.[0-9a-f]{32}\.tmp$")
"""How local storage names a file until it is whole."""
_UNPUBLISHED_SECONDS = 600


def check_staged(storage: Storage, requested_time: str, stats: Iterable[WriteStat]) -> None:
    """Raise `CorruptTable` when a file is not there whole: a commit must not name it."""

    def check(file: tuple[str, int]) -> None:
        name, written = file
        path = staged_path(requested_time, name)
        try:
            size = storage.stat(path).size
        except FileNotFoundError:
            raise _damaged(storage, name, "it is gone") from None
        if size != written:
            raise _damaged(storage, name, f"it has {size} bytes, {written} were written")
        if name.endswith(".parquet") and not _ends_as_parquet(storage, path, size):
            raise _damaged(storage, name, "it does not end as a Parquet file does")

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(check, [file for stat in stats for file in stat.sizes.items()]))


def _ends_as_parquet(storage: Storage, path: str, size: int) -> bool:
    with storage.open(path) as source:
        source.seek(max(0, size - len(_PARQUET_END)))
        return bytes(source.read(len(_PARQUET_END))) == _PARQUET_END


def _damaged(storage: Storage, path: str, what: str) -> CorruptTable:
    return CorruptTable(
        f"A file of this write to {storage.root}, {path}, was damaged before the commit: {what}. Nothing was "
        "committed; look for a full or failing disk, then run the write again.",
        condition="WRITTEN_FILE_DAMAGED",
        path=path,
    )


def publishing_steps(requested_time: str, stats: Iterable[WriteStat]) -> Iterator[Step]:
    """Yield the steps that give staged files their names.

    Markers come first: Apache Hudi, should it roll the instant back before it is completed, deletes what they name.
    """
    stats = list(stats)
    for stat in stats:
        # A log file is always a new file, whatever it is appended to.
        kind = CREATE if stat.prev_commit == "null" or stat.log_files else MERGE
        yield Step.create(marker_path(requested_time, stat.path, kind), b"")
        for path in stat.cdc_files:
            yield Step.create(marker_path(requested_time, path, CREATE), b"")
    for stat in stats:
        for path in stat.sizes:
            yield Step.rename(staged_path(requested_time, path), path)
    for partition in sorted({stat.partition_path for stat in stats}):
        yield Step.create(join_path(partition, METAFILE), _metafile(requested_time, partition))


def _metafile(requested_time: str, partition: str) -> bytes:
    depth = len(partition.split("/")) if partition else 0
    return f"#partition metadata\ncommitTime={requested_time}\npartitionDepth={depth}\n".encode()


def sweep(storage: Storage, folders: Iterable[str], pending: Iterable[Instant]) -> None:
    """Delete folders of instants that are not pending: what stragglers left, and markers of finished writes.

    `folders` must have been listed before the timeline was: a write makes its folder after its instant.
    """
    kept = {instant.requested_time for instant in pending}
    for name in folders:
        if name.isdigit() and name not in kept:
            drop_folder(storage, name)


def drop_folder(storage: Storage, name: str) -> None:
    """Delete the folder of an instant; where a straggler is writing into it, a later writer sweeps it."""
    with suppress(OSError):
        storage.delete(f"{TEMP}/{name}", recursive=True)


def is_unpublished(name: str) -> bool:
    """Whether this is a file that its writer was killed over, or is at work on, before it got its name."""
    return _UNPUBLISHED.match(name) is not None


def sweep_unpublished(storage: Storage, directories: Iterable[str]) -> None:
    """Delete files that writers were killed over before they got their names; young ones may be about to get them."""
    for directory in directories:
        with suppress(OSError):
            for name in storage.list_names(directory):
                if is_unpublished(name):
                    _drop_old(storage, f"{directory}/{name}")


def _drop_old(storage: Storage, path: str) -> None:
    age_ms = time.time() * 1000 - storage.stat(path).modified_ms
    if age_ms > _UNPUBLISHED_SECONDS * 1000:
        storage.delete(path)


def temporary_folders(storage: Storage) -> list[str]:
    """Return the names of the folders in which instants keep markers and staged files."""
    try:
        return [entry.name for entry in storage.list(TEMP) if entry.is_directory]
    except FileNotFoundError:
        return []
