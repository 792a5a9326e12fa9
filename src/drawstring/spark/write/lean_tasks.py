"""Python tasks of Spark that cost little beside their work."""

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
    """Take from a reused worker of PySpark what it does around every task, however small: a tenth of a second.

    Before a task it lets Python's importers forget what they know, upon which those of zip files (Spark puts itself on
    the path as one) read all of it again; after it, it collects garbage among all that was ever imported.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            # It is made again when something is imported, from the directory that is known.
            del sys.path_importer_cache[path]
    if not gc.get_freeze_count():
        gc.freeze()
