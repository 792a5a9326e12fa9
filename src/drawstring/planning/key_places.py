"""Rules out files for record keys by the record index, once the index is proved to cover every row.

The index has one place for each key, while inserts may have written the key to another place as well. Each entry names
a group that holds the key, because writers remove entries together with rows. So if the index has as many entries as
the table can have rows, each row has an entry of its own: no key occurs twice, and none is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from drawstring.errors import DrawstringError
from drawstring.model.commit_metadata import SERVICE_OPERATIONS, WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice, LogFile
from drawstring.model.file_names import bucket_of_file_id
from drawstring.planning.scan_plan import ScanSource
from drawstring.planning.table_state import TableState
from drawstring.view.footer_stats import footer_statistics
from drawstring.view.record_index import PARTITION, RecordIndexShards

BY_RECORD_INDEX = "record index"
_MAX_SLICES = 20_000
_MAX_FOOTERS = 256
"""How many footers are read for row counts that no commit of the active timeline tells."""
_MAX_LOG_BYTES = 4 << 20
"""How much of the index's logs is read to count its entries; a compaction of the metadata table empties them."""
_CONSISTENT_HASHING = ".hoodie/.bucket_index"


def has_record_index(state: TableState) -> bool:
    """Whether a table's settings name a record index."""
    return PARTITION in state.config.metadata_partitions


@dataclass(frozen=True)
class KeyPlaces:
    """Where keys are, of a source for which this is proved; see `of`."""

    shards: RecordIndexShards

    @staticmethod
    def of(source: ScanSource) -> KeyPlaces | str:
        """Return the places of keys, or why the record index does not prove them. The answer is kept."""
        if not source.reads_newest:
            return "it tells of the newest rows alone"
        known = source.state.known_key_places
        if not known:
            known.append(_proved(source))
        found: KeyPlaces | str = known[0]
        return found

    def groups(self, keys: Sequence[str]) -> set[FileGroupId]:
        """Return the file groups that hold some of the keys; no other group has any."""
        texts = pa.array(dict.fromkeys(keys), pa.string())
        return {group for _, group in self.shards.places(texts)}


def groups_of_keys(source: ScanSource, keys: Sequence[str]) -> set[FileGroupId] | str:
    """Return the file groups that hold some of the keys, no other has any; or why the record index does not tell."""
    try:
        places = KeyPlaces.of(source)
        return places if isinstance(places, str) else places.groups(keys)
    except (DrawstringError, OSError) as error:
        # Rows are found without the index too, and older files of it may have been cleaned meanwhile.
        return f"it cannot be read ({error})"


def _proved(source: ScanSource) -> KeyPlaces | str:
    state = source.state
    shards = RecordIndexShards.of(state.metadata_table)
    if isinstance(shards, str):
        return shards
    if shards.table.tells_of_others_than(state.timeline):
        return "a write came after the table was opened"
    slices = [found for path in source.partitions() for found in source.slices(path)]
    if len(slices) > _MAX_SLICES:
        return f"{len(slices)} file slices are too many to count their rows"
    rows = RowBound(state).of(slices)
    if isinstance(rows, str):
        return rows
    entries = shards.count(most_log_bytes=_MAX_LOG_BYTES)
    if entries is None:
        return "too much of it stands in logs"
    if entries != rows:
        return f"it has {entries} keys, and the files have up to {rows} rows: keys may be there twice or be deleted"
    return KeyPlaces(shards)


@dataclass(frozen=True)
class RowBound:
    """How many rows slices show at most, by what commits and footers say; nothing else is read."""

    state: TableState

    def of(self, slices: Sequence[FileSlice]) -> int | str:
        """Return the number, or why it is not known."""
        logs = [(found, log) for found in slices for log in found.log_files]
        added = [self._rows_added(found, log) for found, log in logs]
        if None in added:
            return "logs may hold keys that are in no base file"
        in_files = self._base_rows(slices)
        if in_files is None:
            return "the rows of base files are not known without reading many of them"
        return in_files + sum(rows or 0 for rows in added)

    def _base_rows(self, slices: Iterable[FileSlice]) -> int | None:
        bases = [found.base_file for found in slices if found.base_file is not None]
        stats = {base.path: self._stats(base.instant).get(base.path) for base in bases}
        untold = [path for path, stat in stats.items() if stat is None]
        if len(untold) > _MAX_FOOTERS:
            return None
        footers = footer_statistics(self.state.storage, untold, {})
        by_footer = [footers[path].rows if path in footers else None for path in untold]
        if None in by_footer:
            return None
        return sum(s.num_writes for s in stats.values() if s) + sum(rows or 0 for rows in by_footer)

    def _rows_added(self, found: FileSlice, log: LogFile) -> int | None:
        """How many keys a log holds that its base file may not have; None where its writer did not tell."""
        if self._hashes_consistently or bucket_of_file_id(found.group.file_id) is not None:
            # Writers to buckets call every row of an existing bucket an update.
            return None
        stat = self._stats(log.instant).get(log.path)
        return None if stat is None or self._is_service(log.instant) else stat.num_inserts

    def _is_service(self, instant: str) -> bool:
        written = self.state.timeline.by_requested_time[instant]
        return self.state.metadata(written).operation in SERVICE_OPERATIONS

    def _stats(self, instant: str) -> dict[str, WriteStat]:
        if instant not in self._known:
            written = self.state.timeline.by_requested_time.get(instant)
            stats = self.state.metadata(written).stats if written is not None else ()
            self._known[instant] = {stat.path: stat for stat in stats}
        return self._known[instant]

    @cached_property
    def _known(self) -> dict[str, dict[str, WriteStat]]:
        return {}

    @cached_property
    def _hashes_consistently(self) -> bool:
        return self.state.storage.exists(_CONSISTENT_HASHING)
