"""Markers: a name written down before each data file, so that whatever a writer leaves can be found."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.model.file_names import join_path
from drawstring.storage.base import Storage

CREATE = "CREATE"
MERGE = "MERGE"
_INFIX = ".marker."


@dataclass(frozen=True)
class Markers:
    """The markers of one instant, one empty file each (Hudi's DIRECT kind)."""

    storage: Storage
    requested_time: str

    @property
    def directory(self) -> str:
        """Where the markers lie."""
        return f".hoodie/.temp/{self.requested_time}"

    def add(self, partition_path: str, file_name: str, kind: str) -> None:
        """Mark a data file that is about to be written."""
        name = join_path(partition_path, f"{file_name}{_INFIX}{kind}")
        self.storage.write(f"{self.directory}/{name}", b"")

    def data_files(self) -> list[str]:
        """Paths of the marked data files, relative to the table."""
        try:
            entries = list(self.storage.list(self.directory, recursive=True))
        except FileNotFoundError:
            return []
        skip = len(self.directory) + 1
        paths = [e.path[skip:] for e in entries if not e.is_directory and _INFIX in e.name]
        return sorted(path.rpartition(_INFIX)[0] for path in paths)

    def drop(self) -> None:
        """Delete all markers."""
        self.storage.delete(self.directory, recursive=True)
