"""Random histories as streams: under any limits every change comes once, and replaying them gives the newest rows."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import drawstring
from drawstring.planning.streams.offsets import StreamOffset
from drawstring.table import Table
from tests.small_writes import OPTIONS, SCHEMA, rows_of, write

OPERATIONS = ["upsert"] * 5 + ["insert", "delete", "delete", "insert_overwrite", "delete_partition"]
CITIES = ("oslo", "rome", "kiel")


def history(path: Path, kind: str, chosen: random.Random, commits: int) -> Table:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind}
    table = drawstring.create_table(str(path), SCHEMA, options=options)
    for number in range(commits):
        operation = chosen.choice(OPERATIONS) if number else "upsert"
        keys = chosen.sample(range(20), chosen.randint(1, 8))
        fresh = number * 100 if operation == "insert" else 0
        rows = [(str(key + fresh), CITIES[key % 3], chosen.randint(1, 9), f"v{number}") for key in keys]
        dropped = {"hoodie.datasource.write.partitions.to.delete": chosen.choice(CITIES)}
        if operation == "delete_partition":
            write(table.storage, [], operation, options=dropped)
        else:
            write(table.storage, rows, operation)
    return table


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
    chosen = random.Random(seed)
    path = tmp_path / "t"
    table = history(path, kind, chosen, 10)
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
