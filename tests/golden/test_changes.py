"""Changes of golden tables: replayed over an older snapshot they give the newest one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from drawstring.errors import InvalidInput
from drawstring.model.file_group import FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.planning.snapshot import Snapshot, TaskFacts
from drawstring.planning.streams.batch import Part, StreamBatch
from drawstring.planning.table_schemas import TableSchemas
from drawstring.reading import read_task
from drawstring.table import Table, open_table
from tests.golden.harness import arrow_rows, expectation, extract, table_names

CLEANED = {"v2_cow_archived", "v6_mor_archived", "v6_mor_cleaned", "v9_mor_archived"}
NAMES = [name for name in table_names() if not name.endswith("_no_meta")]


def opened(name: str, folder: Path) -> Table:
    return open_table(extract(name, folder), options=expectation(name)["read_options"])


def texts(rows: list[dict[str, Any]], hidden: tuple[str, ...] = ()) -> list[str]:
    # Rows that a commit carries over get a new file and are no change.
    left_out = {"_hoodie_file_name", "_rowkind", *hidden}
    return [json.dumps({k: v for k, v in row.items() if k not in left_out}, sort_keys=True) for row in rows]


@dataclass(frozen=True)
class Then:
    """A snapshot of a timeline that ends earlier, in another schema."""

    snapshot: Snapshot
    schemas: TableSchemas
    cleaned: tuple[str, ...] = ()

    @property
    def snapshot_id(self) -> str:
        return self.snapshot.snapshot_id

    def partitions(self) -> Iterable[str]:
        return self.snapshot.partitions()

    def slices(self, partition: str) -> Iterable[FileSlice]:
        return self.snapshot.slices(partition)

    def tasks(self, partition: str) -> list[ReadTask]:
        facts = TaskFacts(self.snapshot.state, self.schemas)
        return [facts.task(found) for found in self.slices(partition)]


def snapshot_until(table: Table, time: str) -> Counter[str]:
    """The rows when nothing later had completed, in the newest schema."""
    now, then = table.state(), Snapshot(table._pin_until(time), read_task)
    schemas = TableSchemas(now, None)
    part = Part(Then(then, schemas))  # type: ignore[arg-type]
    batch = StreamBatch(now, read_task, (part,), schemas.table_schema)
    return Counter(texts(arrow_rows(batch.scan().to_arrow()), hidden(table)))


def hidden(table: Table) -> tuple[str, ...]:
    """Log compaction gives rows its own time and numbers, though it changes nothing."""
    operations = {table.state().metadata(i).operation for i in table.timeline.completed_writes}
    return ("_hoodie_commit_time", "_hoodie_commit_seqno") if "LOG_COMPACT" in operations else ()


def times(table: Table) -> list[str]:
    return sorted(i.completion_time or "" for i in table.timeline.completed_writes)


def replayed(state: Counter[str], rows: list[dict[str, Any]], left_out: tuple[str, ...]) -> Counter[str]:
    state = Counter(state)
    for row, text in zip(rows, texts(rows, left_out), strict=True):
        if row["_rowkind"] in ("-U", "-D"):
            assert state[text] > 0, f"{row['_rowkind']} of a row that is not there: {text}"
            state[text] -= 1
        else:
            assert row["_rowkind"] in ("+I", "+U")
            state[text] += 1
    return +state


@pytest.mark.parametrize("name", NAMES)
def test_changes_and_net_changes_replayed_over_an_older_snapshot_give_the_newest(
    name: str, tmp_path: Path
) -> None:
    table = opened(name, tmp_path)
    moments = times(table)
    left_out = hidden(table)
    newest = Counter(texts(arrow_rows(table.snapshot().scan().to_arrow()), left_out))
    for begin in ["000", *moments[:-1]] if name not in CLEANED else moments[-2:-1]:
        older = snapshot_until(table, begin) if begin != "000" else Counter[str]()
        for net in (False, True):
            found = arrow_rows(table.changes(begin, net=net).to_arrow())
            assert replayed(older, found, left_out) == newest, (begin, net)
            # What Spark's tasks read, in any order.
            read = arrow_rows(table.changes(begin, net=net).scan().to_arrow())
            assert kinds(read, left_out) == kinds(found, left_out), (begin, net)


def kinds(rows: list[dict[str, Any]], left_out: tuple[str, ...]) -> Counter[tuple[str, str]]:
    return Counter(zip((row["_rowkind"] for row in rows), texts(rows, left_out), strict=True))


@pytest.mark.parametrize("name", sorted(CLEANED))
def test_changes_whose_files_were_cleaned_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="was cleaned") as caught:
        opened(name, tmp_path).changes("earliest").to_arrow()
    assert caught.value.condition == "CHANGES_WERE_CLEANED"
