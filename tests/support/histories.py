"""Seeded random histories of one table, and a model of what it must hold."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

SCHEMA = "id string, p string, ts bigint, n int, v string"
COLUMNS = ["id", "p", "ts", "n", "v"]
PARTITIONS = ["a", "b", "c"]
KEYS = 24
Row = tuple[str, str, int, int, str]


@dataclass(frozen=True)
class Shape:
    """A kind of table: its type, whether it has partitions, and the index that its writers use."""

    table_type: str
    partitioned: bool
    index: str

    @property
    def name(self) -> str:
        return f"{self.table_type[:1]}-{'partitioned' if self.partitioned else 'flat'}-{self.index.lower()}"

    def options(self, engine: str, operation: str) -> dict[str, str]:
        """The options of a write by one of the engines."""
        options = {
            "hoodie.table.name": "alternating",
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.operation": operation,
            "hoodie.index.type": self.index,
            "hoodie.bucket.index.num.buckets": "2",
            "hoodie.clean.commits.retained": "4",
            "hoodie.keep.min.commits": "6",
            "hoodie.keep.max.commits": "7",
        }
        if self.partitioned:
            options["hoodie.datasource.write.partitionpath.field"] = "p"
        else:
            generator = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
            options["hoodie.datasource.write.keygenerator.class"] = generator
        if engine == "hudi" and self.index == "RECORD_INDEX":
            options["hoodie.metadata.global.record.level.index.enable"] = "true"
            options["hoodie.metadata.record.index.enable"] = "true"
        return options


@dataclass
class Step:
    """One commit: who writes, what, which services go along, and which of drawstring's runs after it by itself."""

    engine: str
    operation: str
    rows: list[Row] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    service: str = ""


class History:
    """A seeded random history: the next step, and the rows after it."""

    def __init__(self, shape: Shape, seed: int, engines: tuple[str, ...] = ("hudi", "drawstring")) -> None:
        self.shape, self._random, self._engines = shape, random.Random(f"{shape.name} {seed}"), engines
        self.rows: dict[str, Row] = {}
        self.number = self._inserted = 0

    def next(self) -> Step:
        """Choose a step, and let the model take it."""
        self.number += 1
        engine = self._random.choice(self._engines)
        if self.number == 1:
            # Hudi makes the record index; drawstring keeps it.
            first = self._engines[0] if self.shape.index == "RECORD_INDEX" else engine
            return self._take(Step(first, "upsert", self._new(KEYS // 2)))
        step = Step(engine, self._random.choice(self._operations(engine)))
        step.rows = self._rows_for(step.operation)
        if step.operation == "delete_partition":
            step.options["hoodie.datasource.write.partitions.to.delete"] = self._random.choice(PARTITIONS)
        step.options |= self._services(engine)
        step.service = self._random.choice(["", "", "", "", "compact", "clean"])
        return self._take(step)

    def _operations(self, engine: str) -> list[str]:
        found = ["upsert"] * 4 + ["insert", "delete", "delete", "insert_overwrite", "insert_overwrite_table"]
        if self.shape.index != "BUCKET" or engine == "drawstring":
            found.append("bulk_insert")
        return [*found, "delete_partition"] if self.shape.partitioned else found

    def _services(self, engine: str) -> dict[str, str]:
        chosen = self._random.choice(["nothing", "nothing", "compaction", "clustering"])
        if chosen == "compaction" and self.shape.table_type == "MERGE_ON_READ":
            return {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
        if chosen == "clustering" and engine == "hudi" and self.shape.index != "BUCKET":
            return {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
        return {}

    def _rows_for(self, operation: str) -> list[Row]:
        some = self._random.randint(1, 6)
        known = sorted(self.rows.values())
        if operation == "upsert":
            return self._newer(self._random.sample(known, min(some, len(known)))) + self._new(2)
        if operation == "delete":
            return self._newer(self._random.sample(known, min(some, len(known))))
        if operation == "delete_partition":
            return self._new(1)
        if operation in ("insert", "bulk_insert"):
            return self._unseen(some)
        return self._new(some)

    def _newer(self, rows: Iterable[Row]) -> list[Row]:
        # Of equal ordering values the one that is written later wins.
        step = self._random.choice([1, 1, 1, 0])
        return [(row[0], row[1], row[2] + step, *self._values()) for row in rows]

    def _new(self, count: int) -> list[Row]:
        free = [f"k{i:02d}" for i in range(KEYS * 4) if f"k{i:02d}" not in self.rows]
        return self._rows_of(self._random.sample(free, min(count, len(free))))

    def _unseen(self, count: int) -> list[Row]:
        """Rows of keys that never were there.

        A log may have deleted the others, whose rows are still in base files: Hudi's next upsert of a key that an
        insert brought back makes two rows of it.
        """
        keys = [f"n{self._inserted + i:03d}" for i in range(count)]
        self._inserted += count
        return self._rows_of(keys)

    def _rows_of(self, keys: list[str]) -> list[Row]:
        return [(key, self._random.choice(PARTITIONS), 1, *self._values()) for key in keys]

    def _values(self) -> tuple[int, str]:
        return self._random.randrange(100), f"v{self.number}-{self._random.randrange(1000)}"

    def _take(self, step: Step) -> Step:
        incoming = {row[0]: row for row in step.rows}
        paths = {row[1] for row in step.rows} if self.shape.partitioned else set(PARTITIONS)
        if step.operation == "insert_overwrite":
            self.rows = {k: r for k, r in self.rows.items() if r[1] not in paths} | incoming
        elif step.operation == "insert_overwrite_table":
            self.rows = incoming
        elif step.operation == "delete":
            self.rows = {k: r for k, r in self.rows.items() if k not in incoming}
        elif step.operation == "delete_partition":
            gone = step.options["hoodie.datasource.write.partitions.to.delete"]
            self.rows = {k: r for k, r in self.rows.items() if r[1] != gone}
        else:
            self.rows |= incoming
        return step
