"""Folders of the timeline, named by settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from drawstring.errors import CorruptTable
from drawstring.storage.base import FileInfo, Storage

T = TypeVar("T")


def entries(storage: Storage, folder: str, *, usual: str, setting: str) -> list[FileInfo]:
    """What a folder holds; nothing where it was never made. Raises as `listed` does."""
    return listed(lambda: list(storage.list(folder)), storage, folder, usual=usual, setting=setting)


def listed(
    found: Callable[[], list[T]], storage: Storage, folder: str, *, usual: str, setting: str
) -> list[T]:
    """Return what was found in a folder; nothing where it was never made.

    Raises `CorruptTable` where the folder is missing and the one that Hudi makes, `usual`, is there: the setting was
    damaged, and without its instants a table would look empty.
    """
    try:
        return found()
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
