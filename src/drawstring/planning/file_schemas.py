"""Schemas of base files, as their footers tell them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from drawstring.errors import CorruptTable
from drawstring.formats.parquet import ParquetSource
from drawstring.model.file_group import BaseFile
from drawstring.model.instant import Action
from drawstring.planning.table_state import TableState

_READERS = 16


@dataclass(frozen=True)
class FileSchemas:
    """The schemas of a table's Parquet base files; kept with the table's state.

    An instant writes all its files with one schema, so one footer tells that of its other files. Clustering is
    the exception: it may copy files without rewriting their rows.
    """

    state: TableState

    def of(self, base: BaseFile) -> pa.Schema | None:
        """The schema of a file; None when the file cannot be read, which is for its reader to report."""
        key = self._key(base)
        known = self.state.known_file_schemas
        if key not in known:
            known[key] = self._read(base)
        return known[key]

    def look_up(self, bases: Iterable[BaseFile]) -> None:
        """Read what is not known yet of many files at once."""
        known = self.state.known_file_schemas
        wanted = {self._key(base): base for base in bases}
        unknown = {key: base for key, base in wanted.items() if key not in known}
        if len(unknown) > 1:
            with ThreadPoolExecutor(min(_READERS, len(unknown))) as pool:
                known.update(zip(unknown, pool.map(self._read, unknown.values()), strict=True))

    def _key(self, base: BaseFile) -> str:
        written = self.state.timeline.by_requested_time.get(base.instant)
        shares_schema = written is not None and written.action is not Action.REPLACECOMMIT
        return base.instant if shares_schema else base.path

    def _read(self, base: BaseFile) -> pa.Schema | None:
        try:
            with ParquetSource(self.state.storage.open(base.path), base.path) as parquet:
                return parquet.schema
        except (CorruptTable, OSError):
            return None
