"""Replacing a whole table: the new one is made beside the old one and takes its place when it is whole."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from typing import TypeVar

from drawstring.storage import LocalStorage, Storage
from drawstring.write.locks import table_lock
from drawstring.write.transaction import refuse_if_being_written

R = TypeVar("R")


def replace_table(storage: Storage, write: Callable[[Storage], R]) -> R:
    """Let `write` make a table in an empty place, then put it where the old one is.

    On local disks the old table stays readable, and stays for good when the write fails; a write may also
    read what it replaces. Stores that cannot rename lose the old table first, as with Hudi.
    """
    if not isinstance(storage, LocalStorage):
        storage.delete("", recursive=True)
        return write(storage)
    home = storage.local_path("")
    suffix = uuid.uuid4().hex[:8]
    fresh = f"{os.path.dirname(home)}/.{os.path.basename(home)}.new-{suffix}"
    refuse_if_being_written(storage)
    try:
        result = write(LocalStorage(fresh))
        with table_lock(storage):
            refuse_if_being_written(storage)
            _swap(home, fresh, f"{os.path.dirname(home)}/.{os.path.basename(home)}.old-{suffix}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return result


def _swap(home: str, fresh: str, old: str) -> None:
    os.rename(home, old)
    try:
        os.rename(fresh, home)
    except OSError:
        os.rename(old, home)
        raise
    shutil.rmtree(old, ignore_errors=True)
