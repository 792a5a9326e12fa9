"""Rows of a global index whose key lies in another partition than the one that they name.

A global index with `…update.partition.path` deletes the row there and inserts it here, unless what is stored wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.merge.ordering import event_kinds, normalised, older_stands
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import RECORD_KEY
from drawstring.storage.base import Storage

Outcomes = npt.NDArray[np.int8]
MOVES, STAYS, IS_NEW = 1, 2, 3
"""Outcomes for a row: deleted there and inserted here; written where its key lies; its key is no longer there."""


@dataclass(frozen=True)
class StoredVersions:
    """Reads the current versions of records in file groups, logs merged; sent to executors."""

    storage: Storage
    tasks: Mapping[FileGroupId, ReadTask]
    table_schema: pa.Schema
    ordering: tuple[str, ...]

    @classmethod
    def of(cls, state: TableState, slices: Sequence[FileSlice], ordering: tuple[str, ...]) -> StoredVersions:
        """Prepare to read some slices of a table."""
        schemas = TableSchemas(state, None)
        facts = TaskFacts(state, schemas)
        # Files keep their own values of partition columns.
        tasks = {found.group: replace(facts.task(found), partition_values={}) for found in slices}
        return cls(state.storage, tasks, schemas.table_schema, ordering)

    def outcomes(self, group: FileGroupId, rows: pa.Table, deleted: npt.NDArray[np.bool_]) -> Outcomes:
        """Return the outcome for rows whose keys were found in a group of another partition.

        `rows` has record key and ordering columns, one row per key.
        """
        stored = self._read(group)
        places = pc.index_in(
            rows.column(RECORD_KEY).combine_chunks(), stored.column(RECORD_KEY).combine_chunks()
        )
        found = np.flatnonzero(np.asarray(places.is_valid()))
        outcomes: Outcomes = np.full(rows.num_rows, IS_NEW, dtype=np.int8)
        outcomes[found] = MOVES
        older = self._stands(stored.take(places.drop_null()), rows.take(pa.array(found)), deleted[found])
        outcomes[found[older | deleted[found]]] = STAYS
        return outcomes

    def keys(self, group: FileGroupId) -> pa.Array:
        """Return the keys of the records in a group that are not deleted."""
        return self._read(group).column(RECORD_KEY).combine_chunks()

    def _stands(
        self, stored: pa.Table, incoming: pa.Table, deleted: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        if not self.ordering or not stored.num_rows:
            return np.zeros(stored.num_rows, dtype=bool)
        values = [incoming.column(name).combine_chunks() for name in self.ordering]
        kept = [stored.column(name).combine_chunks() for name in self.ordering]
        newer = [normalised(v.cast(k.type)) for v, k in zip(values, kept, strict=True)]
        return older_stands([normalised(k) for k in kept], newer, newer_kinds=event_kinds(deleted, values))

    def _read(self, group: FileGroupId) -> pa.Table:
        columns = [RECORD_KEY, *(self._stored_name(name) for name in self.ordering)]
        schema = pa.schema([self.table_schema.field(name) for name in columns])
        batches = read_task(
            self.tasks[group], storage=self.storage, table_schema=self.table_schema, columns=columns
        )
        found = pa.Table.from_batches(list(batches), schema=schema)
        return found.rename_columns([RECORD_KEY, *self.ordering])

    def _stored_name(self, name: str) -> str:
        return next((f for f in self.table_schema.names if f.lower() == name.lower()), name)
