"""The record index of the metadata table: key to file group, without reading any base file."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.formats.hfile import Entry
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.view.metadata_keys import file_groups_of
from drawstring.view.metadata_records import decode_record_index
from drawstring.view.metadata_table import MetadataTable
from drawstring.write.index import Located

PARTITION = "record_index"
_SHARD = re.compile(r"^record-index-(\d{4})-0$")
_UUID_ENCODING = 0
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordIndex:
    """Asks the shards of the record index that the keys belong to; what it names and is no longer there is left out."""

    table: MetadataTable
    shards: tuple[FileSlice, ...]

    @classmethod
    def of(cls, state: TableState) -> RecordIndex | None:
        """Return the record index of a table; None, with a warning, where there is none to be trusted."""
        table = state.metadata_table
        if table is None or PARTITION not in table.indexes:
            return _absent(state, "it has none that is in step with its timeline")
        shards = sorted(table.slices(PARTITION), key=lambda found: found.group.file_id)
        names = [_SHARD.match(shard.group.file_id) for shard in shards]
        if not shards or [name and int(name.group(1)) for name in names] != list(range(len(shards))):
            return _absent(state, "its shards are not numbered from 0 on")
        return cls(table, tuple(shards))

    def locate(self, storage: Storage, keys: pa.Array, slices: Sequence[FileSlice]) -> list[Located]:
        """Return, for each slice that holds any of the keys, which ones."""
        if not len(keys):
            return []
        by_group = {found.group: found for found in slices}
        numbers: dict[FileGroupId, list[int]] = {}
        shard_of = file_groups_of(keys, len(self.shards))
        for shard in np.unique(shard_of).tolist():
            asked = np.flatnonzero(shard_of == shard)
            texts = keys.take(pa.array(asked)).to_pylist()
            for number, group in self._places(self.shards[shard], texts):
                numbers.setdefault(group, []).append(int(asked[number]))
        return [
            Located(by_group[group], np.asarray(found))
            for group, found in numbers.items()
            if group in by_group
        ]

    def _places(self, shard: FileSlice, keys: list[str]) -> Iterator[tuple[int, FileGroupId]]:
        wanted = [key.encode() for key in keys]
        newest: dict[bytes, tuple[memoryview, str]] = {}
        for entries, schema, deleted in self.table.history(shard, lambda file: file.lookup(wanted)):
            newest.update((key, (value, schema)) for key, value in entries)
            for key in deleted:
                newest.pop(key, None)
        groups = _decoded(newest)
        for number, key in enumerate(wanted):
            if key in groups:
                yield number, groups[key]


def _decoded(found: dict[bytes, tuple[memoryview, str]]) -> dict[bytes, FileGroupId]:
    by_schema: dict[str, list[Entry]] = {}
    for key, (value, schema) in found.items():
        by_schema.setdefault(schema, []).append((key, value))
    groups: dict[bytes, FileGroupId] = {}
    for schema, entries in by_schema.items():
        records = decode_record_index([value for _, value in entries], schema)
        groups.update(
            (key, _group(record))
            for (key, _), record in zip(entries, records, strict=True)
            if record is not None
        )
    return groups


def _group(record: Any) -> FileGroupId:
    partition, high, low, number, file_id, encoding = record
    if encoding != _UUID_ENCODING:
        return FileGroupId(partition, file_id)
    halves = b"".join(int(half).to_bytes(8, "big", signed=True) for half in (high, low))
    # Ids of new groups end in a number, those of Hudi 0.x may not.
    suffix = f"-{number}" if number >= 0 else ""
    return FileGroupId(partition, f"{uuid.UUID(bytes=halves)}{suffix}")


def _absent(state: TableState, why: str) -> RecordIndex | None:
    logger.warning(
        "Not using the record index of %s: %s. Keys are looked for in the base files of all partitions instead.",
        state.storage.root,
        why,
    )
    return None
