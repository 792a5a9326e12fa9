"""Record keys of log files, and which logs can hold keys that the base file beside them lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from drawstring.model.file_group import FileGroupId, FileSlice, LogFile
from drawstring.model.read_task import MergeSpec, ReadTask
from drawstring.planning.table_state import TableState
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import META_FIELDS, RECORD_KEY
from drawstring.storage.base import Storage


def keys_in_log(storage: Storage, path: str) -> Iterator[pa.Array]:
    """Yield the record keys of a log file's records, without those that it deletes."""
    log_file = LogFile(path, storage.stat(path).size, "", "", 1)
    group = FileGroupId("", "")
    task = ReadTask(FileSlice(group, "", None, (log_file,)), MergeSpec("COMMIT_TIME_ORDERING"))
    schema = pa.schema(META_FIELDS)
    for batch in read_task(task, storage=storage, table_schema=schema, columns=[RECORD_KEY]):
        yield batch.column(0)


def searched_slices(state: TableState, slices: Iterable[FileSlice]) -> tuple[FileSlice, ...]:
    """Return slices with the logs alone that a look-up of keys has to read beside the base file.

    A log holds keys of its base file, but for two kinds: that of a group without base file, and that of a writer that
    began before the base file was there. A compaction may have dropped a key meanwhile that the older base file had.
    """
    return tuple(
        replace(found, log_files=tuple(log for log in found.log_files if _may_add_keys(state, found, log)))
        for found in slices
    )


def _may_add_keys(state: TableState, found: FileSlice, log: LogFile) -> bool:
    base = found.base_file
    return base is None or log.instant < _completion_time(state, base.instant)


def _completion_time(state: TableState, instant: str) -> str:
    active = state.timeline.by_requested_time.get(instant)
    completed = active.completion_time if active else state.history.completion_times.get(instant)
    return completed or instant
