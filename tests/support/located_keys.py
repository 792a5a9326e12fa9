"""Where a commit puts record keys, found by reading its files: what a writer knows without."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.file_names import parse_base_file
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage
from drawstring.write.metadata_table.records import KeyLocation


def located_by_reading(storage: Storage, metadata: CommitMetadata) -> tuple[list[KeyLocation], pa.Array]:
    """Return the keys that base files of a commit have and their predecessors had not, and those that vanished.

    Keys that move to another group within the commit are not deleted.
    """
    located, vanished = [], []
    for stat in metadata.stats:
        if parse_base_file(stat.partition_path, stat.name, stat.file_size) is None:
            continue
        keys = _keys(storage, stat.path)
        before = pa.array([], pa.string())
        if stat.prev_base_file:
            folder = stat.path[: -len(stat.name)]
            before = _keys(storage, folder + stat.prev_base_file.rsplit("/", 1)[-1])
        located.append(KeyLocation(stat.partition_path, stat.file_id, _without(keys, before)))
        vanished.append(_without(before, keys))
    gone = pa.concat_arrays(vanished) if vanished else pa.array([], pa.string())
    for found in located:
        gone = _without(gone, found.keys)
    return [found for found in located if len(found.keys)], gone


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, others))) if len(others) else keys


def _keys(storage: Storage, path: str) -> pa.Array:
    with storage.open(path) as file:
        column = pq.read_table(file, columns=[RECORD_KEY]).column(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
