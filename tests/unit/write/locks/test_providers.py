from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import CommitConflict, CorruptTable, InvalidOption, UnsupportedTable
from drawstring.storage import ArrowStorage, LocalStorage, MemoryStorage
from drawstring.write.locks import (
    LOCK,
    FileSystemLockProvider,
    InProcessLockProvider,
    Owner,
    StorageBasedLockProvider,
    lock_provider,
    table_lock,
)
from drawstring.write.locks.storage_based import CLOCK_DRIFT_MS, LOCK_FILE, LockData
from tests.small_writes import new_table, rows_of, write

PACKAGE = "org.apache.hudi.client.transaction.lock."
PROVIDERS = ["FileSystemBasedLockProvider", "InProcessLockProvider", "StorageBasedLockProvider"]


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(str(tmp_path / "table"))


@pytest.fixture(params=PROVIDERS)
def provider(request, storage):
    return lock_provider(storage, {"hoodie.write.lock.provider": PACKAGE + request.param})


def refused(provider, wait_seconds=0.02) -> CommitConflict:
    with pytest.raises(CommitConflict) as caught:
        provider.acquire(wait_seconds=wait_seconds)
    assert caught.value.condition == "LOCK_NOT_ACQUIRED"
    return caught.value


def in_thread(action):
    found = []
    thread = threading.Thread(target=lambda: found.append(action()))
    thread.start()
    thread.join()
    return found[0]


def test_lock_is_held_by_one_at_a_time(provider, storage):
    lease = provider.acquire(wait_seconds=1)
    assert lease.is_held()
    error = in_thread(lambda: refused(provider))
    assert error.fields["path"] == storage.root
    assert error.fields["holder"]
    lease.release()
    assert not lease.is_held()
    second = provider.acquire(wait_seconds=1)
    assert second.token != lease.token
    lease.release()
    assert second.is_held(), "a second release does not free the lock of the next"
    second.release()


def test_same_thread_does_not_get_it_twice(provider):
    with table_lock(None, provider=provider):
        refused(provider)


def test_waiter_gets_it_when_it_is_released(provider):
    lease = provider.acquire(wait_seconds=1)
    threading.Timer(0.1, lease.release).start()
    began = time.monotonic()
    in_thread(lambda: provider.acquire(wait_seconds=5)).release()
    assert time.monotonic() - began < 2


def test_threads_exclude_each_other(provider):
    value = 0

    def count():
        nonlocal value
        for _ in range(10):
            with table_lock(None, provider=provider):
                seen = value
                time.sleep(0.0005)
                value = seen + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value == 40


def test_release_in_spite_of_an_error(provider):
    with pytest.raises(RuntimeError), table_lock(None, provider=provider):
        raise RuntimeError
    provider.acquire(wait_seconds=0.1).release()


def test_in_process_lock_is_one_per_base_path(storage):
    with table_lock(storage, provider=InProcessLockProvider(storage)):
        same = InProcessLockProvider(LocalStorage(f"file://{storage.root}/"))
        assert "of this process" in str(in_thread(lambda: refused(same)))
        InProcessLockProvider(LocalStorage(storage.root + "2")).acquire(wait_seconds=0).release()


def test_in_process_lock_of_a_thread_that_a_fork_left_behind_is_free_in_the_child(storage):
    lease = InProcessLockProvider(storage).acquire(wait_seconds=1)
    pid = os.fork()
    if pid == 0:
        try:
            InProcessLockProvider(storage).acquire(wait_seconds=0.1).release()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    lease.release()


# Storage-based


class Clock:
    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock():
    return Clock()


def storage_based(storage, clock, **kwargs):
    return StorageBasedLockProvider(storage, now_ms=clock, **kwargs)


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        return LocalStorage(str(tmp_path / "table"))
    return MemoryStorage(f"memory://{request.node.name}")


def test_lock_file_is_what_hudi_writes(store, clock):
    lease = storage_based(store, clock).acquire(wait_seconds=0)
    found = json.loads(store.read(".hoodie/.locks/table_lock.json"))
    assert (found["expired"], found["validUntil"], found["owner"]) == (False, clock.ms + 300_000, lease.token)
    lease.release()
    found = json.loads(store.read(LOCK_FILE))
    assert found["expired"] is True
    assert found["owner"] == lease.token


@pytest.mark.parametrize(
    ("content", "free"),
    [
        ({"expired": False, "validUntil": 1_700_000_000_000, "owner": "hudi"}, False),
        ({"expired": False, "validUntil": 1_700_000_000_000 - CLOCK_DRIFT_MS, "owner": "hudi"}, False),
        ({"expired": False, "validUntil": 1_700_000_000_000 - CLOCK_DRIFT_MS - 1, "owner": "hudi"}, True),
        ({"expired": True, "validUntil": 1_800_000_000_000, "owner": "hudi"}, True),
        ({"expired": False, "validUntil": 1_800_000_000_000, "owner": "hudi", "more": 1}, False),
    ],
)
def test_lease_of_hudi_counts_until_it_is_given_back_or_lapsed_for_certain(store, clock, content, free):
    store.create_if_absent(LOCK_FILE, json.dumps(content).encode())
    provider = storage_based(store, clock)
    if free:
        provider.acquire(wait_seconds=0).release()
    else:
        assert refused(provider, 0).fields["holder"] == "the writer hudi"


def test_lease_is_renewed_and_lost_when_it_is_not(store, clock):
    lease = storage_based(store, clock).acquire(wait_seconds=0)
    clock.ms += 200_000
    assert lease.renew()
    clock.ms += 200_000
    assert lease.is_held()
    clock.ms += 99_600
    assert not lease.is_held(), "another clock may be ahead"
    assert json.loads(store.read(LOCK_FILE))["owner"] == lease.token
    clock.ms += 1_000
    other = storage_based(store, clock).acquire(wait_seconds=0)
    assert not lease.is_held()
    assert not lease.renew()
    lease.release()
    assert other.is_held()
    other.release()


def test_lease_is_renewed_in_the_background(storage):
    provider = StorageBasedLockProvider(storage, validity_seconds=3, renew_seconds=0.1)
    lease = provider.acquire(wait_seconds=0)
    refused(provider, 3.8)
    assert lease.is_held()
    lease.release()


def test_lease_of_a_process_that_is_proven_dead_is_free_at_once(store, clock):
    dead = replace(Owner.me(), pid=2**22 + 1)
    data = LockData(False, clock.ms + 10_000_000, "x", dead)
    store.create_if_absent(LOCK_FILE, data.to_bytes())
    storage_based(store, clock).acquire(wait_seconds=0).release()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"expired": 1, "validUntil": 1, "owner": ""}'])
def test_lock_file_that_is_none_is_reported_not_overwritten(store, clock, content):
    store.create_if_absent(LOCK_FILE, content)
    with pytest.raises(CorruptTable) as caught:
        storage_based(store, clock).acquire(wait_seconds=0)
    assert caught.value.condition == "LOCK_FILE_INVALID"
    assert store.read(LOCK_FILE) == content


def test_stopped_holder_finds_its_lease_lost(storage):
    """SIGSTOP past the lease: another writer takes it, and the first one, going on, knows."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        lease = StorageBasedLockProvider(storage, validity_seconds=1, renew_seconds=0.05).acquire(
            wait_seconds=1
        )
        held = lease.is_held()
        os.kill(os.getpid(), signal.SIGSTOP)
        held_after = lease.is_held()
        lease.release()
        os.write(writes, f"{held} {held_after}".encode())
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    other = StorageBasedLockProvider(storage).acquire(wait_seconds=5)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    assert os.read(reads, 100) == b"True False"
    assert other.is_held()
    other.release()


# Settings


def test_file_system_lock_is_the_default(storage):
    assert lock_provider(storage, {}) == FileSystemLockProvider(storage)
    assert lock_provider(storage, {"hoodie.write.lock.provider": ""}).path == LOCK


@pytest.mark.parametrize(
    "name",
    [
        PACKAGE + "ZookeeperBasedLockProvider",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "com.example.FileSystemBasedLockProvider",
        PACKAGE + "NoopLockProvider",
    ],
)
def test_other_providers_are_refused_by_name_with_what_to_use(storage, name):
    with pytest.raises(InvalidOption, match=f"{name}.*{PACKAGE}FileSystemBasedLockProvider") as caught:
        lock_provider(storage, {"hoodie.write.lock.provider": name})
    assert caught.value.condition == "LOCK_PROVIDER_NOT_SUPPORTED"
    assert caught.value.fields["value"] == name


def test_lock_file_lies_where_hudi_would_put_it(tmp_path, storage):
    key = "hoodie.write.lock.filesystem.path"
    assert lock_provider(storage, {key: f"{storage.root}/.hoodie/.aux/"}).path == ".hoodie/.aux/lock"
    assert lock_provider(storage, {key: f"file://{storage.root}"}).path == "lock"
    outside = lock_provider(
        storage, {key: str(tmp_path / "locks"), "hoodie.write.lock.filesystem.expire": "5"}
    )
    assert outside.expire_minutes == 5
    with table_lock(storage, provider=outside):
        assert (tmp_path / "locks" / "lock").exists()
        refused(lock_provider(storage, {key: f"file:{tmp_path}/locks"}))
    for path in ("s3://bucket/locks", "relative/locks"):
        with pytest.raises(InvalidOption, match=path) as caught:
            lock_provider(storage, {key: path})
        assert caught.value.condition == "LOCK_PATH_NOT_SUPPORTED"


CALLS = {
    "rollback": lambda table, options: table.rollback(options=options),
    "rebuild_metadata": lambda table, options: table.rebuild_metadata(options),
    "drop_metadata": lambda table, options: table.drop_metadata(options=options),
    "create_table": lambda table, options: drawstring.create_table(
        f"{table.path}2", table.schema, options=options | {"hoodie.table.name": "t"}
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_takes_the_lock_that_its_options_name(tmp_path, call):
    schema = pa.schema([("id", pa.int64())])
    table = drawstring.create_table(tmp_path / "t", schema, options={"hoodie.table.name": "t"})
    options = {
        "hoodie.write.lock.filesystem.path": str(tmp_path / "locks"),
        "hoodie.write.lock.wait_time_ms": "20",
    }
    with table_lock(LocalStorage(str(tmp_path / "locks")), provider=lock_provider(table.storage, options)):
        with pytest.raises(CommitConflict, match="locked") as caught:
            CALLS[call](table, options)
        assert caught.value.condition == "LOCK_NOT_ACQUIRED"
    CALLS[call](table, options)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.write.lock.filesystem.expire", "-1"),
        ("hoodie.write.lock.filesystem.expire", "soon"),
    ],
)
def test_malformed_settings_are_errors(storage, key, value):
    with pytest.raises(InvalidOption, match=key):
        lock_provider(storage, {key: value})


def test_storage_lock_settings(storage):
    prefix = "hoodie.write.lock.storage."
    named = {"hoodie.write.lock.provider": PACKAGE + "StorageBasedLockProvider"}
    found = lock_provider(
        storage, {**named, f"{prefix}validity.timeout.secs": "20", f"{prefix}renew.interval.secs": "2"}
    )
    assert (found.validity_seconds, found.renew_seconds) == (20, 2)
    old = lock_provider(storage, {**named, f"{prefix}heartbeat.poll.secs": "7"})
    assert (old.validity_seconds, old.renew_seconds) == (300, 7)
    with pytest.raises(InvalidOption, match="ten times"):
        lock_provider(storage, {**named, f"{prefix}validity.timeout.secs": "20"})


@pytest.mark.parametrize("name", ["FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_stores_without_conditional_put_are_refused(name):
    storage = ArrowStorage("s3://bucket/table")
    with pytest.raises(UnsupportedTable, match="s3://bucket/table"):
        lock_provider(storage, {"hoodie.write.lock.provider": PACKAGE + name}).acquire(wait_seconds=0)


@pytest.mark.parametrize("kind", PROVIDERS)
def test_an_overwrite_which_takes_the_lock_away_with_the_old_table_says_nothing_of_its_loss(
    kind, tmp_path, caplog
):
    storage = new_table(tmp_path / "t", [("1", "oslo", 1, "a")])
    settings = {"hoodie.write.lock.provider": PACKAGE + kind}
    write(storage, [("2", "rome", 1, "b")], mode="overwrite", options=settings)
    assert rows_of(tmp_path / "t") == [("2", "rome", 1, "b")]
    assert "lost" not in caplog.text
    lock_provider(storage, settings).acquire(wait_seconds=1).release()
    assert "lost" not in caplog.text


@pytest.mark.parametrize("kind", ["FileSystemBasedLockProvider", "StorageBasedLockProvider"])
def test_a_lock_that_is_lost_unexpectedly_is_told(kind, storage, caplog):
    lease = lock_provider(storage, {"hoodie.write.lock.provider": PACKAGE + kind}).acquire(wait_seconds=1)
    storage.delete(LOCK if kind.startswith("File") else LOCK_FILE)
    lease.release()
    assert "lost" in caplog.text
