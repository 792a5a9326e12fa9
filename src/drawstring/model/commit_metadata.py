"""What commits and plans say, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SERVICE_OPERATIONS = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})
"""Operations that rewrite rows without changing them; the schema they carry is not the table's newest."""


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One file written by a commit; `path` is relative to the table.

    `prev_commit` is the instant of the base file that was rewritten, the text "null" in a new file group.
    `runtime_ms` is how long its task took, `compacted_logs` and `compacted_bytes` what a compaction merged into it.
    `slice_base` and `slice_logs` name the files of the slice that a log file was appended to, where that is told.
    """

    file_id: str
    path: str
    partition_path: str
    num_writes: int = 0
    num_deletes: int = 0
    num_inserts: int = 0
    file_size: int = 0
    log_files: tuple[str, ...] = ()
    cdc_files: tuple[str, ...] = ()
    num_updates: int = 0
    prev_commit: str = "null"
    prev_base_file: str | None = None
    cdc_sizes: tuple[int, ...] = ()
    runtime_ms: int = 0
    compacted_logs: int = 0
    compacted_bytes: int = 0
    slice_base: str = ""
    slice_logs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its partition path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def sizes(self) -> dict[str, int]:
        """Every file by its path, change files too, with its bytes."""
        return {self.path: self.file_size, **dict(zip(self.cdc_files, self.cdc_sizes, strict=False))}


@dataclass(frozen=True)
class CommitMetadata:
    """What a completed commit, deltacommit or replacecommit says.

    `replaced` names, by partition path, the file groups that the commit takes out of the table.
    """

    operation: str = "UNKNOWN"
    stats: tuple[WriteStat, ...] = ()
    replaced: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> str:
        """The Avro schema that the commit wrote with, or an empty string."""
        return self.extra.get("schema") or ""

    @property
    def internal_schema(self) -> str:
        """The schema with column ids, where schema on read was used, or an empty string."""
        return self.extra.get("latest_schema") or ""


@dataclass(frozen=True)
class CompactionOperation:
    """One file group of a compaction plan, with the names of the files to merge."""

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None = None
    log_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedClean:
    """What a requested clean is to delete: names by partition path, and what it says of the timeline."""

    policy: str
    earliest_retained: tuple[str, str] | None
    last_completed: str
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CleanRecord:
    """What a completed clean says to the next one: `earliest_retained` is empty where versions were counted."""

    earliest_retained: str = ""
    last_completed: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
