"""The report of `plan`: what a scan would read, what it skips, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from drawstring.inspection.html import document, grid
from drawstring.inspection.text import counted, names

REASONS = {
    "partition": "the partition's path rules the condition out",
    "partition statistics": "bounds of the whole partition, kept in the metadata table",
    "column statistics": "bounds of the files' columns, kept in the metadata table",
    "footer": "bounds in the Parquet footers",
    "record index": "every row has its entry in the record index, and the record keys are elsewhere",
    "bloom filter": "the bloom filter in its footer knows none of the record keys",
    "limit": "the other slices hold enough rows",
    "top n": "enough rows of other slices come before all of its rows",
    "aggregate": "metadata proves what it contributes",
    "runtime filter": "a filter that the query made while it ran rules it out",
}
"""What each reason to skip a slice means, for people."""


@dataclass(frozen=True)
class TaskReport:
    """One slice that would be read; `kind` is plain (a base file), merged (base and logs) or logs (no base file)."""

    partition: str
    file_id: str
    kind: str
    base_file: str | None
    log_files: int
    bytes: int
    rows: int | None = None
    base_instant: str = ""


@dataclass(frozen=True)
class SkippedGroup:
    """File slices that would not be read, for one reason."""

    reason: str
    slices: int
    bytes: int = 0


@dataclass(frozen=True)
class SkippedSlice:
    """One slice that would not be read, and why."""

    partition: str
    file_id: str
    reason: str
    bytes: int


@dataclass(frozen=True)
class PlanReport:
    """The plan of one scan as values. `repr` is one line; notebooks show the whole of it.

    `notes` say which push-downs were declined, and why.
    """

    path: str
    instant: str | None
    where: str | None
    columns: tuple[str, ...]
    tasks: tuple[TaskReport, ...] = ()
    skipped: tuple[SkippedGroup, ...] = ()
    skipped_slices: tuple[SkippedSlice, ...] = ()
    bytes_skipped: int = 0
    planning_seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of the files that would be read."""
        return sum(task.bytes for task in self.tasks)

    @property
    def slices_skipped(self) -> int:
        """Number of file slices that would not be read."""
        return sum(group.slices for group in self.skipped)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        totals = {"tasks": len(self.tasks), "bytes": self.bytes, "slices_skipped": self.slices_skipped}
        return {**asdict(self), "totals": totals}

    def facts(self) -> dict[str, str]:
        """The question and the totals as short texts, for people."""
        return {
            "as of": self.instant or "no commit yet",
            "where": self.where or "everything",
            "columns": names(self.columns),
            "reads": f"{counted(len(self.tasks), 'file slice')}, {counted(self.bytes, 'byte')}",
            "skips": f"{counted(self.slices_skipped, 'file slice')}, {counted(self.bytes_skipped, 'byte')}",
            "planned in": f"{self.planning_seconds * 1000:.1f} ms",
        }

    def __repr__(self) -> str:
        return f"PlanReport(reads {self.facts()['reads']}; skips {self.facts()['skips']})"

    def _repr_html_(self) -> str:
        return document(
            f"Plan of a scan of {self.path}",
            grid("Scan", ("", ""), self.facts().items()),
            grid("Read", TaskReport.__dataclass_fields__, (asdict(task).values() for task in self.tasks)),
            grid(
                "Skipped",
                (*SkippedGroup.__dataclass_fields__, "why"),
                ((*asdict(group).values(), REASONS.get(group.reason, "")) for group in self.skipped),
            ),
            grid("Declined", ("",), ((note,) for note in self.notes)),
        )
