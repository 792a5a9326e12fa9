"""Random histories of one table that drawstring and Apache Hudi write in turn, and a model of what it must hold."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hudi
import pyarrow as pa

import drawstring
from tests.interop.conversation import Engine

SCHEMA = "id string, p string, ts bigint, n int, v string"
COLUMNS = ["id", "p", "ts", "n", "v"]
PARTITIONS = ["a", "b", "c"]
KEYS = 24
Row = tuple[str, str, int, int, str]
_WHERE = "n >= 50"
_SKIPPING = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
_LISTING = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}


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
            "hoodie.clean.commits.retained": "3",
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
    """One commit: who writes, what, and which services go along."""

    engine: str
    operation: str
    rows: list[Row] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


class History:
    """A seeded random history: the next step, and the rows after it."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape, self._random, self.rows = shape, random.Random(f"{shape.name} {seed}"), {}
        self.number = 0

    rows: dict[str, Row]

    def next(self) -> Step:
        """Choose a step, and let the model take it."""
        self.number += 1
        engine = self._random.choice(["hudi", "drawstring"])
        if self.number == 1:
            # Hudi makes the record index; drawstring keeps it.
            first = "hudi" if self.shape.index == "RECORD_INDEX" else engine
            return self._take(Step(first, "upsert", self._new(KEYS // 2)))
        step = Step(engine, self._random.choice(self._operations(engine)))
        step.rows = self._rows_for(step.operation)
        if step.operation == "delete_partition":
            step.options["hoodie.datasource.write.partitions.to.delete"] = self._random.choice(PARTITIONS)
        step.options |= self._services(engine)
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
        return self._new(some)

    def _newer(self, rows: Iterable[Row]) -> list[Row]:
        # Of equal ordering values the one that is written later wins.
        step = self._random.choice([1, 1, 1, 0])
        return [(row[0], row[1], row[2] + step, *self._values()) for row in rows]

    def _new(self, count: int) -> list[Row]:
        free = [f"k{i:02d}" for i in range(KEYS * 4) if f"k{i:02d}" not in self.rows]
        keys = self._random.sample(free, min(count, len(free)))
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


class Table:
    """The table on disk, with everybody who reads it."""

    def __init__(self, path: Path, shape: Shape, engines: dict[str, Engine]) -> None:
        self.path, self.shape, self._engines = path, shape, engines

    def write(self, step: Step) -> None:
        """Let the step's engine write."""
        options = {**self.shape.options(step.engine, step.operation), **step.options}
        self._engines[step.engine].ask(
            do="write", path=str(self.path), rows=step.rows, schema=SCHEMA, options=options
        )

    def check(self, rows: Iterable[Row], before: tuple[str, list[Row]] | None) -> str:
        """Hold what every reader sees against the rows; `before` is an older instant and what it had.

        Returns the newest instant.
        """
        expected = sorted(rows)
        some = [row for row in expected if row[3] >= 50]
        assert self._arrow() == expected, "drawstring, Arrow"
        if not self._hidden_from_hudi_rs():
            assert self._hudi_rs() == expected, "hudi-rs"
        reads: list[dict[str, Any]] = [
            {"conf": _SKIPPING},
            {"conf": _LISTING},
            {"conf": _SKIPPING, "where": _WHERE},
        ]
        answers = [("hudi", read, some if "where" in read else expected) for read in reads]
        v1 = {"hoodie.datasource.read.use.dsv2": "false"}
        ours = [{}, {"where": _WHERE}, {"options": v1}, {"options": v1, "where": _WHERE}]
        answers += [("drawstring", read, some if "where" in read else expected) for read in ours]
        if before is not None:
            past = {"options": {"as.of.instant": before[0]}}
            answers += [(engine, past, sorted(before[1])) for engine in ("hudi", "drawstring")]
        for engine in ("hudi", "drawstring"):
            asked = [(read, wanted) for one, read, wanted in answers if one == engine]
            found = self._read(engine, [read for read, _ in asked])
            for (read, wanted), rows_found in zip(asked, found, strict=True):
                assert rows_found == wanted, f"{engine}, {read}"
        if before is not None:
            self._check_changes(before[0])
        return self._newest()

    def _check_changes(self, since: str) -> None:
        """Both engines must tell the same rows of the commits after an instant."""
        options = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": self._completion(since),
        }
        hudis, ours = (self._read(engine, [{"options": options}])[0] for engine in ("hudi", "drawstring"))
        assert ours == hudis, f"changes since {since}"

    def _read(self, engine: str, reads: list[dict[str, Any]]) -> list[list[Row]]:
        answers = self._engines[engine].ask(do="read", path=str(self.path), reads=reads, columns=COLUMNS)
        return [sorted(tuple(row) for row in rows) for rows in answers]

    def _arrow(self) -> list[Row]:
        found = drawstring.open_table(str(self.path)).snapshot().scan().to_arrow().select(COLUMNS)
        return sorted(tuple(row.values()) for row in found.to_pylist())

    def _hudi_rs(self) -> list[Row]:
        batches = hudi.HudiTableBuilder.from_base_uri(str(self.path)).build().read()
        found = pa.Table.from_batches(batches).select(COLUMNS) if batches else None
        return sorted(tuple(row.values()) for row in found.to_pylist()) if found is not None else []

    def _hidden_from_hudi_rs(self) -> bool:
        """hudi-rs 0.5 sees no group without base file where a metadata table lists it; without one it does."""
        snapshot = drawstring.open_table(str(self.path)).snapshot()
        has_listing = bool(snapshot.state.config.metadata_partitions)
        return has_listing and any(found.base_file is None for found in snapshot.all_slices())

    def _newest(self) -> str:
        return str(drawstring.open_table(str(self.path)).snapshot().latest_instant.requested_time)

    def _completion(self, instant: str) -> str:
        timeline = drawstring.open_table(str(self.path)).snapshot().state.timeline
        return str(timeline.by_requested_time[instant].completion_time)
