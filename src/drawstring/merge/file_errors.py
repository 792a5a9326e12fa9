"""Errors that say which file, of which partition and instant, is at fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from drawstring.errors import CorruptTable, IncompatibleSchema, UnsupportedTable
from drawstring.model.file_group import BaseFile, LogFile


@contextlib.contextmanager
def naming_file(file: BaseFile | LogFile, partition: str, *, instant: str = "") -> Iterator[None]:
    """Name the file, its partition and instant in whatever error is raised inside the context."""
    facts = {"path": file.path, "partition": partition, "instant": instant or file.instant}
    where = f"file {file.path} (partition {partition!r}, instant {facts['instant']})"
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptTable(
            f"Missing {where}: the timeline names it but it is not there. "
            "It may have been removed by a cleaner since the read began; read again, or restore it.",
            condition="MISSING_FILE",
            **facts,
        ) from error
    except CorruptTable as error:
        if "partition" in error.fields:
            raise
        raise CorruptTable(
            f"Damaged {where}. {error.message} Restore the file, or roll the instant back.",
            condition=error.condition,
            **{**error.fields, **facts},
        ) from error
    except (UnsupportedTable, IncompatibleSchema) as error:
        if "partition" in error.fields:
            raise
        raise type(error)(
            f"In {where}: {error.message}", condition=error.condition, **{**error.fields, **facts}
        ) from error
