"""The record index of the metadata table: which file group holds a key, and how many keys there are."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.formats.hfile import Entry, HFileReader
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.view.metadata_keys import file_groups_of
from drawstring.view.metadata_records import decode_record_index
from drawstring.view.metadata_table import MetadataTable

PARTITION = "record_index"
_SHARD = re.compile(r"^record-index-(\d{4})-0$")
_UUID_ENCODING = 0


@dataclass(frozen=True)
class RecordIndexShards:
    """The file groups of the record index; a key lies in one of them, by its hash."""

    table: MetadataTable
    shards: tuple[FileSlice, ...]

    @classmethod
    def of(cls, table: MetadataTable | None) -> RecordIndexShards | str:
        """Return the shards of a table's record index, or why there are none to be trusted."""
        if table is None or PARTITION not in table.indexes:
            return "it has none that is in step with its timeline"
        shards = sorted(table.slices(PARTITION), key=lambda found: found.group.file_id)
        names = [_SHARD.match(shard.group.file_id) for shard in shards]
        if not shards or [name and int(name.group(1)) for name in names] != list(range(len(shards))):
            return "its shards are not numbered from 0 on"
        return cls(table, tuple(shards))

    def places(self, keys: pa.Array) -> Iterator[tuple[int, FileGroupId]]:
        """Yield the number of each key that is known, and the file group that holds it."""
        shard_of = file_groups_of(keys, len(self.shards))
        for shard in np.unique(shard_of).tolist():
            asked = np.flatnonzero(shard_of == shard)
            texts = keys.take(pa.array(asked)).to_pylist()
            for number, group in self._places(self.shards[shard], texts):
                yield int(asked[number]), group

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

    def count(self, *, most_log_bytes: int) -> int | None:
        """Return how many keys are known; None where so much of them stands in logs that counting takes long."""
        if sum(log.size for shard in self.shards for log in shard.log_files) > most_log_bytes:
            return None
        return sum(map(self._count, self.shards))

    def _count(self, shard: FileSlice) -> int:
        """The entries of the base file as its trailer tells them, and what logs add and take."""
        is_there = self._told_by_logs(shard)
        stored, known = self.table.base_entries(shard, is_there)
        return stored + sum(is_there.values()) - len({key for key, _ in known})

    def _told_by_logs(self, shard: FileSlice) -> dict[bytes, bool]:
        is_there: dict[bytes, bool] = {}
        without_base = FileSlice(shard.group, shard.base_instant, None, shard.log_files)
        for entries, _, deleted in self.table.history(without_base, HFileReader.entries):
            is_there.update((key, True) for key, _ in entries)
            is_there.update((key, False) for key in deleted)
        return is_there


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
