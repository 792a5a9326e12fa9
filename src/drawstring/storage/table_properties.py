"""Reading and replacing `hoodie.properties`, with its backup where an update left the file half done."""

from __future__ import annotations

import datetime as dt
import logging
import os
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePath

from drawstring.config.properties import format_properties, has_other_digest, parse_properties
from drawstring.config.table_config import TableConfig, verify_checksum
from drawstring.errors import CorruptTable, InvalidOption, TableNotFound
from drawstring.storage.base import Storage
from drawstring.storage.local import LocalStorage

PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
logger = logging.getLogger(__name__)
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.05


def read_table_config(storage: Storage) -> TableConfig:
    """Read a table's settings.

    Writers replace the file by deleting and creating it, so that a reader can meet a missing or an empty
    one for a moment: then the backup counts, and both are tried again.

    Raises `TableNotFound` when there is no table, `CorruptTable` when neither file can be read.
    """
    for attempt in range(_ATTEMPTS):
        config = _first_readable(storage, last=attempt == _ATTEMPTS - 1)
        if config is not None:
            return config
        if attempt == 0 and not storage.exists(".hoodie"):
            break
        time.sleep(_PAUSE_SECONDS)
    _refuse_empty(storage)
    raise TableNotFound(
        f"No Hudi table at {storage.root}: there is no {PROPERTIES}. Check the path; it must be the table's "
        f"base path, not one of its partitions.{_what_to_load(storage)}",
        path=storage.root,
    )


def _what_to_load(storage: Storage) -> str:
    """Where the table is, if the path tells: a folder above holds it, or wildcards stand for its folders."""
    if isinstance(storage, LocalStorage):
        for folder in PurePath(storage.local_path("")).parents:
            if os.path.isfile(folder / PROPERTIES):
                return f" There is a table at {folder}: load that, and filter by its partition columns."
    if any(sign in storage.root for sign in "*?{["):
        return " A path has no wildcards: load the base path, and filter by partition columns."
    return ""


def is_table(storage: Storage) -> bool:
    """Whether there is a table: one whose settings are being changed by Hudi, or were when it died, has the backup."""
    return storage.exists(PROPERTIES) or storage.exists(BACKUP)


def recover_table_properties(storage: Storage) -> None:
    """Put the settings back that somebody died over while changing them, as Hudi's writers do.

    The caller holds the table's lock. A backup beside settings that can be read is of no use any more.
    """
    if not storage.exists(BACKUP):
        return
    if not _can_be_read(storage, PROPERTIES):
        if not _can_be_read(storage, BACKUP):
            return
        storage.write(PROPERTIES, storage.read(BACKUP))
        storage.sync_directories([".hoodie"])
    storage.delete(BACKUP)


def _can_be_read(storage: Storage, path: str) -> bool:
    try:
        return _read(storage, path) is not None
    except CorruptTable:
        return False


def updated_content(properties: Mapping[str, str]) -> bytes:
    """Return the file of settings that replaces another one; no two are alike."""
    now = dt.datetime.now(dt.timezone.utc).isoformat()
    return format_properties(properties, comment=f"Updated at {now}")


def content_of(storage: Storage, config: TableConfig) -> bytes | None:
    """Return the file of settings as it is; None when that is not, or no longer, what a table was loaded with."""
    try:
        content = storage.read(PROPERTIES)
    except FileNotFoundError:
        return None
    found = parse_properties(content, source=f"{storage.root}/{PROPERTIES}")
    return content if found == config.properties else None


def are_settings_changed(storage: Storage) -> bool:
    """Whether something other than drawstring or Hudi changed the settings since drawstring stored them."""
    try:
        content = storage.read(PROPERTIES)
    except FileNotFoundError:
        # A writer is at it, or died there: what was read is the backup.
        return False
    return has_other_digest(content, parse_properties(content, source=f"{storage.root}/{PROPERTIES}"))


@lru_cache(maxsize=256)
def _warn_of_changes(source: str, _content: bytes) -> None:
    """Tell once per state of the file: an edit by hand may be meant, so it is no reason to refuse the table."""
    logger.warning(
        "%s is not as drawstring stored it: it was edited or damaged since. If nobody meant to change it, "
        "compare it with its backup.",
        source,
    )


def _refuse_empty(storage: Storage) -> None:
    if storage.exists(PROPERTIES):
        path = f"{storage.root}/{PROPERTIES}"
        raise CorruptTable(
            f"{path} is empty, and there is no backup beside it. Expected the table's settings, one key=value a line: "
            "restore the file from a copy or from Hudi.",
            condition="EMPTY_PROPERTIES",
            path=path,
        )


def _first_readable(storage: Storage, *, last: bool) -> TableConfig | None:
    problem: CorruptTable | None = None
    for path in (PROPERTIES, BACKUP):
        try:
            config = _read(storage, path)
        except CorruptTable as error:
            problem = problem or error
            continue
        if config is not None:
            return config
    if problem is not None and last:
        raise problem
    return None


def _read(storage: Storage, path: str) -> TableConfig | None:
    try:
        content = storage.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _config(content, f"{storage.root}/{path}") if content.strip() else None


@lru_cache(maxsize=64)
def _config(content: bytes, source: str) -> TableConfig:
    """Type the settings; a commit reads the same ones several times."""
    properties = parse_properties(content, source=source)
    try:
        verify_checksum(properties, source=source)
        if has_other_digest(content, properties):
            _warn_of_changes(source, content)
        return TableConfig.from_properties(properties, source=source)
    except InvalidOption as error:
        raise CorruptTable(
            f"Cannot read {source}: {error.message} Restore the file from its backup or from Hudi.",
            condition="INVALID_PROPERTY",
            path=source,
            **error.fields,
        ) from error
