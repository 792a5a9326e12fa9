"""Small tables that are written without Spark, a model of what they must hold, and storage that fails when told to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import hudi
import pyarrow as pa

import drawstring
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.storage import LocalStorage
from drawstring.write.in_process import ArrowRows
from drawstring.write.pipeline import CommitResult, write_rows

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
Rows = Iterable[tuple[str, str, int, str]]
Model = dict[str, tuple[str, int, str]]
"""Record key to city, ts and v."""


def arrow(rows: Rows) -> pa.Table:
    """Rows of (id, city, ts, v) as Arrow."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def new_table(path: object, rows: Rows = (), *, options: Mapping[str, Any] | None = None) -> LocalStorage:
    """Make a table, with a first commit when there are rows."""
    drawstring.create_table(str(path), SCHEMA, options={**OPTIONS, **(options or {})})
    if found := list(rows):
        drawstring.open_table(str(path)).write(arrow(found))
    return LocalStorage(str(path))


def write(
    storage: LocalStorage,
    rows: Rows,
    operation: str = "upsert",
    *,
    mode: str = "append",
    options: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Write rows through a given storage, as `Table.write` does."""
    named = {**OPTIONS, **(options or {}), OPERATION.key: operation}
    return write_rows(ArrowRows(arrow(rows)), storage, mode=mode, options=WriteOptions.of(named))


def rows_of(path: object) -> list[tuple[str, str, int, str]]:
    """What drawstring reads, sorted: a key that is there twice shows twice."""
    found = drawstring.open_table(str(path)).snapshot().scan().to_arrow().select(SCHEMA.names)
    return sorted(tuple(row.values()) for row in found.to_pylist())


def rows_of_hudi_rs(path: object) -> list[tuple[str, str, int, str]]:
    """What hudi-rs reads, sorted."""
    batches = hudi.HudiTableBuilder.from_base_uri(str(path)).build().read()
    found = pa.Table.from_batches(batches).select(SCHEMA.names) if batches else arrow([])
    return sorted(tuple(row.values()) for row in found.to_pylist())


def files_of(path: object) -> set[str]:
    """Every file below a table, hidden ones too."""
    found = LocalStorage(str(path)).list(recursive=True)
    return {entry.path for entry in found if not entry.is_directory}


def leftovers(path: object) -> set[str]:
    """Files that a finished or repaired write must not leave behind."""
    return {
        name
        for name in files_of(path)
        if any(part in name for part in (".temp/", ".heartbeat/", ".tmp", ".lock.waiting"))
        or name == ".hoodie/lock"
    }


class HookedStorage(LocalStorage):
    """Calls `before(number, operation, path)` and `after(...)` around each operation that changes something.

    Derive a class for each use (`hooked`): states of a table are kept by the type of their storage.
    """

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.count = 0
        self.with_siblings = False
        self.before: Callable[[int, str, str], None] = lambda number, operation, path: None
        self.after: Callable[[int, str, str], None] = lambda number, operation, path: None

    def _changed(self, operation: str, path: str, act: Callable[[], Any]) -> Any:
        self.count += 1
        number = self.count
        self.before(number, operation, path)
        found = act()
        self.after(number, operation, path)
        return found

    def create_if_absent(self, path: str, content: bytes, *, durable: bool = True) -> bool:
        act = super().create_if_absent
        return bool(self._changed("create", path, lambda: act(path, content, durable=durable)))

    def rename(self, source: str, target: str) -> None:
        act = super().rename
        self._changed("rename", target, lambda: act(source, target))

    def replace_if(
        self, path: str, expected: bytes | None, content: bytes | None, *, durable: bool = False
    ) -> bool:
        act = super().replace_if
        return bool(self._changed("replace_if", path, lambda: act(path, expected, content, durable=durable)))

    def write(self, path: str, content: bytes, *, durable: bool = True) -> None:
        act = super().write
        self._changed("write", path, lambda: act(path, content, durable=durable))

    def open_output(self, path: str) -> Any:
        act = super().open_output
        return self._changed("open_output", path, lambda: act(path))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        act = super().delete
        self._changed("delete", path, lambda: act(path, recursive=recursive))

    def make_directory(self, path: str) -> None:
        act = super().make_directory
        self._changed("make_directory", path, lambda: act(path))

    def sync_directories(self, paths: Iterable[str]) -> None:
        act, wanted = super().sync_directories, list(paths)
        self._changed("sync", ",".join(sorted(wanted)), lambda: act(wanted))

    def sibling(self, name: str) -> LocalStorage:
        """Where asked for, operations on the other directory count like those on this one."""
        if not self.with_siblings:
            return super().sibling(name)
        other = type(self)(super().sibling(name).root)
        other._changed = self._changed  # type: ignore[method-assign]
        return other

    def exchange(self, other: LocalStorage) -> None:
        act = super().exchange
        self._changed("exchange", "", lambda: act(other))

    def sync_parent(self) -> None:
        self._changed("sync_parent", "", super().sync_parent)


def hooked(root: str) -> HookedStorage:
    """A storage of a type of its own."""
    return type("Hooked", (HookedStorage,), {})(root)


def in_child(act: Callable[[], None]) -> int:
    """Run something in a forked process and return its exit code, negative for a signal; 99 is an error."""
    child = os.fork()
    if child == 0:
        code = 99
        with suppress(BaseException):
            act()
            code = 0
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
