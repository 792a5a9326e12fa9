"""Folders of the timeline, named by settings."""

from __future__ import annotations

from drawstring.errors import CorruptTable
from drawstring.storage.base import FileInfo, Storage


def entries(storage: Storage, folder: str, *, usual: str, setting: str) -> list[FileInfo]:
    """What a folder holds; nothing where it was never made.

    Raises `CorruptTable` where the folder is missing and the one that Hudi makes, `usual`, is there: the setting was
    damaged, and without its instants a table would look empty.
    """
    try:
        return list(storage.list(folder))
    except FileNotFoundError:
        if folder == usual or not storage.exists(usual):
            return []
    raise CorruptTable(
        f"There is no folder {folder} in {storage.root}, which {setting} names, but there is {usual}. Correct the "
        "setting in hoodie.properties, or restore the folder.",
        condition="INVALID_PROPERTY",
        path=folder,
        key=setting,
    )
