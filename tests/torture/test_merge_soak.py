"""Random histories of a file slice, for minutes, against merging by the book; `make torture`."""

from __future__ import annotations

import os
import random
import time

import pytest

from drawstring.merge.merge_plan import DEFAULT_MEMORY_BYTES, build_merge_plan
from drawstring.model.read_task import MergeSpec
from tests.unit.merge.model import by_column, partially_folded, partially_met, without_nulls
from tests.unit.merge.slices import COMMIT_TIME, EVENT_TIME, Slice, instant

pytestmark = pytest.mark.torture

SECONDS = float(os.environ.get("SOAK_SECONDS", "60"))
COLUMNS = ("id", "v", "s", "ts")
MODES = {
    "event time": MergeSpec(EVENT_TIME, ("ts",)),
    "commit time": MergeSpec(COMMIT_TIME, ("ts",)),
    "event time without nulls": MergeSpec(EVENT_TIME, ("ts",), "IGNORE_DEFAULTS"),
    "commit time without nulls": MergeSpec(COMMIT_TIME, ("ts",), "IGNORE_DEFAULTS"),
}


class History:
    """One random history, and what it comes to."""

    def __init__(self, seed: int, merge: MergeSpec, *, partial: bool) -> None:
        self.chance = random.Random(seed)
        self.merge = merge
        self.partial = partial
        self.made = Slice()
        self.keys = [f"key {i}" for i in range(self.chance.choice([3, 20, 150]))]
        self.combined = (
            without_nulls if merge.partial_update_mode else by_column
        )  # whole rows have all columns
        self.base = {key: self.row(key, 0) for key in self.some(0.7)}
        self.logs: dict[str, tuple[str, dict]] = {}

    def write(self) -> History:
        """Write the base file, perhaps, and log after log; some are rolled back."""
        if self.base and self.chance.random() < 0.9:
            self.made.base(list(self.base.values()))
        else:
            self.base = {}
            self.made.next_instant()
        for number in range(1, self.chance.randrange(2, 14)):
            written = self.made.next_instant()
            block, events = self.block(number, written)
            if self.chance.random() < 0.15:
                later = self.made.rollback_block(written, instant(self.made.count))
                self.made.log(block, later, written=written)
                continue
            self.made.log(block, written=written)
            for key, event in events:
                self.logs[key] = self.folded(self.logs.get(key), event)
        return self

    def block(self, number: int, written: str):
        keys = self.some(self.chance.choice([0.1, 0.5, 1.0])) or self.keys[:1]
        if self.chance.random() < 0.25:
            orderings = {key: self.chance.choice([None, 1, 3, 5]) for key in keys}
            events = [(key, ("delete", {"ts": ordering})) for key, ordering in orderings.items()]
            return self.made.delete_block(orderings, written), events
        rows = [self.row(key, number) for key in keys]
        columns = None
        if self.partial and self.chance.random() < 0.7:
            columns = ["id", "ts", *(name for name in ("v", "s") if self.chance.random() < 0.5)]
            rows = [{name: row[name] for name in columns} for row in rows]
        block = self.made.data_block(rows, written, parquet=self.chance.random() < 0.4, columns=columns)
        return block, [(row["id"], ("data", row)) for row in rows]

    def folded(self, old, event):
        return partially_folded(old, event, self.merge.mode, combined=self.combined)

    def expected(self) -> list[tuple]:
        """The rows of the merged slice."""
        found = [
            partially_met(self.base.get(key), self.logs.get(key), self.merge.mode, combined=self.combined)
            for key in self.keys
        ]
        return sorted((tuple(row.get(name) for name in COLUMNS) for row in found if row), key=repr)

    def found(self) -> list[tuple]:
        """The rows that a merge plan has, in a limit of memory that is sometimes tiny."""
        memory = self.chance.choice([DEFAULT_MEMORY_BYTES, 50_000, 8_000])
        facts = {"storage": self.made.storage, "table_schema": self.made.schema, "columns": list(COLUMNS)}
        if not self.made.logs:
            return self.expected()
        plan = build_merge_plan(self.made.task(self.merge), memory_bytes=memory, **facts)
        rows = [tuple(row.values()) for row in plan.winners.to_pylist()]
        base = list(self.base.values())
        rows += [tuple(base[i][name] for name in COLUMNS) for i, gone in enumerate(plan.hidden) if not gone]
        return sorted(rows, key=repr)

    def some(self, share: float) -> list[str]:
        return [key for key in self.keys if self.chance.random() < share]

    def row(self, key: str, number: int) -> dict:
        null = self.chance.random() < 0.3
        return {
            "id": key,
            "v": None if null else number,
            "s": self.chance.choice([None, f"s{number}", "y" * 40]),
            "ts": self.chance.randrange(1, 6),
        }


@pytest.mark.parametrize(
    ("mode", "partial"), [*((mode, False) for mode in MODES), ("event time", True), ("commit time", True)]
)
def test_any_history_merges_as_by_the_book(mode, partial):
    end, seed = time.monotonic() + SECONDS, int(os.environ.get("SOAK_SEED", "0"))
    while time.monotonic() < end:
        seed += 1
        history = History(seed, MODES[mode], partial=partial).write()
        assert history.found() == history.expected(), f"SOAK_SEED={seed - 1}"
