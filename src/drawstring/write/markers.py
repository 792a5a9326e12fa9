"""What lies in an instant's folder of `.hoodie/.temp`: staged files, and markers for whoever rolls it back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from drawstring.storage.base import FileInfo, Storage

TEMP = ".hoodie/.temp"
CREATE = "CREATE"
MERGE = "MERGE"
_INFIX = ".marker."
_LISTS = re.compile(r"^MARKERS\d+$")


def staged_path(requested_time: str, path: str) -> str:
    """Return where a task of an instant writes the file that will be at `path`."""
    return f"{TEMP}/{requested_time}/.staged/{path}"


def marker_path(requested_time: str, data_file: str, kind: str) -> str:
    """Return the path of the marker of a data file (Hudi's DIRECT kind: an empty file each)."""
    return f"{TEMP}/{requested_time}/{data_file}{_INFIX}{kind}"


@dataclass(frozen=True)
class Markers:
    """The markers of one instant, of whichever of Hudi's two kinds."""

    storage: Storage
    requested_time: str

    @property
    def directory(self) -> str:
        """Where the markers lie."""
        return f"{TEMP}/{self.requested_time}"

    def data_files(self) -> list[str]:
        """Paths of the marked data files, relative to the table."""
        try:
            entries = list(self.storage.list(self.directory, recursive=True))
        except FileNotFoundError:
            return []
        names = [name for entry in entries if not entry.is_directory for name in self._names(entry)]
        return sorted({name.rpartition(_INFIX)[0] for name in names if _INFIX in name})

    def _names(self, entry: FileInfo) -> list[str]:
        # Hudi's timeline server gathers the markers of an instant as lines of a few files.
        if _LISTS.match(entry.name):
            return self.storage.read(entry.path).decode().splitlines()
        return [entry.path[len(self.directory) + 1 :]]

    def exist(self) -> bool:
        """Whether the instant has a folder for markers."""
        return self.storage.exists(self.directory)
