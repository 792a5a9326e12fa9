"""Files in memory, public so that users can test with it."""

from __future__ import annotations

import builtins
import io
import threading
import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from drawstring.storage.base import FileInfo

_ROOTS: dict[str, dict[str, tuple[bytes, int]]] = {}
_LOCK = threading.Lock()


class MemoryStorage:
    """Files of one process under a name; two storages of one name share their files."""

    def __init__(self, root: str = "memory://table") -> None:
        self._root = root.rstrip("/")
        with _LOCK:
            _ROOTS.setdefault(self._root, {})

    @property
    def root(self) -> str:
        """The name as a URI."""
        return self._root

    @property
    def _files(self) -> dict[str, tuple[bytes, int]]:
        return _ROOTS[self._root]

    def list(self, path: str = "", *, recursive: bool = False) -> Iterable[FileInfo]:
        """Yield the entries of a directory; directories exist through their files or when made."""
        prefix = f"{path}/" if path else ""
        found: dict[str, FileInfo] = {}
        with _LOCK:
            files = dict(self._files)
        for name, (content, modified) in files.items():
            if name.startswith(prefix):
                _collect(found, prefix, name, FileInfo(name, len(content), False, modified), recursive)
        if not found and path and f"{path}/" not in files:
            raise FileNotFoundError(f"{self._root}/{path}")
        return list(found.values())

    def list_names(self, path: str) -> builtins.list[str]:
        """Return the names of the files of one directory."""
        return [entry.name for entry in self.list(path) if not entry.is_directory]

    def stat(self, path: str) -> FileInfo:
        """Describe one file or directory."""
        if path in self._files:
            content, modified = self._files[path]
            return FileInfo(path, len(content), False, modified)
        if any(name.startswith(f"{path}/") for name in self._files):
            return FileInfo(path, 0, True, 0)
        raise FileNotFoundError(f"{self._root}/{path}")

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        try:
            self.stat(path)
        except FileNotFoundError:
            return path == ""
        return True

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        try:
            return self._files[path][0]
        except KeyError:
            raise FileNotFoundError(f"{self._root}/{path}") from None

    def open(self, path: str) -> Any:
        """Open a seekable `pyarrow.NativeFile`."""
        return pa.BufferReader(self.read(path))

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory another name."""
        with _LOCK:
            found = [name for name in self._files if name == source or name.startswith(f"{source}/")]
            if not found:
                raise FileNotFoundError(f"{self._root}/{source}")
            for name in found:
                self._files[target + name[len(source) :]] = self._files.pop(name)

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Memory has nothing to sync."""

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        """Create a file; False, and nothing written, when it exists."""
        with _LOCK:
            if path in self._files:
                return False
            self._files[path] = (bytes(content), int(time.time() * 1000))
            return True

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        """Replace a file only if it holds exactly `expected`; None stands for no file."""
        with _LOCK:
            found = self._files.get(path)
            if (found[0] if found else None) != expected:
                return False
            if content is not None:
                self._files[path] = (bytes(content), int(time.time() * 1000))
            else:
                self._files.pop(path, None)
            return True

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """Create or replace a file."""
        with _LOCK:
            self._files[path] = (bytes(content), int(time.time() * 1000))

    def open_output(self, path: str) -> Any:
        """Open a stream whose bytes become the file when it is closed."""
        return _MemoryFile(self, path)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file or, recursively, a directory; missing is fine."""
        with _LOCK:
            self._files.pop(path, None)
            if recursive:
                for name in [name for name in self._files if name.startswith(f"{path}/")]:
                    del self._files[name]

    def make_directory(self, path: str) -> None:
        """Remember an empty directory."""
        with _LOCK:
            self._files.setdefault(f"{path}/", (b"", int(time.time() * 1000)))


class _MemoryFile(io.BytesIO):
    def __init__(self, storage: MemoryStorage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path

    def close(self) -> None:
        if not self.closed:
            self._storage.write(self._path, self.getvalue())
        super().close()


def _collect(found: dict[str, FileInfo], prefix: str, name: str, info: FileInfo, recursive: bool) -> None:
    parts = name[len(prefix) :].split("/")
    for depth in range(1, len(parts)):
        if depth == 1 or recursive:
            directory = prefix + "/".join(parts[:depth])
            found.setdefault(directory, FileInfo(directory, 0, True, 0))
    if parts[-1] and (len(parts) == 1 or recursive):
        found[name] = info
