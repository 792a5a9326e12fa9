"""A local file that appears in one step, with its content, unless there is one of its name.

It has no name until it is whole: a process that is killed in between leaves nothing, in directories that readers list
least of all. Where the file system knows no such files it has another name until then.
"""

from __future__ import annotations

import errno
import os
import uuid

_NO_UNNAMED_FILES = frozenset(
    {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EXDEV, errno.EPERM}
)


def create(path: str, content: bytes, *, durable: bool = False) -> bool:
    """Create a file with its content in one step, parents too; False when there is one.

    `durable` content is on disk before the file has its name; the name itself is not synced.
    """
    link = _link_unnamed if hasattr(os, "O_TMPFILE") else _link_named
    try:
        return link(path, content, durable)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return link(path, content, durable)


def _link_unnamed(path: str, content: bytes, durable: bool) -> bool:
    directory = os.path.dirname(path)
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES and os.path.isdir(directory):
            return _link_named(path, content, durable)
        raise
    try:
        fill(descriptor, content, durable)
        # With a directory descriptor Python calls linkat, which alone follows the link in /proc.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in _NO_UNNAMED_FILES:
            return _link_named(path, content, durable)
        raise
    finally:
        os.close(descriptor)
    return True


def _link_named(path: str, content: bytes, durable: bool) -> bool:
    beside = f"{os.path.dirname(path)}/.{uuid.uuid4().hex}.tmp"
    descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        try:
            fill(descriptor, content, durable)
        finally:
            os.close(descriptor)
        os.link(beside, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(beside)
    return True


def fill(descriptor: int, content: bytes, durable: bool) -> None:
    """Write all of the content to an open file, and to disk if it is to be `durable`."""
    left = memoryview(content)
    while left:
        # The operating system may take a part only, on a full disk for instance; the next try says why.
        left = left[os.write(descriptor, left) :]
    if durable:
        os.fsync(descriptor)
