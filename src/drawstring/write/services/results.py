"""What services did, or would do, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CleanResult:
    """A clean. Without an instant there was nothing to delete, or it was a dry run.

    - `files`: names of the files that were deleted, or would be, by partition path.
    - `failed`: those that could not be deleted.
    - `finished`: instants of cleans that somebody had begun, and that were finished first.
    """

    path: str
    instant: str | None = None
    completion_time: str | None = None
    policy: str = ""
    earliest_retained: str | None = None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    finished: tuple[str, ...] = ()
    is_dry_run: bool = False
    seconds: float = 0.0

    @property
    def files_deleted(self) -> int:
        """How many files were deleted, or would be."""
        return sum(map(len, self.files.values())) - sum(map(len, self.failed.values()))


@dataclass(frozen=True)
class ArchiveResult:
    """Archived instants, as (requested time, action), oldest first; `segments` are files of the history."""

    path: str
    instants: tuple[tuple[str, str], ...] = ()
    segments: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    is_dry_run: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class PlannedGroup:
    """A file group that a compaction takes in."""

    partition_path: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]
    bytes: int = 0


@dataclass(frozen=True)
class Compaction:
    """One compaction. `completion_time` is None while it is scheduled and not run."""

    instant: str
    completion_time: str | None = None
    groups: tuple[PlannedGroup, ...] = ()
    rows: int = 0
    bytes_written: int = 0


@dataclass(frozen=True)
class CompactResult:
    """Compactions that were scheduled or run; in a dry run what would be.

    - `compactions`: in the order in which they ran, those first that others had scheduled.
    - `running`: instants of compactions that others are running just now; they were left alone.
    """

    path: str
    compactions: tuple[Compaction, ...] = ()
    running: tuple[str, ...] = ()
    is_dry_run: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class ServiceOutcome:
    """What one service after a write did: its result, or the error that it ended in."""

    service: str
    result: CleanResult | ArchiveResult | CompactResult | None = None
    error: Exception | None = None
