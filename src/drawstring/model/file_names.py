"""Names of base files and log files, parsed and formatted."""

from __future__ import annotations

import re
import uuid

from drawstring.model.file_group import BaseFile, FileGroupId, LogFile

# Of any format: a file whose format is not known must be refused, not overlooked.
_BASE = re.compile(r"^([^_./][^_/]*)_([^_/]*)_(\d+)\.([a-z][a-z0-9]*)$")
_BUCKET = re.compile(r"^(\d{8})-")
_LOG = re.compile(r"^\.(.+)_(\d+)\.log\.(\d+)(?:_(\d+-\d+-\d+))?(\.cdc)?$")


def parse_base_file(partition_path: str, name: str, size: int) -> BaseFile | None:
    """Return the base file called `name`, or None when the name is not one."""
    match = _BASE.match(name)
    if match is None:
        return None
    file_id, token, instant, _ = match.groups()
    return BaseFile(join_path(partition_path, name), size, file_id, instant, token)


def parse_log_file(partition_path: str, name: str, size: int) -> LogFile | None:
    """Return the log file called `name`, or None when it is no log of records (`.cdc` files are not)."""
    match = _LOG.match(name)
    if match is None or match.group(5):
        return None
    file_id, instant, version, token, _ = match.groups()
    return LogFile(join_path(partition_path, name), size, file_id, instant, int(version), token or "")


def group_of_file(path: str) -> FileGroupId:
    """Return the file group of a base file or log file, by its path in the table."""
    partition_path, _, name = path.rpartition("/")
    return FileGroupId(partition_path, name.removeprefix(".").partition("_")[0])


def base_file_name(file_id: str, write_token: str, instant: str, extension: str = "parquet") -> str:
    """Format a base file's name."""
    return f"{file_id}_{write_token}_{instant}.{extension}"


def log_file_name(file_id: str, instant: str, version: int, write_token: str) -> str:
    """Format a log file's name."""
    return f".{file_id}_{instant}.log.{version}_{write_token}"


def file_id_prefix(unique: uuid.UUID) -> str:
    """Return how the ids of new file groups begin: never by eight digits, as those of an index's buckets do."""
    text = str(unique)
    return f"f{text[1:]}" if text[:8].isdigit() else text


def bucket_of_file_id(file_id: str) -> int | None:
    """Return the bucket that a file id names; None when it names none."""
    match = _BUCKET.match(file_id)
    return int(match.group(1)) if match else None


def join_path(partition_path: str, name: str) -> str:
    """Join a partition path, which may be empty, and a name."""
    return f"{partition_path}/{name}" if partition_path else name
