"""Contents of instants: Avro containers, or JSON where version 6 wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.formats.avro_container import first_record
from drawstring.model.commit_metadata import (
    CleanRecord,
    CommitMetadata,
    CompactionOperation,
    PlannedClean,
    WriteStat,
)
from drawstring.model.flipped_names import flipped_name

AVRO_MAGIC = b"Obj\x01"
_NAMES = frozenset({"partitionToWriteStats", "extraMetadata", "operationType", "partitionToReplaceFileIds"})
_STAT_NAMES = frozenset({"fileId", "path", "partitionPath", "numWrites", "fileSizeInBytes"})
"""Names that Hudi writes in any commit, and with any file, and that readers go by."""


def parse_commit_metadata(content: bytes, *, source: str) -> CommitMetadata:
    """Parse a completed commit, deltacommit or replacecommit; an empty file of layout 1 says nothing."""
    record = parse_record(content, source=source)
    return checked_metadata_of(record, source=source) if record else CommitMetadata()


def parse_compaction_plan(content: bytes, *, source: str) -> tuple[CompactionOperation, ...]:
    """Parse a compaction plan: which file groups are to get a new base file."""
    record = parse_record(content, source=source) or {}
    return tuple(
        CompactionOperation(
            op.get("partitionPath") or "",
            op["fileId"],
            op.get("baseInstantTime") or "",
            _last_part(op.get("dataFilePath")),
            tuple(map(_file_name, op.get("deltaFilePaths") or ())),
        )
        for op in record.get("operations") or ()
    )


def _last_part(path: str | None) -> str | None:
    return _file_name(path) if path else None


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def parse_clustering_groups(content: bytes, *, source: str) -> tuple[tuple[str, str], ...]:
    """Return partition path and file id of every slice that a clustering plan takes in."""
    record = parse_record(content, source=source) or {}
    try:
        plan = record.get("clusteringPlan") or {}
        slices = [found for group in plan.get("inputGroups") or () for found in group.get("slices") or ()]
        return tuple((found.get("partitionPath") or "", found["fileId"]) for found in slices)
    except (AttributeError, KeyError, TypeError) as error:
        raise _corrupt(source, f"it holds something else than a clustering plan ({error})") from error


def parse_cleaned_files(content: bytes, *, source: str) -> frozenset[str]:
    """Parse a completed clean: the files that it deleted, by their paths below the table."""
    record = parse_record(content, source=source) or {}
    return frozenset(
        f"{partition}/{name}".lstrip("/")
        for partition, cleaned in (record.get("partitionMetadata") or {}).items()
        for file in (cleaned.get("successDeleteFiles") or ())
        for name in [file.rsplit("/", 1)[-1]]
    )


def parse_clean_plan(content: bytes, *, source: str) -> PlannedClean:
    """Parse a requested clean. Paths are absolute on the machine that planned it: only names count."""
    record = parse_record(content, source=source) or {}
    try:
        retained = record.get("earliestInstantToRetain")
        files = {
            path: tuple(
                _file_name(one["filePath"]) for one in found or () if not one.get("isBootstrapBaseFile")
            )
            for path, found in (record.get("filePathsToBeDeletedPerPartition") or {}).items()
        }
        return PlannedClean(
            str(record.get("policy") or ""),
            (str(retained["timestamp"]), str(retained["action"])) if retained else None,
            record.get("lastCompletedCommitTimestamp") or "",
            files,
            record.get("extraMetadata") or {},
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise _corrupt(source, f"it holds something else than a plan to clean ({error})") from error


def parse_clean_record(content: bytes, *, source: str) -> CleanRecord:
    """Parse what a completed clean says to the next one."""
    record = parse_record(content, source=source) or {}
    return CleanRecord(
        record.get("earliestCommitToRetain") or "",
        record.get("lastCompletedCommitTimestamp") or "",
        record.get("extraMetadata") or {},
    )


def parse_savepointed_files(content: bytes, *, source: str) -> dict[str, tuple[str, ...]]:
    """Parse a savepoint: names of the files that it keeps, by partition path."""
    record = parse_record(content, source=source) or {}
    try:
        return {
            path: tuple(map(_file_name, kept.get("savepointDataFile") or ()))
            for path, kept in (record.get("partitionMetadata") or {}).items()
        }
    except (AttributeError, TypeError) as error:
        raise _corrupt(source, f"it holds something else than a savepoint ({error})") from error


def parse_record(content: bytes, *, source: str) -> dict[str, Any] | None:
    """Parse the single record of an instant's file; None when the file is empty."""
    if not content:
        return None
    try:
        record: Any = first_record(content) if content.startswith(AVRO_MAGIC) else json.loads(content)
    except UnsupportedTable:
        raise
    except Exception as error:
        raise _corrupt(source, f"it cannot be decoded ({error})") from error
    if record is not None and not isinstance(record, dict):
        raise _corrupt(source, f"it holds {type(record).__name__}, expected a record")
    return record


def checked_metadata_of(record: Mapping[str, Any], *, source: str) -> CommitMetadata:
    """Like `commit_metadata_of`; raises `CorruptTable` for a record that is none, or in which names are damaged."""
    try:
        flipped = _flipped(record)
        found = commit_metadata_of(record)
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise _corrupt(source, f"it holds something else than commit metadata ({error})") from error
    if flipped is not None:
        raise _corrupt(source, f"it has a damaged name, {flipped!r}")
    return found


def _flipped(record: Mapping[str, Any]) -> str | None:
    """A name in which a bit was flipped: what it names would pass for something that the commit does not say."""
    flipped = flipped_name(record.keys(), _NAMES)
    groups = (record.get("partitionToWriteStats") or {}).values()
    strange = (stat for group in groups for stat in group or () if not stat.keys() >= _STAT_NAMES)
    return flipped or next(
        (name for stat in strange if (name := flipped_name(stat.keys(), _STAT_NAMES))), None
    )


def commit_metadata_of(record: Mapping[str, Any]) -> CommitMetadata:
    """Turn a decoded record, whichever coding it had, into a value."""
    stats = record.get("partitionToWriteStats") or {}
    replaced = record.get("partitionToReplaceFileIds") or {}
    return CommitMetadata(
        operation=str(record.get("operationType") or "UNKNOWN"),
        stats=tuple(_stat(partition, stat) for partition, group in stats.items() for stat in group or ()),
        replaced={partition: tuple(ids or ()) for partition, ids in replaced.items()},
        extra={key: value for key, value in (record.get("extraMetadata") or {}).items() if value is not None},
    )


def _stat(partition: str, stat: Mapping[str, Any]) -> WriteStat:
    get = stat.get
    return WriteStat(
        get("fileId") or "",
        get("path") or "",
        get("partitionPath") or partition,
        get("numWrites") or 0,
        get("numDeletes") or 0,
        get("numInserts") or 0,
        get("fileSizeInBytes") or 0,
        tuple(get("logFiles") or ()),
        tuple(get("cdcStats") or ()),
        get("numUpdateWrites") or 0,
        get("prevCommit") or "null",
        get("prevBaseFile"),
        tuple((get("cdcStats") or {}).values()),
    )


def _corrupt(source: str, what: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read the instant {source}: {what}. Restore the file, or roll the instant back with Hudi.",
        condition="CORRUPT_INSTANT",
        path=source,
    )
