"""Which lock provider the settings of a write ask for."""

from __future__ import annotations

from collections.abc import Mapping

from drawstring.config.option import Option, not_negative, positive, text
from drawstring.errors import InvalidOption
from drawstring.storage import LocalStorage, MemoryStorage, open_storage
from drawstring.storage.base import Storage
from drawstring.write.locks.base import LockProvider
from drawstring.write.locks.file_system import FileSystemLockProvider
from drawstring.write.locks.in_process import InProcessLockProvider
from drawstring.write.locks.storage_based import StorageBasedLockProvider

_PACKAGE = "org.apache.hudi.client.transaction.lock."
FILE_SYSTEM = "FileSystemBasedLockProvider"
IN_PROCESS = "InProcessLockProvider"
STORAGE_BASED = "StorageBasedLockProvider"
SUPPORTED = (FILE_SYSTEM, IN_PROCESS, STORAGE_BASED)

_PROVIDER = Option("hoodie.write.lock.provider", text, "", "Class that locks the table.")
_PATH = Option("hoodie.write.lock.filesystem.path", text, "", "Folder of the lock file.")
_EXPIRE = Option(
    "hoodie.write.lock.filesystem.expire", not_negative, 0, "Minutes until a lock expires; 0 is never."
)
_VALIDITY = Option("hoodie.write.lock.storage.validity.timeout.secs", positive, 300, "Length of a lease.")
_RENEW = Option(
    "hoodie.write.lock.storage.renew.interval.secs",
    positive,
    30,
    "Pause between renewals.",
    aliases=("hoodie.write.lock.storage.heartbeat.poll.secs",),
)


def lock_provider(storage: Storage, settings: Mapping[str, str]) -> LockProvider:
    """Return the provider that `hoodie.write.lock.provider` names: the file-system lock unless it is set.

    Raises `InvalidOption` for any other class (`LOCK_PROVIDER_NOT_SUPPORTED`) and for malformed settings.
    """
    named = _PROVIDER.find(settings).strip()
    simple = named.removeprefix(_PACKAGE) or FILE_SYSTEM
    if simple == FILE_SYSTEM:
        return _file_system(storage, settings)
    if simple == IN_PROCESS:
        return InProcessLockProvider(storage)
    if simple == STORAGE_BASED:
        return _storage_based(storage, settings)
    raise InvalidOption(
        f"The lock provider {named} is not supported: drawstring cannot take that lock, and writers that lock in "
        f"different places do not exclude each other. Use {_PACKAGE}{FILE_SYSTEM} (the default) or "
        f"{_PACKAGE}{STORAGE_BASED}, for every writer of the table. Nothing was written.",
        condition="LOCK_PROVIDER_NOT_SUPPORTED",
        key=_PROVIDER.key,
        value=named,
        supported=[_PACKAGE + name for name in SUPPORTED],
    )


def _file_system(storage: Storage, settings: Mapping[str, str]) -> FileSystemLockProvider:
    path, expire = _PATH.find(settings).strip().rstrip("/"), _EXPIRE.find(settings)
    if not path:
        return FileSystemLockProvider(storage, expire_minutes=expire)
    inside = _below(storage, path)
    if inside is not None:
        return FileSystemLockProvider(storage, directory=inside, expire_minutes=expire)
    return FileSystemLockProvider(_other_place(path), directory="", expire_minutes=expire)


def _below(storage: Storage, path: str) -> str | None:
    """The path relative to the table, when it lies in it."""
    root, place = (_plain(storage.root), _plain(path))
    if place == root:
        return ""
    return place.removeprefix(f"{root}/") if place.startswith(f"{root}/") else None


def _plain(path: str) -> str:
    return LocalStorage(path).local_path("") if path.startswith(("/", "file:")) else path.rstrip("/")


def _other_place(path: str) -> Storage:
    storage = open_storage(path)
    local = isinstance(storage, LocalStorage) and path.startswith(("/", "file:"))
    if not local and not isinstance(storage, MemoryStorage):
        raise InvalidOption(
            f"Option {_PATH.key} is {path}; expected an absolute path or file: URI, where a file can be created only "
            "if it is absent. Nothing was written.",
            condition="LOCK_PATH_NOT_SUPPORTED",
            key=_PATH.key,
            value=path,
        )
    return storage


def _storage_based(storage: Storage, settings: Mapping[str, str]) -> StorageBasedLockProvider:
    validity, renew = _VALIDITY.find(settings), _RENEW.find(settings)
    if validity < 10 * renew:
        raise InvalidOption(
            f"Option {_VALIDITY.key} is {validity}, which is less than ten times {_RENEW.key} ({renew}): a slow "
            "renewal would lose the lease. Raise the first or lower the second.",
            condition="INVALID_LOCK_VALIDITY",
            key=_VALIDITY.key,
            value=validity,
        )
    return StorageBasedLockProvider(storage, validity_seconds=validity, renew_seconds=renew)
