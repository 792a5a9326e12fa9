"""One table being made: writes, deletes, SQL and table services of the running Apache Hudi."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from making.reads import WriteInstant, write_instants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROW = "id int, p string, v bigint, s string, ts bigint"

_DEFAULTS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
}


@dataclass
class Workbench:
    """What a theme works with.

    `questions` may be filled by the theme; what it leaves out is asked by default.
    """

    spark: SparkSession
    name: str
    version: int
    table_type: str
    path: Path
    options: dict[str, str] = field(default_factory=lambda: dict(_DEFAULTS))
    read_options: dict[str, str] = field(default_factory=dict)
    questions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def merge_on_read(self) -> bool:
        """Whether the table has log files."""
        return self.table_type == "MERGE_ON_READ"

    @property
    def instants(self) -> list[WriteInstant]:
        """Completed writes so far."""
        return write_instants(self.path)

    def set(self, options: dict[str, str]) -> None:
        """Set write options for all writes to come."""
        self.options.update(options)

    def write(
        self,
        rows: list[Any],
        schema: str = ROW,
        *,
        operation: str = "upsert",
        options: dict[str, str] | None = None,
    ) -> None:
        """Write rows with the given operation."""
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        fixed = {
            "hoodie.table.name": self.name,
            "hoodie.datasource.write.table.type": self.table_type,
            "hoodie.datasource.write.operation": operation,
        }
        frame.write.format("hudi").options(**{**self.options, **fixed, **(options or {})}).mode(
            "append"
        ).save(str(self.path))

    def delete(self, rows: list[Any], schema: str = ROW) -> None:
        """Delete the keys of the given rows."""
        self.write(rows, schema, operation="delete")

    def register(self) -> str:
        """Make the table known to the catalog, for SQL and procedures, and return its name there."""
        self.sql(f"create table if not exists {self.name} using hudi location '{self.path}'")
        return self.name

    def sql(self, text: str) -> list[Any]:
        """Run SQL; `{table}` stands for the registered name, `{path}` for the folder."""
        rows: list[Any] = self.spark.sql(
            text.replace("{table}", self.name).replace("{path}", str(self.path))
        ).collect()
        return rows

    def die(self) -> None:
        """Take away the last completed write's final file, as if the writer had died before completing."""
        last = self.instants[-1]
        folder = self.path / ".hoodie" / "timeline"
        folder = folder if folder.is_dir() else self.path / ".hoodie"
        for done in (
            *folder.glob(f"{last.requested_time}_*"),
            folder / f"{last.requested_time}.deltacommit",
            folder / f"{last.requested_time}.commit",
        ):
            if done.exists():
                done.unlink()
                (done.parent / f".{done.name}.crc").unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget an earlier try."""
        self.spark.sql(f"drop table if exists {self.name}")
        shutil.rmtree(self.path, ignore_errors=True)


def rows(
    count: int, *, start: int = 0, ts: int = 10, s: str = "s", partitions: str = "abc"
) -> list[tuple[Any, ...]]:
    """Plain rows: the partition goes round, the value tells the key."""
    return [(i, partitions[i % len(partitions)], i * 100, f"{s}{i}", ts) for i in range(start, start + count)]


def updates(ids: list[int], *, ts: int, s: str, partitions: str = "abc") -> list[tuple[Any, ...]]:
    """New versions of rows made by `rows`."""
    return [(i, partitions[i % len(partitions)], i * 100 + ts, s, ts) for i in ids]
