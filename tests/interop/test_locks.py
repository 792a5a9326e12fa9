"""drawstring and Apache Hudi take the same locks, and keep each other out."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from drawstring.errors import CommitConflict
from drawstring.storage import LocalStorage
from drawstring.write.locks import (
    LOCK,
    FileSystemLockProvider,
    StorageBasedLockProvider,
    lock_provider,
    table_lock,
)
from drawstring.write.locks.storage_based import LOCK_FILE
from tests.interop.hudi_jvm import hudi_jvm

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def jvm():
    with hudi_jvm() as found:
        yield found


@pytest.fixture
def storage(tmp_path):
    (tmp_path / ".hoodie").mkdir()
    return LocalStorage(str(tmp_path))


class HudiLock:
    """Hudi's FileSystemBasedLockProvider."""

    def __init__(self, jvm, storage, **settings):
        properties = jvm.java.util.Properties()
        properties.setProperty("hoodie.base.path", storage.root)
        properties.setProperty("hoodie.write.lock.filesystem.expire", str(settings.pop("expire", 0)))
        if "path" in settings:
            properties.setProperty("hoodie.write.lock.filesystem.path", settings["path"])
        conf = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(
            jvm.org.apache.hadoop.conf.Configuration()
        )
        lock = jvm.org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider
        self._lock = lock(jvm.org.apache.hudi.common.config.LockConfiguration(properties), conf)
        self._second = jvm.java.util.concurrent.TimeUnit.SECONDS

    def take(self) -> bool:
        return self._lock.tryLock(1, self._second)

    def release(self) -> None:
        self._lock.unlock()

    def close(self) -> None:
        self._lock.close()


def can_be_had(provider) -> bool:
    try:
        provider.acquire(wait_seconds=0.05).release()
    except CommitConflict:
        return False
    return True


def test_hudi_does_not_get_a_lock_that_drawstring_holds(jvm, storage):
    hudi = HudiLock(jvm, storage)
    with table_lock(storage) as lease:
        assert not hudi.take()
        assert lease.is_held()
    assert hudi.take()
    hudi.release()


def test_drawstring_does_not_get_a_lock_that_hudi_holds(jvm, storage):
    hudi = HudiLock(jvm, storage)
    assert hudi.take()
    with pytest.raises(CommitConflict) as caught:
        FileSystemLockProvider(storage).acquire(wait_seconds=0.1)
    assert caught.value.condition == "LOCK_NOT_ACQUIRED"
    hudi.release()
    assert can_be_had(FileSystemLockProvider(storage))


def test_both_find_the_lock_in_a_folder_of_its_own(jvm, storage, tmp_path):
    path = str(tmp_path / "locks")
    hudi = HudiLock(jvm, storage, path=path)
    ours = lock_provider(storage, {"hoodie.write.lock.filesystem.path": path})
    assert hudi.take()
    assert not can_be_had(ours)
    hudi.release()
    lease = ours.acquire(wait_seconds=1)
    assert not hudi.take()
    lease.release()


def test_both_take_expiry_to_mean_the_same(jvm, storage):
    assert HudiLock(jvm, storage).take()
    assert not can_be_had(FileSystemLockProvider(storage, expire_minutes=1))
    os.utime(storage.local_path(LOCK), (time.time() - 61,) * 2)
    assert not can_be_had(FileSystemLockProvider(storage, expire_minutes=0))
    assert can_be_had(FileSystemLockProvider(storage, expire_minutes=1))
    # What Hudi does to a lock that drawstring holds and does not renew: the owner check tells.
    lease = FileSystemLockProvider(storage).acquire(wait_seconds=1)
    os.utime(storage.local_path(LOCK), (time.time() - 61,) * 2)
    hudi = HudiLock(jvm, storage, expire=1)
    assert hudi.take()
    assert not lease.is_held()
    lease.release()
    assert storage.exists(LOCK), "the lock is Hudi's now"
    hudi.release()


def test_lock_that_hudi_deletes_on_closing_is_noticed(jvm, storage):
    hudi = HudiLock(jvm, storage)
    with table_lock(storage) as lease:
        hudi.close()
        assert not lease.is_held()


def test_turns_of_both_never_overlap_unnoticed(jvm, storage):
    """Hudi looks, then creates: on a local disk it may write over a lock of ours, and we must find out."""
    hudi, stop, inside, seen, lost = HudiLock(jvm, storage), threading.Event(), [], [], []

    def turn(name):
        inside.append(name)
        time.sleep(0.002)
        seen.append(tuple(inside))
        inside.remove(name)

    def ours():
        while not stop.is_set():
            with table_lock(storage, wait_seconds=20) as lease:
                turn("drawstring")
                if len(seen[-1]) > 1 or "hudi" in inside:
                    lost.append(lease.is_held())
            time.sleep(0.003)

    thread = threading.Thread(target=ours)
    thread.start()
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        if hudi.take():
            turn("hudi")
            hudi.release()
    stop.set()
    thread.join()
    counts = {name: seen.count((name,)) for name in ("drawstring", "hudi")}
    assert min(counts.values()) > 5, counts
    overlapping = [found for found in seen if len(found) > 1]
    assert len(overlapping) <= 2, (overlapping, counts)
    assert not any(lost), (overlapping, lost)


def test_hudi_reads_the_lease_of_a_storage_based_lock(jvm, storage):
    lease = StorageBasedLockProvider(storage).acquire(wait_seconds=1)
    read = jvm.org.apache.hudi.client.transaction.lock.models.StorageLockFile.createFromStream

    def found():
        return read(jvm.java.io.ByteArrayInputStream(storage.read(LOCK_FILE)), "v1")

    assert (found().getOwner(), found().isExpired()) == (lease.token, False)
    assert 250_000 < found().getValidUntilMs() - time.time() * 1000 <= 300_000
    lease.release()
    assert found().isExpired()


def test_lease_that_hudi_wrote_is_understood(jvm, storage):
    models = jvm.org.apache.hudi.client.transaction.lock.models
    until = int(time.time() * 1000) + 60_000
    content = bytes(models.StorageLockFile.toByteArray(models.StorageLockData(False, until, "hudi")))
    assert json.loads(content) == {"expired": False, "validUntil": until, "owner": "hudi"}
    storage.create_if_absent(LOCK_FILE, content)
    assert not can_be_had(StorageBasedLockProvider(storage))
    storage.write(
        LOCK_FILE, bytes(models.StorageLockFile.toByteArray(models.StorageLockData(True, until, "hudi")))
    )
    assert can_be_had(StorageBasedLockProvider(storage))
