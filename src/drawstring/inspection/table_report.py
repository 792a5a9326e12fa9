"""The report of `inspect`: timeline, slices, schema history, indexes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from drawstring.inspection.html import document, grid
from drawstring.inspection.problems import Problem
from drawstring.inspection.text import counted, names
from drawstring.model.file_group import FileSlice


@dataclass(frozen=True)
class InstantReport:
    """One instant and, for completed writes, what it wrote."""

    requested_time: str
    completion_time: str | None
    action: str
    state: str
    operation: str = ""
    files: int = 0
    rows_written: int = 0
    rows_deleted: int = 0
    bytes_written: int = 0
    groups_replaced: int = 0


@dataclass(frozen=True)
class SliceReport:
    """A slice of one file group: a base file and the logs that belong to it."""

    partition: str
    file_id: str
    base_instant: str
    base_file: str | None
    base_bytes: int
    log_files: int
    log_bytes: int

    @classmethod
    def of(cls, visible: FileSlice) -> SliceReport:
        """Describe a slice."""
        base = visible.base_file
        return cls(
            partition=visible.group.partition_path,
            file_id=visible.group.file_id,
            base_instant=visible.base_instant,
            base_file=base.name if base else None,
            base_bytes=base.size if base else 0,
            log_files=len(visible.log_files),
            log_bytes=sum(log.size for log in visible.log_files),
        )


@dataclass(frozen=True)
class FieldChange:
    """One column or nested field that a schema change touched; `kind` is added, dropped, renamed or changed."""

    kind: str
    path: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        if self.kind == "added":
            return f"+ {self.path}: {self.after}"
        if self.kind == "dropped":
            return f"- {self.path}: {self.before}"
        if self.kind == "renamed":
            return f"~ {self.before} -> {self.after}"
        return f"~ {self.path}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class SchemaChange:
    """How the schema of one instant differs from the one before it; the first adds every column."""

    instant: str
    changes: tuple[FieldChange, ...]


@dataclass(frozen=True)
class IndexReport:
    """An index of the table, kept in its metadata table."""

    name: str
    kind: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableReport:
    """A table from above. `repr` is one line; notebooks show the whole of it.

    `slices` are the newest of their file groups, the ones that are read; `older_slices` wait for a cleaner, and
    serve time travel until then. With `as_of` both are those of that time. `problems` are what keeps the table from
    being read; what they touch is missing from the other parts.
    """

    path: str
    name: str
    table_type: str
    version: int
    record_key: tuple[str, ...]
    partition_fields: tuple[str, ...]
    ordering_fields: tuple[str, ...]
    merge_mode: str
    instants: tuple[InstantReport, ...] = ()
    slices: tuple[SliceReport, ...] = ()
    older_slices: tuple[SliceReport, ...] = ()
    schema_history: tuple[SchemaChange, ...] = ()
    indexes: tuple[IndexReport, ...] = ()
    settings_changed: bool = False
    as_of: str | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all visible files."""
        return sum(item.base_bytes + item.log_bytes for item in self.slices)

    @property
    def older_bytes(self) -> int:
        """Bytes of the files of older slices."""
        return sum(item.base_bytes + item.log_bytes for item in self.older_slices)

    @property
    def files(self) -> int:
        """Number of visible files."""
        return sum((item.base_file is not None) + item.log_files for item in self.slices)

    @property
    def partitions(self) -> int:
        """Number of partitions with visible files."""
        return len({item.partition for item in self.slices})

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        totals = {
            "partitions": self.partitions,
            "file_groups": len(self.slices),
            "files": self.files,
            "bytes": self.bytes,
            "older_bytes": self.older_bytes,
        }
        return {**asdict(self), "totals": totals}

    def facts(self) -> dict[str, str]:
        """The table's settings and totals as short texts, for people."""
        warning = {"settings": "edited or damaged since drawstring stored them"}
        older = {
            "older": f"{counted(self.older_bytes, 'byte')} in {counted(len(self.older_slices), 'older slice')}"
        }
        return {
            "type": f"{self.table_type.lower().replace('_', '-')}, version {self.version}",
            "record key": names(self.record_key) or "generated",
            "partitioned by": names(self.partition_fields) or "nothing",
            "ordered by": names(self.ordering_fields) or "commit time",
            "merge mode": self.merge_mode,
            "size": f"{counted(self.bytes, 'byte')} in {counted(self.files, 'file')}, "
            f"{counted(len(self.slices), 'file group')}, {counted(self.partitions, 'partition')}",
            **(older if self.older_slices else {}),
            **({"as of": self.as_of} if self.as_of else {}),
            **(warning if self.settings_changed else {}),
            **(
                {"problems": names([problem.condition for problem in self.problems])} if self.problems else {}
            ),
        }

    def __repr__(self) -> str:
        return f"TableReport({self.name!r}, {self.facts()['type']}, {self.facts()['size']})"

    def _repr_html_(self) -> str:
        return document(
            f"{self.name} ({self.path})",
            grid("Table", ("", ""), self.facts().items()),
            grid("Problems", ("condition", "message"), ((p.condition, p.message) for p in self.problems)),
            grid("Timeline", InstantReport.__dataclass_fields__, (asdict(i).values() for i in self.instants)),
            grid("File slices", SliceReport.__dataclass_fields__, (asdict(s).values() for s in self.slices)),
            grid(
                "Older file slices",
                SliceReport.__dataclass_fields__,
                (asdict(s).values() for s in self.older_slices),
            ),
            grid(
                "Schema history",
                ("instant", "change"),
                ((s.instant, c) for s in self.schema_history for c in s.changes),
            ),
            grid("Indexes", IndexReport.__dataclass_fields__, (asdict(i).values() for i in self.indexes)),
        )
