"""Compaction of the metadata table itself: logs of file groups folded into new base files.

Hudi does it after ten deltacommits, or reading would slow down with every commit. It runs under the table's lock,
before the next deltacommit is written, and only while no instant is pending in the data table whose deltacommit is
completed here: a base file cannot be taken back, and a log that was left out would not be read again.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from drawstring.formats.avro_schemas import stored_metadata_schema
from drawstring.formats.hfile_writer import record_key_info, write_sorted
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileSlice
from drawstring.model.file_names import base_file_name
from drawstring.model.instant import Action
from drawstring.view.metadata_keys import ALL_PARTITIONS
from drawstring.view.metadata_records import FileSizes, decode_column_stats, decode_files, decode_record
from drawstring.view.metadata_table import FOLDER, MetadataTable, merge_files
from drawstring.write.commit_encoding import encode_commit
from drawstring.write.compaction_plan import encode_compaction_plan
from drawstring.write.metadata_table import layout, records
from drawstring.write.metadata_table.partition_ranges import range_of_record
from drawstring.write.metadata_table.writer import commit_metadata
from drawstring.write.publication import NewFile, Publication

MAX_DELTA_COMMITS = 10
"""`hoodie.metadata.compact.max.delta.commits` of Hudi 1.2, where it does not say otherwise."""
_TIMELINE = f"{FOLDER}/.hoodie/timeline"

logger = logging.getLogger(__name__)
Folded = dict[bytes, bytes]


def is_due(metadata: MetadataTable, *, after: int = MAX_DELTA_COMMITS) -> bool:
    """Whether so many deltacommits came since the last compaction, and none of them is pending in the data table."""
    completed = metadata.timeline.completed_writes
    last = max((i.requested_time for i in completed if i.action is Action.COMMIT), default="")
    deltas = [i for i in completed if i.action is Action.DELTACOMMIT and (i.completion_time or "") > last]
    if len(deltas) < after:
        return False
    waiting = metadata.pending_in_data & {i.requested_time for i in completed}
    if waiting or metadata.timeline.pending:
        logger.info(
            "Not compacting the metadata table now: %s is not decided",
            min(waiting, default="an instant of it"),
        )
        return False
    return True


@dataclass(frozen=True)
class MetadataCompaction:
    """A compaction that is ready to be published."""

    instant: str
    plan: bytes
    base_files: tuple[NewFile, ...]
    stats: tuple[WriteStat, ...]

    def publication(self, completion_time: str) -> Publication:
        """Return the steps; both times are later than everything on either timeline."""
        completed = encode_commit(commit_metadata("COMPACT", self.stats), is_replace=False)
        marked = f"{FOLDER}/.hoodie/.temp/{self.instant}"
        markers = [
            f"{marked}/{file.path.removeprefix(FOLDER + '/')}.marker.MERGE" for file in self.base_files
        ]
        return Publication(
            (
                NewFile(f"{_TIMELINE}/{self.instant}.compaction.requested", self.plan),
                NewFile(f"{_TIMELINE}/{self.instant}.compaction.inflight", b""),
                *(NewFile(path, b"") for path in markers),
                *self.base_files,
                NewFile(f"{_TIMELINE}/{self.instant}_{completion_time}.commit", completed),
            ),
            (marked,),
        )


def prepare_compaction(metadata: MetadataTable, instant: str) -> MetadataCompaction:
    """Compute new base files of all file groups that have logs; nothing is written."""
    slices: list[FileSlice] = []
    files: list[NewFile] = []
    stats: list[WriteStat] = []
    for name in sorted(metadata.indexes):
        for found in metadata.slices(name):
            if found.log_files:
                slices.append(found)
                file, stat = _compacted(metadata, name, found, instant)
                files.append(file)
                stats.append(stat)
    return MetadataCompaction(instant, encode_compaction_plan(slices), tuple(files), tuple(stats))


def _compacted(
    metadata: MetadataTable, name: str, found: FileSlice, instant: str
) -> tuple[NewFile, WriteStat]:
    entries = sorted(_fold(metadata, name, found).items())
    keys = pa.array([key for key, _ in entries], pa.binary())
    values = pa.array([value for _, value in entries], pa.binary())
    content = write_sorted(keys, values, schema=stored_metadata_schema(), info=record_key_info(keys))
    file_name = base_file_name(found.group.file_id, layout.WRITE_TOKEN, instant, "hfile")
    stat = WriteStat(
        found.group.file_id,
        f"{name}/{file_name}",
        name,
        num_writes=len(entries),
        num_updates=len(entries),
        file_size=len(content),
        prev_commit=found.base_file.instant if found.base_file else "null",
        prev_base_file=found.base_file.name if found.base_file else None,
    )
    return NewFile(f"{FOLDER}/{name}/{file_name}", content), stat


def _fold(metadata: MetadataTable, name: str, found: FileSlice) -> Folded:
    if name == layout.FILES:
        return _folded_listing(metadata, found)
    folded: Folded = {}
    for entries, schema, deleted in metadata.history(found):
        for key in deleted:
            folded.pop(key, None)
        is_own = _facts(schema) == _facts(stored_metadata_schema()) if entries else True
        for key, value in entries:
            stored = bytes(value) if is_own else _recoded(value, schema)
            folded[key] = _newest(name, folded.get(key), stored)
    return folded


def _recoded(value: memoryview, schema: str) -> bytes:
    """Return a record that another release wrote in the schema of today."""
    parsed = fastavro.parse_schema(json.loads(schema))
    record: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed, None, return_record_name=True)
    return records.encode_record(record)


def _newest(name: str, older: bytes | None, newer: bytes) -> bytes:
    """Return the record that counts: the newer one, but ranges of partitions cover the older one too.

    Records stand by when writes were requested: one that is marked as whole lacks what a write added that was
    requested earlier and completed later.
    """
    if name != layout.PARTITION_STATS or older is None:
        return newer
    record: Mapping[str, Any] = decode_record(memoryview(newer), stored_metadata_schema())[
        "ColumnStatsMetadata"
    ]
    is_whole = record["isTightBound"]
    if record["isDeleted"]:
        return newer
    found = decode_column_stats([memoryview(older), memoryview(newer)], stored_metadata_schema())
    ranges = [range_of_record(one) for one in found]
    if ranges == [None, None]:
        return newer if is_whole else _widest(older, newer)
    known = next(one.type for one in ranges if one is not None)
    before, after = (range_of_record(one, known) for one in found)
    if before is None or after is None:
        return newer
    both = before.widened(after) if is_whole else before.merged(after)
    return newer if both == after else records.partition_stats_record(record["fileName"], both)[1]


def _widest(older: bytes, newer: bytes) -> bytes:
    """Merge two ranges of an older release as they are stored, for they do not tell the type of their column."""
    before, record = (_named(value) for value in (older, newer))
    one, two = before["ColumnStatsMetadata"][1], record["ColumnStatsMetadata"][1]
    for name, choose in (("minValue", min), ("maxValue", max)):
        bounds = [found[name] for found in (one, two) if found[name] is not None]
        # A record and its name.
        two[name] = choose(bounds, key=lambda bound: bound[1]["value"])
    for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize"):
        two[name] = (one[name] or 0) + (two[name] or 0)
    return records.encode_record(record)


def _named(value: bytes) -> dict[str, Any]:
    parsed = fastavro.parse_schema(json.loads(stored_metadata_schema()))
    found: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed, None, return_record_name=True)
    return dict(found)


def _folded_listing(metadata: MetadataTable, found: FileSlice) -> Folded:
    merged: dict[bytes, FileSizes] = {}
    for entries, schema, deleted in metadata.history(found):
        for key in deleted:
            merged.pop(key, None)
        for key, value in entries:
            merge_files(merged.setdefault(key, {}), decode_files(value, schema))
    folded: Folded = {}
    for key, sizes in merged.items():
        known = {name: size for name, size in sizes.items() if size is not None}
        name = key.decode()
        if name == ALL_PARTITIONS:
            folded[key] = records.partition_list_record(known)[1]
        elif known:
            folded[key] = records.file_list_record(name, known)[1]
    return folded


@lru_cache(maxsize=16)
def _facts(schema: str) -> Any:
    def without_doc(avro: Any) -> Any:
        if isinstance(avro, dict):
            return {key: without_doc(value) for key, value in avro.items() if key != "doc"}
        return [without_doc(part) for part in avro] if isinstance(avro, list) else avro

    return without_doc(json.loads(schema))
