"""Contents of instants as Hudi 1.x writes them: Avro containers of one record, without compression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drawstring.formats import avro_schemas
from drawstring.formats.avro_schemas import encode_container
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_names import parse_log_file


def encode_commit(metadata: CommitMetadata, *, is_replace: bool) -> bytes:
    """Encode what a completed commit, or replacecommit, says."""
    record = _commit_record(metadata)
    if is_replace:
        record["partitionToReplaceFileIds"] = {path: list(ids) for path, ids in metadata.replaced.items()}
    return encode_container(avro_schemas.REPLACE_COMMIT if is_replace else avro_schemas.COMMIT, record)


def encode_inflight(operation: str, extra: Mapping[str, str] | None = None) -> bytes:
    """Encode what an inflight commit says: which operation it is, and who writes it."""
    metadata = CommitMetadata(operation=operation, extra=extra or {})
    return encode_container(avro_schemas.COMMIT, _commit_record(metadata))


def encode_requested_replace(operation: str | None, extra: Mapping[str, str] | None = None) -> bytes:
    """Encode the request of a replacecommit; overwrites name no operation, dropping partitions names itself."""
    record = {"operationType": operation, "extraMetadata": dict(extra or {}), "version": 1}
    return encode_container(avro_schemas.REQUESTED_REPLACE, record)


def encode_rollback_plan(requested_time: str, action: str, files: Mapping[str, list[str]]) -> bytes:
    """Encode the plan to roll an instant back; `files` to delete are absolute, by partition path."""
    requests = [
        {"partitionPath": path, "fileId": "", "latestBaseInstant": "", "filesToBeDeleted": found}
        for path, found in files.items()
    ]
    target = {"commitTime": requested_time, "action": action}
    return encode_container(
        avro_schemas.ROLLBACK_PLAN, {"instantToRollback": target, "RollbackRequests": requests, "version": 1}
    )


def encode_rollback(
    started: str, requested_time: str, action: str, *, files: Mapping[str, list[str]], millis: int
) -> bytes:
    """Encode what a finished rollback says."""
    record = {
        "startRollbackTime": started,
        "timeTakenInMillis": millis,
        "totalFilesDeleted": sum(map(len, files.values())),
        "commitsRollback": [requested_time],
        "partitionMetadata": {
            path: {"partitionPath": path, "successDeleteFiles": found, "failedDeleteFiles": []}
            for path, found in files.items()
        },
        "version": 1,
        "instantsRollback": [{"commitTime": requested_time, "action": action}],
    }
    return encode_container(avro_schemas.ROLLBACK, record)


def _commit_record(metadata: CommitMetadata) -> dict[str, Any]:
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for stat in metadata.stats:
        by_partition.setdefault(stat.partition_path, []).append(_stat_record(stat))
    return {
        "partitionToWriteStats": by_partition,
        "compacted": metadata.operation == "COMPACT",
        "extraMetadata": dict(metadata.extra),
        "version": None,
        "operationType": metadata.operation,
    }


def _stat_record(stat: WriteStat) -> dict[str, Any]:
    zero = dict.fromkeys(
        (
            "totalWriteErrors",
            "totalLogRecords",
            "totalUpdatedRecordsCompacted",
            "totalLogBlocks",
            "totalCorruptLogBlock",
            "totalRollbackBlocks",
            "totalLogFilesCompacted",
            "totalLogReadTimeMs",
            "totalLogSizeCompacted",
        ),
        0,
    )
    return zero | {
        "fileId": stat.file_id,
        "path": stat.path,
        "prevCommit": stat.prev_commit,
        "numWrites": stat.num_writes,
        "numDeletes": stat.num_deletes,
        "numUpdateWrites": stat.num_updates,
        "totalWriteBytes": stat.file_size,
        "partitionPath": stat.partition_path,
        "numInserts": stat.num_inserts,
        "fileSizeInBytes": stat.file_size,
        "prevBaseFile": stat.prev_base_file,
        "cdcStats": dict(zip(stat.cdc_files, stat.cdc_sizes, strict=True)) or None,
        "numUpdates": 0,
        "totalLogFilesCompacted": stat.compacted_logs,
        "totalLogSizeCompacted": stat.compacted_bytes,
        "runtimeStats": _runtime(stat),
        **_log_fields(stat),
    }


def _runtime(stat: WriteStat) -> dict[str, int]:
    """How long the file took, under the name of what was done: a new file group is created, others are upserted."""
    done = "totalCreateTime" if stat.prev_commit == "null" else "totalUpsertTime"
    return {"totalScanTime": 0, "totalCreateTime": 0, "totalUpsertTime": 0, done: stat.runtime_ms}


def _log_fields(stat: WriteStat) -> dict[str, Any]:
    """What is said of a log file: it is written once and whole, so it begins at offset 0."""
    log_file = parse_log_file(stat.partition_path, stat.name, stat.file_size)
    if log_file is None:
        return {}
    return {
        "logVersion": log_file.version,
        "logOffset": 0,
        "baseFile": stat.slice_base,
        "logFiles": [*stat.slice_logs, *(stat.log_files or (stat.name,))],
    }
