"""Compare-and-swap of one small local file, for locks and for what others may have made again.

Replacing and deleting compare first, and hold the
kernel's lock of the directory (`flock`) meanwhile: the kernel drops it when its process dies, so that nobody who is
killed half-way is in the way of the next. Locks are not synced to disk: after a power cut no process holds one.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from drawstring.storage.local_create import fill

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

_GUARD_SECONDS = 10.0


def swap(path: str, expected: bytes, content: bytes | None, *, durable: bool = False) -> bool:
    """Replace a file that holds exactly `expected`, or delete it when `content` is None; False when it holds else.

    `durable` content is on disk before the file has its name; the name itself is not synced.
    Raises TimeoutError when another process keeps the directory's lock, which none does for longer than it takes to
    write a few bytes unless it is stopped.
    """
    directory, name = os.path.split(path)
    # Others delete locks without asking, as Apache Hudi does when it closes: then it holds nothing any more.
    with _guard(directory), suppress(FileNotFoundError):
        if _read(path) != expected:
            return False
        if content is None:
            os.unlink(path)
            return True
        if content == expected:
            # Renewed: only its time changes, which costs far less than a new file.
            os.utime(path)
            return True
        # One name for all: only the holder of the guard writes it, and what a killed one left is overwritten.
        beside = f"{directory}/.{name}.swap"
        with open(beside, "wb", buffering=0) as file:
            fill(file.fileno(), content, durable)
        os.replace(beside, path)
        return True
    return False


def _read(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb", buffering=0) as file:
        return file.read()
    return None


@contextmanager
def _guard(directory: str) -> Iterator[None]:
    if fcntl is None:  # pragma: no cover - Windows
        raise OSError(errno.ENOTSUP, "This system has no flock, which locks need", directory)
    try:
        descriptor = _locked(directory)
    except FileNotFoundError:
        # Without its directory there is no file to compare.
        yield
        return
    try:
        yield
    finally:
        # Said aloud: a process forked meanwhile shares the descriptor, and closing ours alone would not unlock.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _locked(directory: str) -> int:
    """Open the directory, or a file in it where only files that are open for writing can be locked, and lock it."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _flock(descriptor, directory)
    except TimeoutError:
        raise
    except OSError:
        return _flock(os.open(f"{directory}/.guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), directory)


def _flock(descriptor: int, directory: str) -> int:
    deadline = time.monotonic() + _GUARD_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _guard_kept(directory) from None
                time.sleep(0.0005)
    except BaseException:
        os.close(descriptor)
        raise


def _guard_kept(directory: str) -> TimeoutError:
    return TimeoutError(
        errno.ETIMEDOUT, "Another process keeps the directory's lock; is it stopped?", directory
    )
