"""Merge plans kept on local disk, for all workers of one executor.

A plan depends on nothing but the files of its slice, which never change, and on how they are merged. The name is a
digest of both; what a plan holds beyond the columns asked for does no harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

MAX_BYTES = 2 << 30


@dataclass(frozen=True)
class KeptPlan:
    """A merge plan: how many rows the base file has, a bit for each that tells if it is hidden, and rows to append."""

    base_rows: int
    hidden_bits: bytes
    winners: pa.Table

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows to append, with these columns."""
        yield from self.winners.select(list(columns)).to_batches()


class PlanCache:
    """The plans in one folder; the ones used longest ago make room for new ones."""

    def __init__(self, folder: str, *, max_bytes: int = MAX_BYTES) -> None:
        self._folder = Path(folder)
        self._max_bytes = max_bytes

    def find_or_make(self, key: str, columns: Sequence[str], make: Callable[[], KeptPlan]) -> KeptPlan:
        """The plan under `key` if it has the columns, else a new one, which is kept."""
        found = self._find(key)
        if found is not None and set(columns) <= set(found.winners.column_names):
            return found
        made = make()
        # A full disk costs time at the next read, nothing else.
        with contextlib.suppress(OSError):
            self._keep(key, made)
        return made

    def _find(self, key: str) -> KeptPlan | None:
        path = self._folder / key
        try:
            with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as plan:
                facts = plan.schema.metadata
                rows, bits = int(facts[b"base_rows"]), facts[b"hidden"]
                table = plan.read_all().replace_schema_metadata(None)
            os.utime(path)
        except (OSError, pa.ArrowInvalid, KeyError, ValueError):
            return None
        return KeptPlan(rows, bits, table)

    def _keep(self, key: str, plan: KeptPlan) -> None:
        self._make_room()
        staged = self._folder / f"{key}.{os.getpid()}"
        facts = {b"base_rows": str(plan.base_rows).encode(), b"hidden": plan.hidden_bits}
        table = plan.winners.replace_schema_metadata(facts)
        with pa.OSFile(str(staged), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        os.replace(staged, self._folder / key)

    def _make_room(self) -> None:
        entries = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                entries.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._max_bytes:
                return
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


def plan_key(request: dict[str, Any]) -> str:
    """Name the plan of a request's slice."""
    what = json.dumps([request["root"], request["context"], request["task"]], sort_keys=True)
    return hashlib.sha256(what.encode()).hexdigest()
