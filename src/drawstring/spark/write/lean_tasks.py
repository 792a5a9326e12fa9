"""Reduces what PySpark does around every Python task."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import TypeVar
from zipimport import zipimporter

Given = TypeVar("Given")
Made = TypeVar("Made")


def lean(run: Callable[[Given], Iterator[Made]]) -> Callable[[Given], Iterator[Made]]:
    """Return the task with what spares the next one of the same worker."""

    def task(given: Given) -> Iterator[Made]:
        spare_the_next_task()
        yield from run(given)

    return task


def spare_the_next_task() -> None:
    """Save a reused worker of PySpark what it does around every task, however small: a tenth of a second.

    Before a task it invalidates the caches of Python's importers, so that the one for zip files (Spark is on the path
    as one) reads the whole archive again; after the task it runs the garbage collector over everything imported.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            # It is made again when something is imported, from the directory that is known.
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():
        gc.freeze()
