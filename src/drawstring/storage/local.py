"""Files on a local (or locally mounted) file system."""

from __future__ import annotations

import builtins
import ctypes
import errno
import io
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from drawstring.storage import local_create, local_swap
from drawstring.storage.base import FileInfo, inside, outside


class LocalStorage:
    """Files below one local directory, given as a plain path, `file:/…` or `file:///…`."""

    def __init__(self, root: str) -> None:
        self._has_scheme = root.startswith("file:")
        self._root = os.path.abspath(_local_path(root))

    @property
    def root(self) -> str:
        """The directory, with `file://` in front when it was opened by a URI."""
        return f"file://{self._root}" if self._has_scheme else self._root

    def __repr__(self) -> str:
        return f"LocalStorage({self.root!r})"

    def local_path(self, path: str) -> str:
        """The absolute path of a file of this storage."""
        return f"{self._root}/{inside(path, self._root)}" if path else self._root

    def _writable(self, path: str) -> str:
        """The absolute path of a file to change; what lies behind a link out of the table is not ours."""
        local = self.local_path(path)
        if self._has_plain_parents(path):
            return local
        root, parent = os.path.realpath(self._root), os.path.realpath(os.path.dirname(local))
        if path and os.path.commonpath([root, parent]) != root:
            raise outside(path, self._root)
        return local

    def _has_plain_parents(self, path: str) -> bool:
        """Whether every directory above a file, up to the root, is one and no link: mostly so, and quickly told."""
        directory = self._root
        for name in path.split("/")[:-1]:
            directory = f"{directory}/{name}"
            try:
                if not stat.S_ISDIR(os.lstat(directory).st_mode):
                    return False
            except OSError:
                return False
        return True

    def list(self, path: str = "", *, recursive: bool = False) -> Iterable[FileInfo]:
        """Yield the entries of a directory, hidden ones too."""
        return list(self._entries(path, recursive))

    def _entries(self, path: str, recursive: bool) -> Iterator[FileInfo]:
        pending = [path]
        while pending:
            directory = pending.pop()
            prefix = f"{directory}/" if directory else ""
            with os.scandir(self.local_path(directory)) as entries:
                for entry in entries:
                    if _is_loop(entry):
                        # Its files would be found, and read, once more with every round.
                        continue
                    try:
                        info = _info(prefix + entry.name, entry.stat(), entry.is_dir())
                    except FileNotFoundError:
                        # Writers make and drop temporary files beside the ones they publish.
                        continue
                    yield info
                    if recursive and info.is_directory:
                        pending.append(info.path)

    def list_names(self, path: str) -> builtins.list[str]:
        """Return the names of the files of one directory, without looking at them."""
        with os.scandir(self.local_path(path)) as entries:
            return [entry.name for entry in entries if not entry.is_dir()]

    def stat(self, path: str) -> FileInfo:
        """Describe one file or directory."""
        local = self.local_path(path)
        return _info(path, os.stat(local), os.path.isdir(local))

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return os.path.exists(self.local_path(path))

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        with open(self.local_path(path), "rb") as file:
            return file.read()

    def open(self, path: str) -> Any:
        """Open a seekable `pyarrow.NativeFile`."""
        return pa.OSFile(self.local_path(path), "rb")

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        """Create a file atomically with its content; False, and nothing written, when it exists."""
        local = self._writable(path)
        if not local_create.create(local, content, durable=durable):
            return False
        _drop_checksum(local)
        if durable:
            _sync_directory(os.path.dirname(local))
        return True

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        """Replace a file only if it holds exactly `expected`; None stands for no file."""
        local = self._writable(path)
        if expected is not None:
            done = local_swap.swap(local, expected, content, durable=durable)
        else:
            done = content is not None and local_create.create(local, content, durable=durable)
        if done:
            _drop_checksum(local)
        if done and durable:
            _sync_directory(os.path.dirname(local))
        return done

    def rename(self, source: str, target: str) -> None:
        """Give a file or a directory its name, atomically; parents are made."""
        local = self._writable(target)
        os.makedirs(os.path.dirname(local), exist_ok=True)
        _drop_checksum(local)
        os.rename(self._writable(source), local)

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Make the names in these directories, and the directories' own names, durable."""
        wanted: set[str] = set()
        for path in paths:
            segments = path.split("/") if path else []
            wanted |= {"/".join(segments[:depth]) for depth in range(len(segments) + 1)}
        for path in wanted:
            _sync_directory(self.local_path(path))

    def sibling(self, name: str) -> LocalStorage:
        """Return the storage of another directory in the same parent."""
        return LocalStorage(f"{os.path.dirname(self._root)}/{name}")

    def exchange(self, other: LocalStorage) -> None:
        """Swap two directories in one step: whoever opens the path sees the one or the other, whole.

        Durable is that only after `sync_parent`.
        """
        exchange_directories(self._root, other._root)

    def sync_parent(self) -> None:
        """Make the name of this directory, and of those beside it, durable."""
        _sync_directory(os.path.dirname(self._root))

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        """Create or replace a file; parents are made."""
        local = self._writable(path)
        os.replace(self._write_beside(local, content, durable=durable), local)
        _drop_checksum(local)

    def _write_beside(self, local: str, content: bytes, *, durable: bool = True) -> str:
        os.makedirs(os.path.dirname(local), exist_ok=True)
        temporary = f"{os.path.dirname(local)}/.{uuid.uuid4().hex}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                if durable:
                    # Published only when the bytes are on disk: a crash must not leave an empty instant.
                    os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        return temporary

    def open_output(self, path: str) -> Any:
        """Open a new file for writing as a stream; it is synced to disk when closed."""
        local = self._writable(path)
        os.makedirs(os.path.dirname(local), exist_ok=True)
        _drop_checksum(local)
        return _DurableFile(local, "wb")

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file or, recursively, a directory; missing is fine."""
        local = self._writable(path)
        if recursive and os.path.isdir(local) and not os.path.islink(local):
            _delete_tree(local)
            return
        try:
            os.unlink(local)
        except FileNotFoundError:
            return
        _drop_checksum(local)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        os.makedirs(self._writable(path), exist_ok=True)


class _DurableFile(io.FileIO):
    """A file whose bytes have reached the disk once it is closed."""

    def write(self, data: Any) -> int:
        # The operating system may take a part only, on a full disk for instance; the next try says why.
        view = memoryview(data).cast("B")
        written = 0
        while written < len(view):
            count = super().write(view[written:])
            if not count:
                raise OSError(errno.EIO, "the file took no bytes", self.name)
            written += count
        return written

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
        super().close()


def _local_path(root: str) -> str:
    if not root.startswith("file:"):
        return os.path.expanduser(root)
    parts = urlsplit(root)
    return unquote(parts.path) if "%" in parts.path else parts.path


def _is_loop(entry: os.DirEntry[str]) -> bool:
    """Whether a link leads back to a directory above it."""
    if not entry.is_symlink():
        return False
    here = os.path.realpath(os.path.dirname(entry.path))
    return os.path.join(here, "").startswith(os.path.join(os.path.realpath(entry.path), ""))


def _info(path: str, found: os.stat_result, is_directory: bool) -> FileInfo:
    return FileInfo(path, found.st_size, is_directory, found.st_mtime_ns // 1_000_000)


def _drop_checksum(local: str) -> None:
    # Hadoop verifies a hidden checksum file beside each local file; a stale one spoils the new content.
    directory, name = os.path.split(local)
    try:
        os.unlink(f"{directory}/.{name}.crc")
    except FileNotFoundError:
        return


def _delete_tree(local: str) -> None:
    """Delete a directory; what somebody else deletes at the same time is as good as deleted."""
    for directory, folders, files in os.walk(local, topdown=False):
        for name in files:
            with suppress(FileNotFoundError):
                os.unlink(f"{directory}/{name}")
        for name in folders:
            path = f"{directory}/{name}"
            with suppress(FileNotFoundError):
                os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    with suppress(FileNotFoundError):
        os.rmdir(local)


def _sync_directory(local: str) -> None:
    descriptor = os.open(local, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def exchange_directories(one: str, other: str) -> None:
    """Swap two directories of one file system in one step; raises OSError where that cannot be done."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError(errno.ENOSYS, "the operating system cannot exchange directories", one)
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    if libc.renameat2(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), one, None, other)
