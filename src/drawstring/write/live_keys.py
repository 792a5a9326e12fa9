"""Keys that are in several base files, where logs have deleted all but one of the rows.

A row that a log deleted is still in its base file, and its key may have been inserted into another file group since. An
update of both groups would bring the deleted row back beside the new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.planning.table_state import TableState
from drawstring.write.index import LiveKeys, Located, LookUp
from drawstring.write.moved_rows import StoredVersions

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class StoredLiveKeys:
    """Finds out by reading which keys of file groups are alive, logs merged; sent to executors.

    `began` has the base instants of the groups: the newest place of a key is where it was alive last.
    """

    stored: StoredVersions
    began: Mapping[FileGroupId, str]

    @classmethod
    def of(cls, state: TableState, slices: Sequence[FileSlice]) -> StoredLiveKeys:
        """Prepare to read slices of a table."""
        stored = StoredVersions.of(state, [found for found in slices if found.log_files], ())
        return cls(stored, {found.group: found.base_instant for found in slices})

    def alive(self, group: FileGroupId, keys: pa.Array) -> _Mask:
        """Return which of the keys that were found in a group are alive there."""
        if group not in self.stored.tasks:
            return np.ones(len(keys), dtype=bool)
        return np.asarray(pc.is_in(keys, value_set=self.stored.keys(group)))


def without_dead_places(lookup: LookUp, located: Sequence[Located], keys: pa.Array) -> Sequence[Located]:
    """Leave out places where keys are dead; for a key that is dead everywhere, keep the newest place."""
    times = np.zeros(len(keys), dtype=np.int64)
    for one in located:
        times += _among(one.keys, len(keys))
    doubtful = times > 1
    if lookup.live_keys is None or not doubtful.any():
        return located
    live_keys = lookup.live_keys([one.slice.group for one in located])
    by_age = sorted(located, key=lambda one: live_keys.began[one.slice.group])
    lives = [_lives(live_keys, one, keys, doubtful) for one in by_age]
    somewhere = np.logical_or.reduce(lives)
    newest = np.full(len(keys), -1, dtype=np.int64)
    for number, one in enumerate(by_age):
        newest[one.keys] = number
    kept = [
        _filtered(one, alive | ~doubtful | (~somewhere & (newest == number)))
        for number, (one, alive) in enumerate(zip(by_age, lives, strict=True))
    ]
    return [one for one in kept if len(one.keys)]


def _lives(live_keys: LiveKeys, one: Located, keys: pa.Array, doubtful: _Mask) -> _Mask:
    """Which of all keys are alive in a place, of those that are found in others too."""
    found = np.flatnonzero(_among(one.keys, len(keys)) & doubtful)
    lives = np.zeros(len(keys), dtype=bool)
    if len(found):
        lives[found] = live_keys.alive(one.slice.group, keys.take(pa.array(found)))
    return lives


def _among(numbers: npt.NDArray[np.int64], count: int) -> _Mask:
    found = np.zeros(count, dtype=bool)
    found[numbers] = True
    return found


def _filtered(one: Located, kept: _Mask) -> Located:
    mask = kept[one.keys]
    positions = None if one.positions is None else one.positions[mask]
    return replace(one, keys=one.keys[mask], positions=positions)
