from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from drawstring.errors import CommitConflict
from drawstring.storage import LocalStorage, MemoryStorage
from drawstring.write.locks import LOCK, FileSystemLockProvider, Owner, table_lock
from drawstring.write.locks import owner as owner_module

HUDI_LOCK = json.dumps(
    {"lockCreateTime": "2026-01-02 03:04:05.678", "lockThreadName": "main", "lockStacksInfo": []}
)


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path / "table"))


def child(action) -> int:
    """Run an action in a forked process; returns its id."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return pid


def hold_in_a_child(storage) -> int:
    """A process that holds the lock until it is killed."""

    def action():
        FileSystemLockProvider(storage).acquire(wait_seconds=5)
        time.sleep(60)

    pid = child(action)
    wait_until(lambda: storage.exists(LOCK))
    return pid


def wait_until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def can_be_had(storage, **kwargs) -> bool:
    try:
        FileSystemLockProvider(storage, **kwargs).acquire(wait_seconds=0.05).release()
    except CommitConflict:
        return False
    return True


def test_lock_of_a_killed_process_is_taken_over(storage):
    pid = hold_in_a_child(storage)
    assert not can_be_had(storage)
    kill(pid)
    assert can_be_had(storage)
    assert not storage.exists(LOCK)


def test_dead_process_that_nobody_has_reaped_does_not_hold_its_lock(storage):
    pid = hold_in_a_child(storage)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert can_be_had(storage)
    os.waitpid(pid, 0)


def test_process_whose_first_thread_ended_while_another_runs_is_alive(storage, tmp_path):
    # Such a process shows as a zombie in /proc/<pid>/stat.
    script = (
        "import ctypes, threading, time, sys\n"
        "from drawstring.storage import LocalStorage\n"
        "from drawstring.write.locks import FileSystemLockProvider\n"
        "FileSystemLockProvider(LocalStorage(sys.argv[1])).acquire(wait_seconds=5)\n"
        "threading.Thread(target=time.sleep, args=(30,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    pid = os.spawnv(
        os.P_NOWAIT, os.sys.executable, [os.sys.executable, "-c", script, str(tmp_path / "table")]
    )
    try:
        wait_until(lambda: storage.exists(LOCK))
        wait_until(lambda: owner_module._stat(pid)[0] == "Z")
        assert not can_be_had(storage)
    finally:
        kill(pid)
    assert can_be_had(storage)


def test_lock_of_a_stopped_process_is_not_stolen(storage):
    pid = hold_in_a_child(storage)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert not can_be_had(storage)
        os.utime(storage.local_path(LOCK), (1, 1))
        assert not can_be_had(storage, expire_minutes=1), "its owner is seen to be alive"
    finally:
        os.kill(pid, signal.SIGCONT)
        kill(pid)


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"[1]", b'{"host": 1}', HUDI_LOCK.encode()])
def test_foreign_lock_stands_until_its_set_expiry(storage, content):
    storage.create_if_absent(LOCK, content)
    os.utime(storage.local_path(LOCK), (1, 1))
    assert not can_be_had(storage)
    assert not can_be_had(storage, expire_minutes=0)
    assert storage.read(LOCK) == content
    os.utime(storage.local_path(LOCK))
    assert not can_be_had(storage, expire_minutes=1)
    os.utime(storage.local_path(LOCK), (time.time() - 61,) * 2)
    assert can_be_had(storage, expire_minutes=1)


def test_refusal_names_holder_and_what_to_do(storage):
    storage.create_if_absent(LOCK, HUDI_LOCK.encode())
    with pytest.raises(
        CommitConflict, match=r"Apache Hudi \(thread main, since 2026.*delete the lock file"
    ) as caught:
        FileSystemLockProvider(storage).acquire(wait_seconds=0.01)
    assert caught.value.condition == "LOCK_NOT_ACQUIRED"
    assert caught.value.fields["lock"] == LOCK
    storage.write(LOCK, replace(Owner.me(), pid=1, started=owner_module._stat(1)[1]).to_bytes())
    with pytest.raises(CommitConflict, match="process 1 on") as caught:
        FileSystemLockProvider(storage).acquire(wait_seconds=0.01)
    assert "delete" not in str(caught.value)


def test_owner_never_releases_the_lock_of_another(storage):
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)
    storage.write(LOCK, b"somebody else's")
    assert not lease.is_held()
    lease.release()
    assert storage.read(LOCK) == b"somebody else's"


def test_lease_ends_when_apache_hudi_deletes_or_truncates_the_lock(storage):
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)
    assert lease.is_held()
    with open(storage.local_path(LOCK), "wb"):
        assert not lease.is_held()
    storage.delete(LOCK)
    assert not lease.is_held()
    lease.release()


def test_forked_child_neither_holds_nor_releases_the_lock_of_its_parent(storage):
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)

    def action():
        assert not lease.is_held()
        lease.release()

    assert os.waitpid(child(action), 0)[1] == 0
    assert lease.is_held()
    lease.release()


def test_lock_that_this_process_left_behind_is_taken_over(storage):
    # An interrupt right after the file was made, or a release that failed.
    storage.create_if_absent(LOCK, Owner.me().to_bytes())
    assert can_be_had(storage)
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)
    assert not can_be_had(storage)
    lease.release()


def test_failed_release_does_not_wedge(storage, monkeypatch):
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail)
        with pytest.raises(OSError, match="No space"):
            lease.release()
    assert can_be_had(storage)


def fail(*_args, **_kwargs):
    raise OSError(28, "No space left on device")


def test_interrupted_acquire_leaves_no_lock(storage, monkeypatch):
    def interrupted(self, path, expected, content):
        done = LocalStorage.replace_if(storage, path, expected, content)
        if content is not None:
            raise KeyboardInterrupt
        return done

    class Interrupted(LocalStorage):
        replace_if = interrupted

    with pytest.raises(KeyboardInterrupt):
        FileSystemLockProvider(Interrupted(storage.root)).acquire(wait_seconds=1)
    assert not storage.exists(LOCK)


def test_locking_syncs_nothing_and_leaves_nothing(storage, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail)
    with table_lock(storage) as lease:
        assert lease.is_held()
    with table_lock(storage):
        assert [e.name for e in storage.list(".hoodie")] == ["lock"]
    assert list(storage.list(".hoodie")) == []


def test_lock_is_had_where_files_without_name_do_not_exist(storage, monkeypatch):
    monkeypatch.delattr(os, "O_TMPFILE")
    with table_lock(storage):
        assert not can_be_had(storage)
        assert [e.name for e in storage.list(".hoodie")] == ["lock"]


_STEPS = ("open", "link", "unlink", "replace", "write", "close", "makedirs")


def die_at(step: int, *, after: bool) -> None:
    """End this process at the n-th change of the file system that Python makes from now on."""
    import builtins

    count = 0

    def counted(function):
        def call(*args, **kwargs):
            nonlocal count
            count += 1
            mine = count == step
            if mine and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return function(*args, **kwargs)
            finally:
                if mine:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call

    for name in _STEPS:
        setattr(os, name, counted(getattr(os, name)))
    builtins.open = counted(builtins.open)


@pytest.mark.parametrize("after", [False, True])
def test_breaker_of_a_dead_lock_killed_at_any_step_is_not_in_the_way_of_the_next(storage, after):
    gone = child(lambda: None)
    os.waitpid(gone, 0)
    killed = 0
    for step in range(1, 40):
        storage.delete(LOCK)
        dead = replace(Owner.me(), pid=gone)
        storage.create_if_absent(LOCK, dead.to_bytes())

        def action(step=step):
            die_at(step, after=after)
            with table_lock(storage, wait_seconds=1):
                pass

        _, status = os.waitpid(child(action), 0)
        killed += os.WIFSIGNALED(status)
        with table_lock(storage, wait_seconds=2):
            pass
        if not status:
            break
    assert killed >= 10
    assert {e.name for e in storage.list(".hoodie")} <= {".lock.swap", ".lock.waiting"}


def count_up(storage, times: int, *, provider=None) -> None:
    """Read, then write a number, under the lock: updates are lost where two are in."""
    path = storage.local_path("counter")
    for _ in range(times):
        with table_lock(storage, wait_seconds=60, provider=provider):
            with open(path, encoding="utf-8") as file:
                value = int(file.read() or 0)
            time.sleep(0.0005)
            with open(path, "w", encoding="utf-8") as file:
                file.write(str(value + 1))


def counter(storage) -> int:
    return int(storage.read("counter"))


def test_sixteen_processes_exclude_each_other_and_all_come_through(storage):
    storage.write("counter", b"0")
    children = [child(lambda: count_up(storage, 12)) for _ in range(16)]
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 16
    assert counter(storage) == 16 * 12


def test_processes_that_break_one_dead_lock_together_exclude_each_other(storage):
    storage.write("counter", b"0")
    gone = child(lambda: None)
    os.waitpid(gone, 0)
    for _ in range(10):
        storage.create_if_absent(LOCK, replace(Owner.me(), pid=gone).to_bytes())
        children = [child(lambda: count_up(storage, 1)) for _ in range(8)]
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
    assert counter(storage) == 80


def test_threads_exclude_each_other(storage):
    storage.write("counter", b"0")
    threads = [threading.Thread(target=count_up, args=(storage, 15)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter(storage) == 120


def test_process_that_locks_again_and_again_does_not_keep_another_out(storage):
    stop = time.monotonic() + 3

    def greedy():
        while time.monotonic() < stop:
            with table_lock(storage):
                time.sleep(0.01)

    pid = child(greedy)
    turns = 0
    while time.monotonic() < stop - 0.5:
        with table_lock(storage):
            turns += 1
            time.sleep(0.01)
    os.waitpid(pid, 0)
    assert turns >= 5


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_random_kills_of_holders_and_waiters_never_wedge(storage, seconds):
    storage.write("counter", b"0")
    pids = [child(lambda: count_up(storage, 10_000)) for _ in range(6)]
    for pid in pids:
        time.sleep(seconds)
        kill(pid)
    with table_lock(storage, wait_seconds=5):
        pass


def test_lock_in_memory_excludes_too():
    storage = MemoryStorage("memory://locked")
    with table_lock(storage):
        assert not can_be_had(storage)
    assert can_be_had(storage)


def test_held_lock_with_an_expiry_is_renewed(storage, monkeypatch):
    lease = FileSystemLockProvider(storage, expire_minutes=1).acquire(wait_seconds=1)
    os.utime(storage.local_path(LOCK), (1, 1))
    assert lease._renew()
    assert time.time() - os.stat(storage.local_path(LOCK)).st_mtime < 5
    storage.write(LOCK, b"other")
    os.utime(storage.local_path(LOCK), (1, 1))
    assert not lease._renew()
    assert os.stat(storage.local_path(LOCK)).st_mtime == 1
    lease.release()
