"""The record index as an index of writes: keys are found without reading any base file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.view.record_index import RecordIndexShards
from drawstring.write.index import Located

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordIndex:
    """Asks the shards of the record index that the keys belong to; what it names and is no longer there is left out."""

    shards: RecordIndexShards

    @classmethod
    def of(cls, state: TableState) -> RecordIndex | None:
        """Return the record index of a table; None, with a warning, where there is none to be trusted."""
        shards = RecordIndexShards.of(state.metadata_table)
        if isinstance(shards, RecordIndexShards):
            return cls(shards)
        logger.warning(
            "Not using the record index of %s: %s. Keys are looked for in the base files of all partitions instead.",
            state.storage.root,
            shards,
        )
        return None

    def locate(self, storage: Storage, keys: pa.Array, slices: Sequence[FileSlice]) -> list[Located]:
        """Return, for each slice that holds any of the keys, which ones."""
        by_group = {found.group: found for found in slices}
        numbers: dict[FileGroupId, list[int]] = {}
        for number, group in self.shards.places(keys):
            numbers.setdefault(group, []).append(number)
        return [
            Located(by_group[group], np.asarray(found))
            for group, found in numbers.items()
            if group in by_group
        ]
