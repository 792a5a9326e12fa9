"""What drawstring does not read, as data: refused when a table is opened, or where a file shows it.

What it does not write is in `write.support`, which options it refuses in `refused_keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drawstring.config.table_config import LOG_FILE_FORMAT, TABLE_FORMAT, TableConfig
from drawstring.errors import UnsupportedTable

READABLE_VERSIONS = (2, 3, 4, 5, 6, 8, 9)
NEWEST_VERSION = max(READABLE_VERSIONS)
_LAYOUTS = {8: (2,), 9: (2,)}


@dataclass(frozen=True)
class Refusal:
    """One feature that is refused: `finds` returns what it found in the table's settings, or None."""

    condition: str
    finds: Callable[[TableConfig], str | None]
    message: str


def _version_too_new(config: TableConfig) -> str | None:
    return str(config.version) if config.version > NEWEST_VERSION else None


def _version_too_old(config: TableConfig) -> str | None:
    known = config.version in READABLE_VERSIONS or config.version > NEWEST_VERSION
    return None if known else str(config.version)


def _layout(config: TableConfig) -> str | None:
    return None if config.layout in _LAYOUTS.get(config.version, (1,)) else str(config.layout)


def _base_file_format(config: TableConfig) -> str | None:
    return None if config.base_file_format == "PARQUET" else config.base_file_format


def _log_file_format(config: TableConfig) -> str | None:
    found = LOG_FILE_FORMAT.find(config.properties).strip().upper()
    return None if found == LOG_FILE_FORMAT.default else found


def _table_format(config: TableConfig) -> str | None:
    found = TABLE_FORMAT.find(config.properties).strip().lower()
    return None if found == TABLE_FORMAT.default else found


def _merger(config: TableConfig) -> str | None:
    # Copy-on-write files are merged already: whatever merged them need not be known to read them.
    return config.merge_rule.unknown if config.is_merge_on_read else None


REFUSALS = (
    Refusal(
        "TABLE_VERSION_TOO_NEW",
        _version_too_new,
        "its table version is {found}, newer than 9, the newest that drawstring reads. Upgrade drawstring, "
        "or read it with the Hudi release that wrote it",
    ),
    Refusal(
        "TABLE_VERSION_NOT_SUPPORTED",
        _version_too_old,
        "its table version is {found}; drawstring reads 2 to 6, 8 and 9. Upgrade the table with Apache Hudi",
    ),
    Refusal(
        "TIMELINE_LAYOUT_NOT_SUPPORTED",
        _layout,
        "its timeline layout is {found}; expected 1 for versions up to 6 and 2 for versions 8 and 9. Upgrade "
        "drawstring, or read it with the Hudi release that wrote it",
    ),
    Refusal(
        "BASE_FILE_FORMAT_NOT_SUPPORTED",
        _base_file_format,
        "its base files are {found}; drawstring reads PARQUET. Rewrite the table with Parquet base files",
    ),
    Refusal(
        "LOG_FILE_FORMAT_NOT_SUPPORTED",
        _log_file_format,
        "its log files are {found}; drawstring reads HOODIE_LOG. Read it with the Hudi release that wrote it",
    ),
    Refusal(
        "TABLE_FORMAT_NOT_SUPPORTED",
        _table_format,
        "its hoodie.table.format is {found}, so its timeline is kept in another format; drawstring reads native. Read "
        "it with an engine of that format",
    ),
    Refusal(
        "MERGER_NOT_SUPPORTED",
        _merger,
        "its records are merged by {found}, a Java class that drawstring cannot run. Set a merge mode, or read it "
        "with Apache Hudi",
    ),
)


def check_readable(config: TableConfig, *, path: str, merges: bool = True) -> None:
    """Refuse, by name, a table that cannot be read exactly; without `merges` only its base files are to be read."""
    asked = [refusal for refusal in REFUSALS if merges or refusal.finds is not _merger]
    refuse_first(asked, config, operation="read", path=path)


def refuse_first(
    refusals: Iterable[Refusal], config: TableConfig, *, operation: str, path: str, verb: str = ""
) -> None:
    """Raise `UnsupportedTable` for the first feature that the table has; `verb` names the operation in the message."""
    for refusal in refusals:
        found = refusal.finds(config)
        if found is not None:
            raise UnsupportedTable(
                f"Cannot {verb or operation} {path}: {refusal.message.format(found=found)}.",
                condition=refusal.condition,
                operation=operation,
                path=path,
                found=found,
            )


FOUND_IN_FILES: Mapping[str, str] = {
    "BASE_FILE_FORMAT_NOT_SUPPORTED": (
        "Cannot read {path}: its format is {found}; drawstring reads PARQUET. Let Apache Hudi rewrite the "
        "file group as Parquet, or read the table with it."
    ),
    "BOOTSTRAPPED_TABLE_NOT_SUPPORTED": (
        "Cannot read {path}: a metadata-only bootstrap made it, so its rows lie in files outside the table. "
        "Let Apache Hudi rewrite it (clustering, or a full-record bootstrap)."
    ),
    "COLUMN_TYPE_NOT_SUPPORTED": (
        "A column has Hudi's type {found} ({column}), which drawstring does not read: the bytes that are "
        "stored for it are not its values. Read the table with Apache Hudi."
    ),
    "EMPTY_ARRAY_ITEMS": (
        "An Avro schema has an array of {found}, whose items have no value. Read the table with Apache Hudi."
    ),
    "ENCRYPTED_BASE_FILE": (
        "Parquet file {path} is encrypted; drawstring reads plain files only. Read the table with Apache "
        "Hudi, or let it rewrite the file without encryption."
    ),
    "NO_RECORD_KEYS": (
        "Log files cannot be merged: the table stores neither record keys (hoodie.populate.meta.fields is "
        "false) nor the fields they are made of (hoodie.table.recordkey.fields is not set). Read read_optimized, "
        "which leaves logs out, or read the table with Apache Hudi."
    ),
    "RECURSIVE_SCHEMA": "The Avro record {name} contains itself; recursive schemas have no Spark type. Read the "
    "table with Apache Hudi.",
    "SCHEMA_TOO_DEEP": "A schema nests deeper than {limit} levels. Read the table with Apache Hudi.",
    "UNKNOWN_ACTION": (
        "The timeline file {path} has the action {found!r}; expected one of {known}. A newer Hudi wrote it: "
        "upgrade drawstring."
    ),
    "UNKNOWN_LOG_COMMAND": (
        "Log command {found!r} at byte {offset} is unknown; only rollback ({known}) is supported. Upgrade drawstring, "
        "or compact the table with Apache Hudi."
    ),
    "UNKNOWN_LOG_FORMAT": (
        "Cannot read log file {path}: the block at byte {offset} has {what} {found}, known: {known}. The file "
        "comes from a newer writer or is damaged. Upgrade drawstring, or compact the table with Apache Hudi."
    ),
    "UNSUPPORTED_AVRO_BLOCK": (
        "Avro log blocks of version {found} are not supported, only versions {known}. Compact the table with "
        "Apache Hudi."
    ),
    "UNSUPPORTED_DELETE_BLOCK": (
        "Delete blocks with {found} are not supported, only {known}. Compact the table with Apache Hudi."
    ),
    "UNSUPPORTED_HFILE": (
        "Cannot read {path}: it uses {what}. Hudi's own writers do not; switch the metadata table off for "
        "this read (hoodie.metadata.enable=false)."
    ),
    "UNSUPPORTED_LOG_BLOCK": (
        "The block at byte {offset} is of type {found}, which data tables do not hold. Upgrade drawstring, or "
        "compact the table with Apache Hudi."
    ),
    "UNSUPPORTED_METADATA_BLOCK": (
        "{path} of the metadata table holds a block of type {found}; expected HFile entries or deletes. Switch "
        "the metadata table off for this read (hoodie.metadata.enable=false)."
    ),
}
"""What shows only when files are read, by condition."""


def found_in_files(condition: str, **facts: Any) -> UnsupportedTable:
    """The error for something in a table's files that drawstring does not read."""
    message = FOUND_IN_FILES[condition].format_map(facts)
    return UnsupportedTable(message, condition=condition, operation="read", **facts)
