"""What planning hands to readers: plain, serialisable values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.model.file_group import FileSlice


@dataclass(frozen=True)
class MergeSpec:
    """How records of one key are merged; derived from the table's properties once.

    `mode` is COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING (custom mergers are refused at open).
    `meta_from_newer`: where an older record wins, the row still takes the five meta columns of the newer one (so
    does Hudi's partial-update payload, in the table versions that know payload classes).
    `deletes_unordered`: the ordering value of a delete counts for nothing: it deletes whatever stands, and any later
    record is alive again (so do the payload classes that Hudi runs as such, in version 6).
    """

    mode: str
    ordering_fields: tuple[str, ...] = ()
    partial_update_mode: str | None = None  # IGNORE_DEFAULTS | FILL_UNAVAILABLE
    unavailable_value: str | None = None
    delete_field: str | None = None
    delete_marker: str | None = None
    meta_from_newer: bool = False
    deletes_unordered: bool = False


@dataclass(frozen=True)
class KeySpec:
    """How a record key is found: in `_hoodie_record_key`, or computed when meta fields are not populated."""

    populate_meta_fields: bool = True
    key_fields: tuple[str, ...] = ()
    key_generator: str = "SIMPLE"


@dataclass(frozen=True)
class ColumnMapping:
    """Schema-on-read: where a requested column lives in files of one schema version.

    `source` is the file-side path (dotted names as a tuple) or None when the file cannot have it (added
    later, or dropped and added again); `children` maps nested fields (struct field names,
    `element`, `key`, `value`).
    """

    name: str
    source: str | None
    children: tuple[ColumnMapping, ...] = ()


def _is_kept(columns: tuple[ColumnMapping, ...], path: tuple[str, ...]) -> bool:
    found = next((column for column in columns if column.name == path[0]), None)
    if found is None or found.source != path[0]:
        return False
    return len(path) == 1 or _is_kept(found.children, path[1:])


@dataclass(frozen=True)
class ImageSpec:
    """How changes become Hudi's change data: rows as JSON, before and after.

    - `mode`: what the table's change files hold (its supplemental logging mode).
    - `instant`: the requested time of the commit.
    - `files`: the change files that it wrote for the group, relative to the table.
    - `schema`: the Arrow schema of the table's rows, serialised.
    """

    mode: str
    instant: str
    files: tuple[str, ...] = ()
    schema: bytes = b""


@dataclass(frozen=True)
class ChangeCommit:
    """The commit that changes name: `version` orders commits as text, `micros` since 1970, where they are known."""

    version: str
    micros: int | None = None


@dataclass(frozen=True)
class ChangeSpec:
    """Rows before and after; nothing for a side that has none. With `images` they are returned as change data.

    Each side is usually one file group; where rows went from one group to another, all groups that they may be in.
    With `commit` changes name it instead of a row kind alone.
    """

    before: tuple[ReadTask, ...] = ()
    after: tuple[ReadTask, ...] = ()
    images: ImageSpec | None = None
    commit: ChangeCommit | None = None


@dataclass(frozen=True)
class ReadTask:
    """One file slice to read, with everything a reader needs that is not in the files.

    - `valid_instants`: None, or the instants whose log blocks count (tables of version 6, or upgraded from
      it, where one log file holds blocks of several instants); `valid_before` adds every instant before that
      time, the start of the active timeline.
    - `max_instant`: None, or the newest block instant that counts (time travel).
    - `keep_commit_times`: None, or the commit times to keep (incremental reads).
    - `partition_values`: values of partition columns that the path tells, by name; rows show them whatever the
      files hold, which may be nothing (dropped columns).
    - `mappings`: schema-on-read column mappings by file path (base or log file), or by `path@instant` for logs
      whose blocks have several writers; absent where a file has the schema that is read. See `mapping_for`.
    - `change`: None, or what to compare: the task then reads rows that have changed, with their kind. `slice` is
      the newer of the two, and `keep_commit_times` the commit.
    - `file_schema_known_equal`: planning knows that the base file needs no conversion to the table schema.
    """

    slice: FileSlice
    merge: MergeSpec | None = None
    keys: KeySpec = field(default_factory=KeySpec)
    valid_instants: frozenset[str] | None = None
    valid_before: str | None = None
    max_instant: str | None = None
    keep_commit_times: frozenset[str] | None = None
    partition_values: Mapping[str, Any] = field(default_factory=dict)
    mappings: Mapping[str, tuple[ColumnMapping, ...]] = field(default_factory=dict)
    file_schema_known_equal: bool = False
    row_count: int | None = None
    change: ChangeSpec | None = None

    def counts_block(self, instant: str) -> bool:
        """Whether log blocks written by `instant` are to be read."""
        if self.max_instant is not None and instant > self.max_instant:
            return False
        if self.valid_instants is None or instant in self.valid_instants:
            return True
        return self.valid_before is not None and instant < self.valid_before

    def mapping_for(self, path: str, instant: str = "") -> tuple[ColumnMapping, ...] | None:
        """The column mapping of a file, or of one log block by the instant that wrote it; None for none."""
        found = self.mappings.get(f"{path}@{instant}") if instant else None
        return self.mappings.get(path) if found is None else found

    def keeps_names(self, paths: Iterable[tuple[str, ...]]) -> bool:
        """Whether columns, by their paths, are called in all files of the slice what they are called now."""
        return all(_is_kept(mapping, path) for mapping in self.mappings.values() for path in paths)

    @property
    def needs_merge(self) -> bool:
        """Whether log files must be merged."""
        return bool(self.slice.log_files)
