"""Archived instants: read only when a question reaches before the active timeline."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import fastavro
import pyarrow.parquet as pq

from drawstring.config.table_config import TableConfig
from drawstring.errors import CorruptTable
from drawstring.formats.log_blocks import BlockType, LogBlock, scan_log_file
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.storage.base import Storage
from drawstring.timeline.commit_metadata import commit_metadata_of, parse_commit_metadata

_ARCHIVE_NAME = re.compile(r"^\.commits_\.archive\.(\d+)_")
_WRITES = {action.value: action for action in WRITE_ACTIONS}


@dataclass(frozen=True)
class ArchivedWrite:
    """A completed write that has left the active timeline."""

    instant: Instant
    metadata: CommitMetadata


@dataclass(frozen=True)
class History:
    """The archived timeline of one table, in either layout."""

    storage: Storage
    config: TableConfig

    @cached_property
    def writes(self) -> tuple[ArchivedWrite, ...]:
        """All archived writes by requested time; newer files win over older ones."""
        found = self._layout_2() if self.config.layout >= 2 else self._layout_1()
        by_time = {write.instant.requested_time: write for write in found}
        return tuple(by_time[time] for time in sorted(by_time))

    @cached_property
    def completion_times(self) -> Mapping[str, str]:
        """When archived writes completed, by requested time."""
        return {w.instant.requested_time: w.instant.completion_time or "" for w in self.writes}

    def _layout_2(self) -> Iterator[ArchivedWrite]:
        directory = self.config.history_directory
        for name in self._segments(directory):
            path = f"{directory}/{name}"
            try:
                with self.storage.open(path) as file:
                    rows = pq.read_table(
                        file, columns=["instantTime", "completionTime", "action", "metadata"]
                    ).to_pylist()
            except FileNotFoundError:
                raise
            except Exception as error:
                raise _corrupt(path, str(error)) from error
            yield from (write for row in rows if (write := _write_of_row(row, path)))

    def _segments(self, directory: str) -> list[str]:
        """The files of the current manifest, oldest first."""
        try:
            names = {entry.name for entry in self.storage.list(directory)}
        except FileNotFoundError:
            return []
        manifests = sorted(int(n[9:]) for n in names if n.startswith("manifest_") and n[9:].isdigit())
        version = self._version(directory) if "_version_" in names else None
        number = version if version in manifests else (manifests[-1] if manifests else None)
        if number is None:
            return []
        manifest = json.loads(self.storage.read(f"{directory}/manifest_{number}"))
        return sorted(entry["fileName"] for entry in manifest.get("files") or ())

    def _version(self, directory: str) -> int | None:
        content = self.storage.read(f"{directory}/_version_").decode("utf-8", "replace").strip()
        return int(content) if content.isdigit() else None

    def _layout_1(self) -> Iterator[ArchivedWrite]:
        directory = self.config.history_directory
        try:
            entries = list(self.storage.list(directory))
        except FileNotFoundError:
            return
        numbered = [(int(m.group(1)), e.path) for e in entries if (m := _ARCHIVE_NAME.match(e.name))]
        for _, path in sorted(numbered):
            for block in scan_log_file(self.storage, path).blocks:
                if block.type is BlockType.AVRO_DATA:
                    yield from _writes_of_block(block)


def _write_of_row(row: Mapping[str, Any], path: str) -> ArchivedWrite | None:
    action = _WRITES.get(row["action"])
    if action is None:
        return None
    metadata = parse_commit_metadata(row["metadata"] or b"", source=f"{path}#{row['instantTime']}")
    instant = Instant(
        row["instantTime"], action, State.COMPLETED, row["completionTime"] or row["instantTime"]
    )
    return ArchivedWrite(instant, metadata)


def _writes_of_block(block: LogBlock) -> Iterator[ArchivedWrite]:
    for record in _records(block):
        action = _WRITES.get(record.get("actionType") or "")
        if action is None or record.get("actionState") != State.COMPLETED.name:
            continue
        slot = "hoodieReplaceCommitMetadata" if action is Action.REPLACECOMMIT else "hoodieCommitMetadata"
        metadata = commit_metadata_of(record.get(slot) or record.get("hoodieCommitMetadata") or {})
        time = record["commitTime"]
        yield ArchivedWrite(Instant(time, action, State.COMPLETED, time), metadata)


def _records(block: LogBlock) -> Iterator[dict[str, Any]]:
    schema = fastavro.parse_schema(json.loads(block.schema_json or "{}"))
    stream = io.BytesIO(block.content().to_pybytes())
    stream.seek(4)
    count = int.from_bytes(stream.read(4), "big")
    for _ in range(count):
        length = int.from_bytes(stream.read(4), "big")
        record = fastavro.schemaless_reader(io.BytesIO(stream.read(length)), schema, None)
        if isinstance(record, dict):
            yield record


def _corrupt(path: str, what: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read the archived timeline file {path}: {what}. Restore the file.",
        condition="CORRUPT_HISTORY",
        path=path,
    )
