"""The storage protocol: the only way the core touches files."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from drawstring.errors import InvalidInput


@dataclass(frozen=True)
class FileInfo:
    """One entry of a listing. `path` is relative to the storage's root; times are epoch milliseconds."""

    path: str
    size: int
    is_directory: bool
    modified_ms: int

    @property
    def name(self) -> str:
        """The last segment of the path."""
        return self.path.rsplit("/", 1)[-1]


def inside(path: str, root: str) -> str:
    """Return a path that is relative to `root`, or raise `InvalidInput` when it would leave it."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise outside(path, root)
    return path


def outside(path: str, root: str) -> InvalidInput:
    """The error for a path that is not below the table."""
    return InvalidInput(
        f"The path {path!r} leaves the table at {root}; expected a relative path without '..', and no symbolic "
        "link to another place.",
        condition="PATH_OUTSIDE_TABLE",
        path=path,
        root=root,
    )


class Storage(Protocol):
    """Files below one root (the table's base path); all paths are relative to it, `/`-separated.

    Missing files raise FileNotFoundError, from `list` as well. Implementations are picklable and thread-safe.
    """

    @property
    def root(self) -> str:
        """The root as a URI or absolute path that Spark understands too."""
        ...

    def list(self, path: str = "", *, recursive: bool = False) -> Iterable[FileInfo]:
        """Yield the entries of a directory, hidden ones too."""
        ...

    def list_names(self, path: str) -> builtins.list[str]:
        """Return the names of the files, not the directories, of one directory: cheaper than `list`."""
        ...

    def stat(self, path: str) -> FileInfo:
        """Describe one file or directory."""
        ...

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        ...

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        ...

    def open(self, path: str) -> Any:
        """Open a seekable file that pyarrow reads natively (a `pyarrow.NativeFile`)."""
        ...

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        """Create a file atomically with its content; False, and nothing written, when it exists.

        With `durable`, content and name have reached the disk on return; without, a power cut may take both.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory its name, atomically; parents are made. Without a source: FileNotFoundError."""
        ...

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Make the names in these directories durable."""
        ...

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        """Replace a file only if it holds exactly `expected`; False, and nothing changed, when it does not.

        None stands for no file: as `expected` the file is created, as `content` it is deleted. The change is atomic
        but need not survive a power cut unless it is `durable`: locks, for instance, nobody holds after one. Raises
        `UnsupportedTable` where the store has no conditional put.
        """
        ...

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """Create or replace a file; parents are made. `durable` as in `create_if_absent`."""
        ...

    def open_output(self, path: str) -> Any:
        """Open a new file for writing as a stream; parents are made, and the bytes are durable when closed."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file or, recursively, a directory; missing is fine."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        ...
