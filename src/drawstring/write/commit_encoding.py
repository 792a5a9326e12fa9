"""Contents of instants as Hudi 1.x writes them: Avro containers of one record, without compression."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import fastavro

from drawstring.model.commit_metadata import CommitMetadata, WriteStat

_NAMESPACE = "org.apache.hudi.avro.model"
_STRING = {"type": "string", "avro.java.string": "String"}


def _nullable(avro: Any) -> list[Any]:
    return ["null", avro]


def _map(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values, "avro.java.string": "String"}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _record(name: str, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "namespace": _NAMESPACE,
        "fields": [{"name": field, "type": _nullable(avro), "default": None} for field, avro in fields],
    }


_VERSION = {"name": "version", "type": ["int", "null"], "default": 1}

_RUNTIME = _record(
    "HoodieRuntimeStats",
    [("totalScanTime", "long"), ("totalCreateTime", "long"), ("totalUpsertTime", "long")],
)
_WRITE_STAT = _record(
    "HoodieWriteStat",
    [
        ("fileId", _STRING),
        ("path", _STRING),
        ("prevCommit", _STRING),
        ("numWrites", "long"),
        ("numDeletes", "long"),
        ("numUpdateWrites", "long"),
        ("totalWriteBytes", "long"),
        ("totalWriteErrors", "long"),
        ("partitionPath", _STRING),
        ("totalLogRecords", "long"),
        ("totalLogFiles", "long"),
        ("totalUpdatedRecordsCompacted", "long"),
        ("numInserts", "long"),
        ("totalLogBlocks", "long"),
        ("totalCorruptLogBlock", "long"),
        ("totalRollbackBlocks", "long"),
        ("fileSizeInBytes", "long"),
        ("logVersion", "int"),
        ("logOffset", "long"),
        ("baseFile", _STRING),
        ("logFiles", _array(_STRING)),
        ("cdcStats", _map("long")),
        ("prevBaseFile", _STRING),
        ("minEventTime", "long"),
        ("maxEventTime", "long"),
        ("runtimeStats", _RUNTIME),
        ("totalLogFilesCompacted", "long"),
        ("totalLogReadTimeMs", "long"),
        ("totalLogSizeCompacted", "long"),
        ("tempPath", _STRING),
        ("numUpdates", "long"),
    ],
)


def _commit_schema(name: str) -> dict[str, Any]:
    schema = _record(
        name,
        [
            ("partitionToWriteStats", _map(_array(_WRITE_STAT))),
            ("compacted", "boolean"),
            ("extraMetadata", _map(_STRING)),
            ("operationType", _STRING),
        ],
    )
    schema["fields"].insert(3, _VERSION)
    return schema


def _replace_schema() -> dict[str, Any]:
    schema = _commit_schema("HoodieReplaceCommitMetadata")
    replaced = _nullable(_map(_array(_STRING)))
    schema["fields"].append({"name": "partitionToReplaceFileIds", "type": replaced, "default": None})
    return schema


_INSTANT_INFO = {
    "type": "record",
    "name": "HoodieInstantInfo",
    "namespace": _NAMESPACE,
    "fields": [{"name": "commitTime", "type": _STRING}, {"name": "action", "type": _STRING}],
}
_ROLLBACK_REQUEST = {
    "type": "record",
    "name": "HoodieRollbackRequest",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "fileId", "type": _nullable(_STRING), "default": None},
        {"name": "latestBaseInstant", "type": _nullable(_STRING), "default": None},
        {"name": "filesToBeDeleted", "type": _array(_STRING), "default": []},
        {"name": "logBlocksToBeDeleted", "type": _nullable(_map("long")), "default": None},
    ],
}
_ROLLBACK_PLAN = {
    "type": "record",
    "name": "HoodieRollbackPlan",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "instantToRollback", "type": _nullable(_INSTANT_INFO), "default": None},
        {"name": "RollbackRequests", "type": _nullable(_array(_ROLLBACK_REQUEST)), "default": None},
        _VERSION,
    ],
}
_ROLLBACK_PARTITION = {
    "type": "record",
    "name": "HoodieRollbackPartitionMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "partitionPath", "type": _STRING},
        {"name": "successDeleteFiles", "type": _array(_STRING)},
        {"name": "failedDeleteFiles", "type": _array(_STRING)},
        {"name": "rollbackLogFiles", "type": _nullable(_map("long")), "default": None},
        {"name": "logFilesFromFailedCommit", "type": _nullable(_map("long")), "default": None},
    ],
}
_ROLLBACK_METADATA = {
    "type": "record",
    "name": "HoodieRollbackMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "startRollbackTime", "type": _STRING},
        {"name": "timeTakenInMillis", "type": "long"},
        {"name": "totalFilesDeleted", "type": "int"},
        {"name": "commitsRollback", "type": _array(_STRING)},
        {"name": "partitionMetadata", "type": _map(_ROLLBACK_PARTITION)},
        _VERSION,
        {"name": "instantsRollback", "type": _array(_INSTANT_INFO), "default": []},
    ],
}
_REQUESTED_REPLACE = {
    "type": "record",
    "name": "HoodieRequestedReplaceMetadata",
    "namespace": _NAMESPACE,
    "fields": [
        {"name": "operationType", "type": _nullable(_STRING), "default": None},
        {"name": "clusteringPlan", "type": "null", "default": None},
        {"name": "extraMetadata", "type": _nullable(_map(_STRING)), "default": None},
        _VERSION,
    ],
}

_COMMIT = fastavro.parse_schema(_commit_schema("HoodieCommitMetadata"))
_REPLACE = fastavro.parse_schema(_replace_schema())
_REQUESTED = fastavro.parse_schema(_REQUESTED_REPLACE)
_PLAN = fastavro.parse_schema(_ROLLBACK_PLAN)
_ROLLED_BACK = fastavro.parse_schema(_ROLLBACK_METADATA)


def encode_commit(metadata: CommitMetadata, *, is_replace: bool) -> bytes:
    """Encode what a completed commit, or replacecommit, says."""
    record = _commit_record(metadata)
    if is_replace:
        record["partitionToReplaceFileIds"] = {path: list(ids) for path, ids in metadata.replaced.items()}
    return _encode(_REPLACE if is_replace else _COMMIT, record)


def encode_inflight(operation: str) -> bytes:
    """Encode what an inflight commit says: which operation it is."""
    return _encode(_COMMIT, _commit_record(CommitMetadata(operation=operation)))


def encode_requested_replace(operation: str | None) -> bytes:
    """Encode the request of a replacecommit; overwrites leave it empty, dropping partitions names itself."""
    return _encode(_REQUESTED, {"operationType": operation, "version": 1})


def encode_rollback_plan(requested_time: str, action: str, files: Mapping[str, list[str]]) -> bytes:
    """Encode the plan to roll an instant back; `files` to delete are absolute, by partition path."""
    requests = [
        {"partitionPath": path, "fileId": "", "latestBaseInstant": "", "filesToBeDeleted": found}
        for path, found in files.items()
    ]
    target = {"commitTime": requested_time, "action": action}
    return _encode(_PLAN, {"instantToRollback": target, "RollbackRequests": requests, "version": 1})


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
    return _encode(_ROLLED_BACK, record)


def _commit_record(metadata: CommitMetadata) -> dict[str, Any]:
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for stat in metadata.stats:
        by_partition.setdefault(stat.partition_path, []).append(_stat_record(stat))
    return {
        "partitionToWriteStats": by_partition,
        "compacted": False,
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
        "numUpdates": 0,
    }


def _encode(schema: Any, record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [record], codec="null")
    return stream.getvalue()
