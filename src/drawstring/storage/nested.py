"""A folder of another storage as a storage of its own: how the metadata table is opened."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from drawstring.storage.base import FileInfo, Storage


@dataclass(frozen=True)
class NestedStorage:
    """Files below `folder` of `parent`."""

    parent: Storage
    folder: str

    @property
    def root(self) -> str:
        """The parent's root and the folder."""
        return f"{self.parent.root}/{self.folder}"

    def _path(self, path: str) -> str:
        return f"{self.folder}/{path}" if path else self.folder

    def list(self, path: str = "", *, recursive: bool = False) -> Iterable[FileInfo]:
        """Yield the entries of a directory, hidden ones too."""
        skip = len(self.folder) + 1
        entries = self.parent.list(self._path(path), recursive=recursive)
        return [replace(entry, path=entry.path[skip:]) for entry in entries]

    def list_names(self, path: str) -> builtins.list[str]:
        """Return the names of the files of one directory."""
        return self.parent.list_names(self._path(path))

    def stat(self, path: str) -> FileInfo:
        """Describe one file or directory."""
        return replace(self.parent.stat(self._path(path)), path=path)

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return self.parent.exists(self._path(path))

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        return self.parent.read(self._path(path))

    def open(self, path: str) -> Any:
        """Open a seekable `pyarrow.NativeFile`."""
        return self.parent.open(self._path(path))

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        """Create a file atomically; False when it exists."""
        return self.parent.create_if_absent(self._path(path), content, durable=durable)

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory another name."""
        self.parent.rename(self._path(source), self._path(target))

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Make the names in these directories durable."""
        self.parent.sync_directories([self._path(path) for path in paths])

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        """Replace a file only if it holds exactly `expected`."""
        return self.parent.replace_if(self._path(path), expected, content, durable=durable)

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """Create or replace a file."""
        self.parent.write(self._path(path), content, durable=durable)

    def open_output(self, path: str) -> Any:
        """Open a new file for writing as a stream."""
        return self.parent.open_output(self._path(path))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file or, recursively, a directory."""
        self.parent.delete(self._path(path), recursive=recursive)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        self.parent.make_directory(self._path(path))
