"""Archived instants: read only when a question reaches before the active timeline."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.config.table_config import ARCHIVE_FOLDER, HISTORY_PATH, TableConfig
from drawstring.errors import CorruptTable, DrawstringError
from drawstring.formats.log_blocks import BlockType, LogBlock, LogScan, scan_log_file
from drawstring.model.commit_metadata import CommitMetadata
from drawstring.model.flipped_names import flipped_name
from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State
from drawstring.storage.base import FileInfo, Storage
from drawstring.timeline.commit_metadata import checked_metadata_of, parse_commit_metadata
from drawstring.timeline.folders import entries

_ARCHIVE_NAME = re.compile(r"^\.commits_\.archive\.(\d+)_")
_ENTRY_NAMES = frozenset(
    {"hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "commitTime", "actionType", "actionState"}
)
_ACTIONS = {action.value: action for action in Action}
_TIMES = ("instantTime", "completionTime", "action")
_NEWEST_COMPLETIONS: dict[tuple[type[Storage], str, str], str] = {}
"""By the file of an archive, which is never changed: streams ask at every trigger."""
_MOST_KNOWN_FILES = 1000


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

    def find(self, instant: Instant) -> ArchivedWrite | None:
        """Return a write that was on the active timeline once."""
        wanted = (instant.requested_time, instant.completion_time)
        return next(
            (w for w in self.writes if (w.instant.requested_time, w.instant.completion_time) == wanted), None
        )

    @cached_property
    def completion_times(self) -> Mapping[str, str]:
        """When archived writes completed, by requested time."""
        if "writes" in self.__dict__ or self.config.layout < 2:
            return {w.instant.requested_time: w.instant.completion_time or "" for w in self.writes}
        return {
            row["instantTime"]: row["completionTime"] or row["instantTime"]
            for path, row in self._rows(_TIMES)
            if _write_action(row["action"], path)
        }

    @cached_property
    def newest_completion(self) -> str:
        """When the last archived instant completed, by the footers of the archive's files; empty for none.

        A long write may be archived as soon as it completed, while shorter ones that began later are active. In
        version 6 instants have no such time.
        """
        if self.config.layout < 2:
            return ""
        directory = self.config.history_directory
        paths = (f"{directory}/{name}" for name in self._segments(directory))
        return max(map(self._newest_completion_of, paths), default="")

    def _newest_completion_of(self, path: str) -> str:
        key = (type(self.storage), self.storage.root, path)
        if key not in _NEWEST_COMPLETIONS:
            while len(_NEWEST_COMPLETIONS) >= _MOST_KNOWN_FILES:
                _NEWEST_COMPLETIONS.pop(next(iter(_NEWEST_COMPLETIONS)), None)
            _NEWEST_COMPLETIONS[key] = self._read_newest_completion(path)
        return _NEWEST_COMPLETIONS[key]

    def _read_newest_completion(self, path: str) -> str:
        with _naming_damage(path), self.storage.open(path) as file:
            return _newest_completion_in(pq.ParquetFile(file))

    def _layout_2(self) -> Iterator[ArchivedWrite]:
        for path, row in self._rows((*_TIMES, "metadata")):
            write = _write_of_row(row, path)
            if write:
                yield write

    def _rows(self, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what the files of the current manifest hold, each row with the path of its file."""
        directory = self.config.history_directory
        for name in self._segments(directory):
            path = f"{directory}/{name}"
            with _naming_damage(path), self.storage.open(path) as file:
                rows = pq.read_table(file, columns=list(columns), page_checksum_verification=True).to_pylist()
            yield from ((path, row) for row in rows)

    def _segments(self, directory: str) -> list[str]:
        """The files of the current manifest, oldest first."""
        usual = f"{self.config.timeline_directory}/{HISTORY_PATH.default}"
        found = entries(self.storage, directory, usual=usual, setting=HISTORY_PATH.key)
        names = {entry.name for entry in found}
        manifests = sorted(int(n[9:]) for n in names if n.startswith("manifest_") and n[9:].isdigit())
        version = self._version(directory) if "_version_" in names else None
        number = version if version in manifests else (manifests[-1] if manifests else None)
        if number is None:
            return []
        path = f"{directory}/manifest_{number}"
        try:
            manifest = json.loads(self.storage.read(path))
            return sorted(str(entry["fileName"]) for entry in manifest["files"])
        except (ValueError, KeyError, TypeError) as error:
            raise _corrupt(path, f"expected a list of files, found {error!r}") from error

    def _version(self, directory: str) -> int | None:
        try:
            content = self.storage.read(f"{directory}/_version_").decode("utf-8", "replace").strip()
        except FileNotFoundError:
            # Whoever archives just now takes it away for a moment: the newest manifest counts then.
            return None
        return int(content) if content.isdigit() else None

    def _layout_1(self) -> Iterator[ArchivedWrite]:
        for path in self._archives():
            scan = scan_log_file(self.storage, path)
            _refuse_gaps(scan)
            for block in scan.blocks:
                if block.type is BlockType.AVRO_DATA:
                    yield from _writes_of_block(block)

    def _archives(self) -> list[str]:
        """The archive's files, oldest first; Hudi up to 0.9 wrote them beside the active timeline."""
        directory, usual = self.config.history_directory, f".hoodie/{ARCHIVE_FOLDER.default}"
        newer = entries(self.storage, directory, usual=usual, setting=ARCHIVE_FOLDER.key)
        older = entries(self.storage, ".hoodie", usual=".hoodie", setting=ARCHIVE_FOLDER.key)
        return [path for found in (older, newer) for path in _by_number(found)]


def _newest_completion_in(file: pq.ParquetFile) -> str:
    """By the statistics of its row groups, or by its rows where there are none."""
    column = file.schema_arrow.names.index("completionTime")
    groups = (
        file.metadata.row_group(n).column(column).statistics for n in range(file.metadata.num_row_groups)
    )
    known = list(groups)
    if all(found is not None and found.has_min_max for found in known):
        return max((str(found.max) for found in known), default="")
    times = file.read(columns=["completionTime"]).column(0)
    return str(pc.max(times).as_py() or "")


def _by_number(found: Iterable[FileInfo]) -> list[str]:
    numbered = [(int(m.group(1)), e.path) for e in found if (m := _ARCHIVE_NAME.match(e.name))]
    return [path for _, path in sorted(numbered)]


def _write_of_row(row: Mapping[str, Any], path: str) -> ArchivedWrite | None:
    action = _write_action(row["action"], path)
    if action is None:
        return None
    metadata = parse_commit_metadata(row["metadata"] or b"", source=f"{path}#{row['instantTime']}")
    instant = Instant(
        row["instantTime"], action, State.COMPLETED, row["completionTime"] or row["instantTime"]
    )
    return ArchivedWrite(instant, metadata)


def _write_action(word: Any, path: str) -> Action | None:
    """The action, if it writes; a word that is none must not make an instant vanish."""
    if word is None:
        return None
    if word not in _ACTIONS:
        raise _corrupt(path, f"an entry of it has the action {word!r}")
    return _ACTIONS[word] if _ACTIONS[word] in WRITE_ACTIONS else None


def _refuse_gaps(scan: LogScan) -> None:
    """What a crash leaves is the beginning of a block at a file's end; other damage hides instants that completed."""
    for region in scan.corrupt_regions:
        if not (region.is_tail and region.looks_torn):
            raise _corrupt(region.path, f"it is damaged at byte {region.offset} ({region.reason})")


def _writes_of_block(block: LogBlock) -> Iterator[ArchivedWrite]:
    try:
        yield from list(_writes_in(block))
    except DrawstringError:
        raise
    except Exception as error:
        raise _corrupt(block.path, f"a block of it cannot be decoded ({error})") from error


def _writes_in(block: LogBlock) -> Iterator[ArchivedWrite]:
    for record in _records(block):
        flipped = flipped_name(record.keys(), _ENTRY_NAMES)
        if flipped is not None:
            raise _corrupt(block.path, f"an entry of it has a damaged name, {flipped!r}")
        action = _write_action(record.get("actionType"), block.path)
        if action is None or record.get("actionState") != State.COMPLETED.name:
            continue
        slot = "hoodieReplaceCommitMetadata" if action is Action.REPLACECOMMIT else "hoodieCommitMetadata"
        time = record["commitTime"]
        said = record.get(slot) or record.get("hoodieCommitMetadata") or {}
        metadata = checked_metadata_of(said, source=f"{block.path}#{time}")
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


@contextmanager
def _naming_damage(path: str) -> Iterator[None]:
    """Report a file that is lost or damaged; other errors of storage, such as a denied permission, pass as they are."""
    try:
        yield
    except OSError as error:
        # Arrow raises OSError without a number for bytes that it cannot decode.
        if error.errno is not None and not isinstance(error, FileNotFoundError):
            raise
        raise _corrupt(path, str(error)) from error
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise _corrupt(path, str(error)) from error


def _corrupt(path: str, what: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read the archived timeline file {path}: {what}. Restore the file.",
        condition="CORRUPT_HISTORY",
        path=path,
    )
