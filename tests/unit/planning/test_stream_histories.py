"""Random histories as streams: under any limits every change comes once, and replaying them gives the newest rows."""

from __future__ import annotations

import os
import random
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_names import base_file_name
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.table import Table
from drawstring.write.commit_encoding import encode_commit
from tests.small_writes import OPTIONS, SCHEMA, hooked, in_child, rows_of, write

WRITES = ["upsert"] * 5 + ["insert", "delete", "delete", "insert_overwrite", "delete_partition"]
SERVICES = ["compact", "cluster", "die"]
CITIES = ("oslo", "rome", "kiel")
# Hand-made clustering says nothing to a metadata table; what was replaced is looked for.
PLAIN = {**OPTIONS, "hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}


def history(path: Path, kind: str, chosen: random.Random, commits: int) -> Table:
    options = {**PLAIN, "hoodie.datasource.write.table.type": kind}
    table = drawstring.create_table(str(path), SCHEMA, options=options)
    for number in range(commits):
        if number and chosen.random() < 0.3:
            serve(table, chosen)
        operation = chosen.choice(WRITES) if number else "upsert"
        keys = chosen.sample(range(20), chosen.randint(1, 8))
        fresh = number * 100 if operation == "insert" else 0
        rows = [(str(key + fresh), CITIES[key % 3], chosen.randint(1, 9), f"v{number}") for key in keys]
        dropped = {"hoodie.datasource.write.partitions.to.delete": chosen.choice(CITIES)}
        if operation == "delete_partition":
            write(table.storage, [], operation, options=PLAIN | dropped)
        else:
            write(table.storage, rows, operation, options=PLAIN)
    return table


def serve(table: Table, chosen: random.Random) -> None:
    """Something that changes no row: a compaction, a clustering, or a write that dies and is rolled back."""
    service = chosen.choice(SERVICES)
    if service == "die":
        steps = chosen.randint(3, 12)
        in_child(lambda: killed_write(table.path, steps))
        table.rollback()
        return
    if table.config.is_merge_on_read:
        table.compact(options=PLAIN)
    if service == "cluster":
        cluster(table, chosen.choice(CITIES))


def killed_write(path: str, steps: int) -> None:
    storage = hooked(path)
    storage.before = lambda number, *_: os._exit(9) if number == steps else None
    write(storage, [("7", "oslo", 99, "never")], options=PLAIN)


def cluster(table: Table, partition: str) -> None:
    """Move the rows of a partition to other file groups as Hudi does: as they are, with the commits that wrote them."""
    instant = next_instant(table)
    stats, replaced = [], []
    for found in table.snapshot().slices(partition):
        assert found.base_file is not None
        assert not found.log_files
        group = f"{uuid.UUID(int=random.getrandbits(128))}-0"
        name = base_file_name(group, "0-1-0", instant)
        shutil.copy(f"{table.path}/{found.base_file.path}", f"{table.path}/{partition}/{name}")
        stats.append(WriteStat(group, f"{partition}/{name}", partition, 1, file_size=found.base_file.size))
        replaced.append(found.group.file_id)
    if not replaced:
        return
    metadata = CommitMetadata("CLUSTER", tuple(stats), {partition: tuple(replaced)})
    timeline = Path(table.path) / table.config.timeline_directory
    for state in ("clustering.requested", "clustering.inflight"):
        (timeline / f"{instant}.{state}").touch()
    done = timeline / f"{instant}_{int(instant) + 1}.replacecommit"
    done.write_bytes(encode_commit(metadata, is_replace=True))


def next_instant(table: Table) -> str:
    """A time just after everything so far; further writes come later than that by the clock."""
    times = (i.completion_time or i.requested_time for i in table.timeline.ascending_instants)
    return str(int(max(times)) + 1)


def ranges(path: Path, limits: dict[str, str]) -> None:
    """The rows of batches are those of the incremental read of their range, whole commits at a time."""
    table = drawstring.open_table(str(path))
    found = table.stream(limits)
    start, begin, rows = found.initial_offset(), "000", list[dict[str, Any]]()
    while (end := found.next_offset(start)) != start:
        begin = max(begin, start.time)
        rows += found.batch(start, end).scan().to_arrow().to_pylist()
        if end.commit is None:
            assert shown(rows) == shown(table.incremental(begin, end.time).scan().to_arrow().to_pylist())
            begin, rows = end.time, []
        start = end
    assert rows == []


def drained(path: Path, chosen: random.Random, options: dict[str, str], limits: dict[str, str]) -> list[Any]:
    """The rows of all batches; now and then the stream is opened anew from the offset as text."""
    opened = drawstring.open_table(str(path), options=options)
    found = opened.stream(limits)
    position, rows = found.initial_offset(), []
    while (end := found.next_offset(position)) != position:
        rows += found.batch(position, end).scan().to_arrow().to_pylist()
        position = end
        if chosen.random() < 0.3:
            found, position = opened.stream(limits), StreamOffset.from_json(position.to_json())
    return rows


def shown(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(v for k, v in row.items() if k != "_hoodie_file_name") for row in rows)


def limits_of(chosen: random.Random) -> dict[str, str]:
    every = {
        "maxFilesPerTrigger": str(chosen.randint(1, 4)),
        "maxRowsPerTrigger": str(chosen.randint(1, 10)),
        "maxBytesPerTrigger": str(chosen.randint(1, 2_000_000)),
    }
    return dict(chosen.sample(sorted(every.items()), chosen.randint(1, 3)))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("seed", range(3))
def test_batches_under_any_limits_are_the_whole(tmp_path, seed, kind):
    check(tmp_path / "t", kind, random.Random(seed), 10)


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_batches_of_many_histories_are_the_whole(tmp_path, kind):
    for seed in range(100, 140):
        check(tmp_path / str(seed), kind, random.Random(seed), 8 + seed % 9)


def check(path: Path, kind: str, chosen: random.Random, commits: int) -> None:
    table = history(path, kind, chosen, commits)
    every = table.changes("earliest").to_arrow().to_pylist()
    limits = limits_of(chosen)
    streamed = drained(path, chosen, {"read.changelog": "true"}, limits)
    assert shown(streamed) == shown(every), limits

    net = {"read.changelog": "true", "read.changelog.net": "true"}
    for changes in (every, streamed, drained(path, chosen, net, limits)):
        rows: Counter[tuple[Any, ...]] = Counter()
        for change in changes:
            row = tuple(change[name] for name in SCHEMA.names)
            rows[row] += 1 if change["_rowkind"][0] == "+" else -1
        assert sorted((+rows).elements()) == rows_of(path), limits
        assert not -rows

    whole = table.incremental("earliest").scan().to_arrow().to_pylist()
    assert shown(drained(path, chosen, {}, {})) == shown(whole)
    versions = [
        (row["_hoodie_record_key"], row["_hoodie_commit_seqno"]) for row in drained(path, chosen, {}, limits)
    ]
    assert len(versions) == len(set(versions)), limits
    ranges(path, limits)
