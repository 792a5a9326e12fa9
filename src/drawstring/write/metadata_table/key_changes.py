"""What a commit does to the record index: which keys live in other file groups from now on, and which are gone.

File groups that the commit writes to are read before and after it, their key column alone; groups in which it only
updated rows are not. So whatever decides which rows survive, a base file or a merge with logs, decides here too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.commit_metadata import SERVICE_OPERATIONS, CommitMetadata, WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.file_names import bucket_of_file_id, parse_base_file, parse_log_file
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.write.metadata_table.changes import PathOf, at_its_name
from drawstring.write.metadata_table.records import KeyLocation

_NO_KEYS = pa.array([], pa.string())
_MERGES = SERVICE_OPERATIONS - {"CLUSTER"}
"""Operations after which every key is where it was."""


def key_changes(
    before: TableState, metadata: CommitMetadata, table_schema: pa.Schema, *, path_of: PathOf = at_its_name
) -> tuple[list[KeyLocation], pa.Array]:
    """Return the keys that have another place after a commit, and those that have none.

    Args:
        before: the table as the commit finds it.
        metadata: what the commit says.
        table_schema: the table's schema, with meta columns.
        path_of: where the commit's files are now.
    """
    if metadata.operation in _MERGES:
        return [], _NO_KEYS
    reader = _KeyReader(before, table_schema)
    located, gone = [], []
    for group, stats in _by_group(metadata).items():
        old = reader.slice_of(group)
        if not _may_change_keys(stats, old):
            continue
        keys_before, keys_after = reader.keys(old), reader.keys(_slice_after(group, old, stats, path_of))
        located.append(KeyLocation(group.partition_path, group.file_id, _without(keys_after, keys_before)))
        gone.append(_without(keys_before, keys_after))
    gone += [
        reader.keys(reader.slice_of(FileGroupId(path, file_id)))
        for path, file_ids in metadata.replaced.items()
        for file_id in file_ids
    ]
    located = [found for found in located if len(found.keys)]
    deleted = pa.concat_arrays(gone) if gone else _NO_KEYS
    for found in located:
        deleted = _without(deleted, found.keys)
    return located, deleted


def _by_group(metadata: CommitMetadata) -> Mapping[FileGroupId, list[WriteStat]]:
    found: dict[FileGroupId, list[WriteStat]] = {}
    for stat in metadata.stats:
        found.setdefault(FileGroupId(stat.partition_path, stat.file_id), []).append(stat)
    return found


def _may_change_keys(stats: Iterable[WriteStat], old: FileSlice | None) -> bool:
    """Whether keys may come or go: where logs delete, an update can bring a key back; a bucket's log holds anything."""
    if old is None or old.log_files or bucket_of_file_id(old.group.file_id) is not None:
        return True
    return any(stat.num_inserts or stat.num_deletes for stat in stats)


def _slice_after(
    group: FileGroupId, old: FileSlice | None, stats: Iterable[WriteStat], path_of: PathOf
) -> FileSlice:
    """Return a group's slice with the files that the commit adds, at the places where they are now."""
    found = old or FileSlice(group, "")
    for stat in stats:
        base = parse_base_file(stat.partition_path, stat.name, stat.file_size)
        if base is not None:
            found = FileSlice(group, base.instant, replace(base, path=path_of(stat.path)))
            continue
        log = parse_log_file(stat.partition_path, stat.name, stat.file_size)
        if log is not None:
            log = replace(log, path=path_of(stat.path))
            found = replace(
                found, base_instant=found.base_instant or log.instant, log_files=(*found.log_files, log)
            )
    return found


class _KeyReader:
    """Reads the keys that readers of a table see in slices."""

    def __init__(self, state: TableState, table_schema: pa.Schema) -> None:
        self._state, self._schema = state, table_schema
        self._facts = TaskFacts(state, TableSchemas(state, None))
        self._slices: dict[str, Mapping[str, FileSlice]] = {}

    def slice_of(self, group: FileGroupId) -> FileSlice | None:
        path = group.partition_path
        if path not in self._slices:
            found = self._state.view(None).slices(path)
            self._slices[path] = {one.group.file_id: one for one in found}
        return self._slices[path].get(group.file_id)

    def keys(self, found: FileSlice | None) -> pa.Array:
        if found is None or not found.files:
            return _NO_KEYS
        batches = read_task(
            self._facts.task(found),
            storage=self._state.storage,
            table_schema=self._schema,
            columns=[RECORD_KEY],
        )
        columns = [batch.column(0).cast(pa.string()) for batch in batches]
        return pa.concat_arrays(columns) if columns else _NO_KEYS


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, others))) if len(others) else keys
