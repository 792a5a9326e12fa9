"""Deleting folders that nobody uses, by a process that may be paused after it found that out.

The lock lapses meanwhile, and others may make the same folders anew. So a folder is moved away in one step, and back
again if it turns out to be in use.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from drawstring.storage.base import Storage
from drawstring.write.markers import TEMP
from drawstring.write.staging import drop_folder


def drop_folders(storage: Storage, paths: Iterable[str], is_unused: Callable[[], bool]) -> bool:
    """Delete folders, missing ones too; False, and no more is deleted, once they are in use."""
    aside = str(uuid.uuid4().int)  # by digits alone, so that it is swept should this process die
    try:
        return all(_is_moved(storage, path, f"{TEMP}/{aside}/{path}", is_unused) for path in paths)
    finally:
        drop_folder(storage, aside)


def _is_moved(storage: Storage, path: str, aside: str, is_unused: Callable[[], bool]) -> bool:
    if not storage.exists(path):
        return True
    if not is_unused():
        return False
    storage.rename(path, aside)
    if is_unused():
        return True
    _put_back(storage, aside, path)
    return False


def _put_back(storage: Storage, aside: str, path: str) -> None:
    """Move a folder back; where others made it anew meanwhile, file by file beside what they made."""
    try:
        storage.rename(aside, path)
    except OSError:
        for file in storage.list(aside, recursive=True):
            home = path + file.path.removeprefix(aside)
            if not file.is_directory and not storage.exists(home):
                storage.rename(file.path, home)
