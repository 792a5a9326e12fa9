"""Any file system that pyarrow knows: object stores and HDFS."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import pyarrow.fs as pafs

from drawstring.errors import UnsupportedTable
from drawstring.storage.base import FileInfo, inside
from drawstring.storage.settings import s3_arguments

SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "hdfs": "hdfs", "viewfs": "hdfs"}
"""URI schemes that Spark users write, and what pyarrow calls them."""


class ArrowStorage:
    """Files below one URI of a `pyarrow.fs` file system; the connection is made when first used."""

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        self._uri = root.rstrip("/")
        self._options = dict(options or {})

    @property
    def root(self) -> str:
        """The URI as it was given."""
        return self._uri

    def __repr__(self) -> str:
        return f"ArrowStorage({self._uri!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_uri": self._uri, "_options": self._options}

    @cached_property
    def _connection(self) -> tuple[Any, str]:
        scheme, _, rest = self._uri.partition("://")
        if SCHEMES.get(scheme) == "s3":
            return pafs.S3FileSystem(**s3_arguments(self._options, rest.partition("/")[0])), rest
        filesystem, path = pafs.FileSystem.from_uri(f"{SCHEMES.get(scheme, scheme)}://{rest}")
        return filesystem, path

    def _path(self, path: str) -> str:
        base = self._connection[1].rstrip("/")
        return f"{base}/{inside(path, self._uri)}" if path else base

    def list(self, path: str = "", *, recursive: bool = False) -> Iterable[FileInfo]:
        """Yield the entries of a directory, hidden ones too."""
        filesystem, base = self._connection
        skip = len(base.rstrip("/")) + 1
        entries = filesystem.get_file_info(pafs.FileSelector(self._path(path), recursive=recursive))
        return [_info(entry, entry.path[skip:]) for entry in entries]

    def list_names(self, path: str) -> builtins.list[str]:
        """Return the names of the files of one directory."""
        return [entry.name for entry in self.list(path) if not entry.is_directory]

    def stat(self, path: str) -> FileInfo:
        """Describe one file or directory."""
        entry = self._connection[0].get_file_info(self._path(path))
        if entry.type == pafs.FileType.NotFound:
            raise FileNotFoundError(f"{self._uri}/{path}")
        return _info(entry, path)

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        entry = self._connection[0].get_file_info(self._path(path))
        return bool(entry.type != pafs.FileType.NotFound)

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        with self.open(path) as file:
            return bytes(file.read())

    def open(self, path: str) -> Any:
        """Open a seekable `pyarrow.NativeFile`."""
        return self._connection[0].open_input_file(self._path(path))

    def rename(self, source: str, target: str) -> None:
        """Raise `UnsupportedTable`: object stores copy and delete, which is not one step."""
        raise no_atomic_create(self._uri)

    def sync_directories(self, paths: Iterable[str]) -> None:
        """A store has made durable what it acknowledged."""

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        """Raise `UnsupportedTable`: pyarrow has no conditional put, so two writers could both believe they won."""
        raise no_atomic_create(self._uri)

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        """Raise `UnsupportedTable`: pyarrow has no conditional put."""
        raise no_atomic_create(self._uri)

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """Create or replace a file; parents are made."""
        filesystem = self._connection[0]
        filesystem.create_dir(self._path(path).rsplit("/", 1)[0], recursive=True)
        with filesystem.open_output_stream(self._path(path)) as stream:
            stream.write(content)

    def open_output(self, path: str) -> Any:
        """Open a new file for writing as a stream."""
        filesystem = self._connection[0]
        filesystem.create_dir(self._path(path).rsplit("/", 1)[0], recursive=True)
        return filesystem.open_output_stream(self._path(path))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file or, recursively, a directory; missing is fine."""
        filesystem = self._connection[0]
        entry = filesystem.get_file_info(self._path(path))
        if entry.type == pafs.FileType.Directory and recursive:
            filesystem.delete_dir(self._path(path))
        elif entry.type == pafs.FileType.File:
            filesystem.delete_file(self._path(path))

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        self._connection[0].create_dir(self._path(path), recursive=True)


def no_atomic_create(root: str) -> UnsupportedTable:
    """The error for writing to a store where files cannot be created atomically."""
    return UnsupportedTable(
        f"Cannot write to {root}: drawstring reaches this store through pyarrow, which cannot create a file only if "
        "it is absent, and writers that cannot do that lose each other's commits. Reading is supported. Write to a "
        "local or mounted file system, or with Apache Hudi. Nothing was written.",
        condition="WRITE_STORAGE",
        operation="write",
        path=root,
    )


def _info(entry: Any, path: str) -> FileInfo:
    modified = (entry.mtime_ns or 0) // 1_000_000
    return FileInfo(path, entry.size or 0, entry.type == pafs.FileType.Directory, modified)
