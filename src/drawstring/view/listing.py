"""Which partitions a table has, and which files they hold, found by listing storage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from drawstring.config.table_config import TableConfig
from drawstring.storage.base import FileInfo, Storage
from drawstring.storage.local import LocalStorage

METAFILE = ".hoodie_partition_metadata"
_METAFILES = frozenset({METAFILE, f"{METAFILE}.parquet", f"{METAFILE}.orc"})
_THREADS = 16


class FileListing(Protocol):
    """Where a view learns of files: storage itself, or the metadata table.

    Listings name every file found, committed or not; deciding what is visible is the view's work.
    """

    def partitions(self) -> Sequence[str]:
        """All partition paths; `[""]` for an unpartitioned table that has files."""
        ...

    def files(self, partition: str) -> Sequence[tuple[str, int]]:
        """Name and size of each file of a partition; empty when there is no such partition."""
        ...


class StorageListing:
    """A listing by walking the directories; what was listed is kept, so it is one consistent answer."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        self._storage = storage
        self._config = config
        self._files: dict[str, list[tuple[str, int]]] = {}
        self._partitions: list[str] | None = None

    def partitions(self) -> Sequence[str]:
        """All directories that hold a partition metafile."""
        if self._partitions is None:
            self._partitions = self._walk() if self._config.partition_fields else self._only_root()
        return self._partitions

    def files(self, partition: str) -> Sequence[tuple[str, int]]:
        """Name and size of each file of a partition."""
        if partition not in self._files:
            entries = self._entries(partition)
            self._files[partition] = [(entry.name, entry.size) for entry in entries if not entry.is_directory]
        return self._files[partition]

    def _only_root(self) -> list[str]:
        return [""] if self._note("", self._entries("")) else []

    def _walk(self) -> list[str]:
        found, level = [], [""]
        with ThreadPoolExecutor(_THREADS) as pool:
            run = map if isinstance(self._storage, LocalStorage) else pool.map
            while level:
                deeper: list[str] = []
                for directory, entries in zip(level, run(self._entries, level), strict=True):
                    if self._note(directory, entries):
                        found.append(directory)
                    deeper += [e.path for e in entries if e.is_directory and e.path != ".hoodie"]
                level = deeper
        return sorted(found)

    def _note(self, directory: str, entries: Iterable[FileInfo]) -> bool:
        files = [(entry.name, entry.size) for entry in entries if not entry.is_directory]
        if not any(name in _METAFILES for name, _ in files):
            return False
        self._files[directory] = files
        return True

    def _entries(self, directory: str) -> list[FileInfo]:
        try:
            return list(self._storage.list(directory))
        except FileNotFoundError:
            return []
