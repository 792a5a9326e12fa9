"""Compaction plans: which file groups get a new base file, of which files."""

from __future__ import annotations

from collections.abc import Iterable

from drawstring.formats import avro_schemas
from drawstring.formats.avro_schemas import encode_container
from drawstring.model.file_group import FileSlice

_PLAN_VERSION = 2
_MEGABYTE = 1 << 20


_MERGES_LOGS = {
    "compactorClassName": "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper",
    "strategyParams": {},
    "version": 1,
}


def encode_compaction_plan(
    slices: Iterable[FileSlice], *, new_base_bytes: int = 120 << 20, logs_only: bool = False
) -> bytes:
    """Encode the plan to compact slices; names of files are without their partition path, as Hudi has them.

    `new_base_bytes` is what Hudi reckons for the base file of a slice that has none. With `logs_only` the logs become
    one log.
    """
    record = {
        "operations": [_operation(found, new_base_bytes) for found in slices],
        "extraMetadata": {},
        "version": _PLAN_VERSION,
        "strategy": _MERGES_LOGS if logs_only else None,
        "preserveHoodieMetadata": logs_only,
        "missingSchedulePartitions": [],
    }
    return encode_container(avro_schemas.COMPACTION_PLAN, record)


def _operation(found: FileSlice, new_base_bytes: int) -> dict[str, object]:
    return {
        "baseInstantTime": found.base_instant,
        "deltaFilePaths": [log.name for log in found.log_files],
        "dataFilePath": found.base_file.name if found.base_file else None,
        "fileId": found.group.file_id,
        "partitionPath": found.group.partition_path,
        "metrics": _metrics(found, new_base_bytes),
        "bootstrapFilePath": None,
    }


def _metrics(found: FileSlice, new_base_bytes: int) -> dict[str, float]:
    log_bytes = sum(log.size for log in found.log_files)
    base_bytes = found.base_file.size if found.base_file else 0
    read = float((log_bytes + base_bytes) // _MEGABYTE)
    written = float((base_bytes or new_base_bytes) // _MEGABYTE)
    return {
        "TOTAL_LOG_FILES": float(len(found.log_files)),
        "TOTAL_IO_READ_MB": read,
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": written,
        "TOTAL_IO_MB": read + written,
    }
