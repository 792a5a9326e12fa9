"""Faults of the operating system itself: system calls that fail, full disks, missing permissions, too many files."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from drawstring.errors import DrawstringError
from drawstring.storage import LocalStorage
from tests.small_writes import in_child, new_table, rows_of
from tests.support.struck_writes import OLD, act, assert_whole

STRIDE = 17
"""One system call in so many fails in the short form; in the long one each does."""
CALLS = [
    ("write", "ENOSPC"),
    ("write", "EIO"),
    ("fsync", "EIO"),
    ("openat", "EMFILE"),
    ("openat", "EACCES"),
    ("rename", "EIO"),
    ("linkat", "ENOSPC"),
    ("unlink", "EIO"),
    ("mkdir", "ENOSPC"),
    # Killed within an operation of storage, where no hook in Python strikes.
    ("fsync", "SIGKILL"),
    ("linkat", "SIGKILL"),
    ("close", "SIGKILL"),
]
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
needs_strace = pytest.mark.skipif(
    shutil.which("strace") is None, reason="strace is not installed: apt-get install strace"
)
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may mount and become somebody else")


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    found = {name: tmp_path_factory.mktemp(name) / "table" for name in TYPES}
    for name, path in found.items():
        new_table(path, OLD, options={"hoodie.table.type": name})
    return found


def stopped_child(act: Callable[[], None]) -> int:
    """Fork a process that waits until it is let go, then acts; its exit code is 1 for an error that says why."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
            act()
            code = 0
        except (OSError, DrawstringError):
            code = 1
        finally:
            os._exit(code)
    os.waitpid(child, os.WUNTRACED)
    return child


def fail_call(log: Path, act: Callable[[], None], call: str, error: str, when: int) -> tuple[int, bool]:
    """Let the n-th such call of a process fail, or kill it; returns its exit code, and whether it came to that."""
    child = stopped_child(act)
    what = "signal" if error.startswith("SIG") else "error"
    inject = ["-e", f"trace={call}", "-e", f"inject={call}:{what}={error}:when={when}"]
    tracer = subprocess.Popen(
        ["strace", "-f", "-o", str(log), *inject, "-p", str(child)], stderr=subprocess.PIPE, text=True
    )
    said = tracer.stderr.readline()
    if "attached" not in said:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.skip(f"strace may not trace here: {said.strip()}")
    os.kill(child, signal.SIGCONT)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    tracer.communicate(timeout=60)
    return code, "INJECTED" in log.read_text() or code == -signal.SIGKILL


def fail_calls(template, tmp_path, kind, call, error, stride):
    hits = 0
    for when in range(1, 2000, stride):
        path = tmp_path / str(when) / "table"
        shutil.copytree(template, path)
        code, hit = fail_call(
            tmp_path / "trace", lambda path=path: act(LocalStorage(str(path)), kind), call, error, when
        )
        assert code in (0, 1, -signal.SIGKILL), (call, error, when, code)
        assert_whole(path, kind, (call, error, when), acknowledged=code == 0)
        shutil.rmtree(path.parent)
        if not hit:
            break
        hits += 1
    assert hits
    assert not hit


@needs_strace
@pytest.mark.parametrize(
    ("table_type", "call", "error"),
    [*(("COPY_ON_WRITE", *found) for found in CALLS), ("MERGE_ON_READ", "write", "ENOSPC")],
)
def test_system_call_that_fails_leaves_the_table_whole(templates, tmp_path, table_type, call, error):
    """Hooks in Python could lie; here the kernel says no."""
    fail_calls(templates[table_type], tmp_path, "upsert", call, error, STRIDE)


@needs_strace
@pytest.mark.torture
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("kind", ["upsert", "delete", "insert_overwrite", "overwrite"])
@pytest.mark.parametrize(("call", "error"), CALLS)
def test_every_system_call_that_fails_leaves_the_table_whole(
    templates, tmp_path, table_type, kind, call, error
):
    fail_calls(templates[table_type], tmp_path, kind, call, error, 1)


def test_too_many_open_files_at_any_number_is_an_error_and_a_second_try_works(templates, tmp_path):
    failed = 0
    for more in (0, 1, 2, 3, 5, 8, 13, 50):
        path = tmp_path / str(more) / "table"
        shutil.copytree(templates["COPY_ON_WRITE"], path)

        def limited(path=path, more=more):
            used = max(map(int, os.listdir("/proc/self/fd")))
            while os.open(os.devnull, os.O_RDONLY) < used:
                pass  # The limit is one of numbers, and some below the highest may be free.
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1 + more, used + 1 + more))
            act(LocalStorage(str(path)), "upsert")

        code = in_child(limited)
        assert_whole(path, "upsert", more, acknowledged=code == 0)
        failed += code != 0
        if code == 0:
            break
    assert failed
    assert code == 0


@needs_root
def test_somebody_who_may_not_write_changes_nothing(templates, tmp_path):
    path = tmp_path / "table"
    shutil.copytree(templates["COPY_ON_WRITE"], path)
    for place in (tmp_path, *tmp_path.parents):
        if os.stat(place).st_uid == 0 and place != Path("/"):
            place.chmod(stat.S_IMODE(os.stat(place).st_mode) | 0o055)

    def as_nobody():
        os.setuid(65534)
        with pytest.raises(PermissionError):
            act(LocalStorage(str(path)), "upsert")

    before = {name: name.stat().st_mtime_ns for name in path.rglob("*")}
    assert in_child(as_nobody) == 0
    assert {name: name.stat().st_mtime_ns for name in path.rglob("*")} == before
    assert rows_of(path) == sorted(OLD)


_NEW_MOUNTS, _READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x20000, 1, 32, 4096, 16384, 1 << 18


def mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (source.encode(), str(target).encode(), kind.encode(), flags, data.encode() or None)
    if libc.mount(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "mount", str(target))


def own_mounts() -> None:
    """What is mounted from here on is seen by this process alone, and goes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount("none", Path("/"), "", _RECURSIVE | _PRIVATE)


def may_mount() -> bool:
    return in_child(own_mounts) == 0


def in_new_process(act: str, *arguments: object) -> None:
    """Call a function of this module in a fresh process: threads of libraries do not survive a fork."""
    code = f"import sys; from tests.unit.write import test_kernel_faults as m; m.{act}(*sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr


@needs_root
def test_file_system_that_is_read_only_is_an_error(templates, tmp_path):
    if not may_mount():
        pytest.skip("mounts are not permitted here")
    path = tmp_path / "table"
    shutil.copytree(templates["COPY_ON_WRITE"], path)
    in_new_process("write_on_read_only_disk", tmp_path, path)
    assert_whole(path, "upsert", 0, acknowledged=False)


def write_on_read_only_disk(disk: str, path: str) -> None:
    own_mounts()
    mount(disk, Path(disk), "", _BIND)
    mount("none", Path(disk), "", _BIND | _REMOUNT | _READ_ONLY)
    with pytest.raises(OSError, match="Read-only file system"):
        act(LocalStorage(path), "upsert")
    assert rows_of(path) == sorted(OLD)


@needs_root
@pytest.mark.parametrize("kind", ["upsert", "overwrite"])
def test_full_disk_is_an_error_and_the_write_works_once_there_is_space(templates, tmp_path, kind):
    if not may_mount():
        pytest.skip("mounts are not permitted here")
    in_new_process("write_on_fuller_and_fuller_disks", templates["COPY_ON_WRITE"], tmp_path, kind)


def write_on_fuller_and_fuller_disks(template: str, disk: str, kind: str) -> None:
    """A disk of its own has more and more space left, from none, until the write fits."""
    own_mounts()
    mount("tmpfs", Path(disk), "tmpfs", 0, "size=8m")
    path, filler, failed, free, done = Path(disk) / "place" / "table", Path(disk) / "filler", 0, 0, False
    while not done:
        assert free < 4 << 20
        shutil.copytree(template, path)
        fill(filler, free)
        done = in_child(lambda: act(LocalStorage(str(path)), kind)) == 0
        filler.unlink()
        assert_whole(path, kind, free, acknowledged=done)
        shutil.rmtree(path.parent)
        failed, free = failed + (not done), int(free * 1.5 + 8192) // 4096 * 4096
    assert failed >= 3


def fill(path: Path, free: int) -> None:
    """Take all of the disk but so much."""
    disk = os.statvfs(path.parent)
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(4096, disk.f_bavail * disk.f_frsize - free))
