"""Rows before and after a commit: whatever order they are in, the answer is that of comparing each with each."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from drawstring.reading.changes import changed_rows

Row = tuple[str, str, str]
"""Commit time, number, key."""
NAMES = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key")


def table(rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=NAMES)


def found(before: list[Row], after: list[Row]) -> Counter[tuple[str, Row]]:
    taken, added = changed_rows(table(before), table(after))
    rows = [*taken.to_pylist(), *added.to_pylist()]
    return Counter((row["_rowkind"], tuple(row[name] for name in NAMES)) for row in rows)


def compared(before: list[Row], after: list[Row]) -> Counter[tuple[str, Row]]:
    """Each key is on each side once."""
    old, new = {row[2]: row for row in before}, {row[2]: row for row in after}
    kinds: Counter[tuple[str, Row]] = Counter()
    for key in {*old, *new}:
        if key not in new:
            kinds["-D", old[key]] += 1
        elif key not in old:
            kinds["+I", new[key]] += 1
        elif old[key] != new[key]:
            kinds["-U", old[key]] += 1
            kinds["+U", new[key]] += 1
    return kinds


def history(chosen: random.Random) -> tuple[list[Row], list[Row]]:
    before = [(str(chosen.randint(1, 3)), f"s{key}", str(key)) for key in range(chosen.randint(0, 12))]
    after = [row for row in before if chosen.random() > 0.2]
    for position, row in enumerate(after):
        if chosen.random() < 0.3:
            # A new commit's, or one that comes back as an older commit wrote it.
            after[position] = (chosen.choice("1249"), f"n{row[2]}", row[2])
    after += [("9", f"n{key}", f"new{key}") for key in range(chosen.randint(0, 3))]
    if chosen.random() < 0.5:
        chosen.shuffle(after)
    return before, after


@pytest.mark.parametrize("seed", range(300))
def test_changes_are_those_of_comparing_each_row_with_each(seed):
    before, after = history(random.Random(seed))
    assert found(before, after) == compared(before, after), (before, after)


def test_a_key_that_is_inserted_again_takes_nothing_back():
    rows = [("1", "a", "k"), ("1", "b", "l")]
    assert found(rows, [*rows, ("2", "c", "k")]) == {("+I", ("2", "c", "k")): 1}
    assert found([*rows, ("2", "c", "k")], rows) == {("-D", ("2", "c", "k")): 1}


def test_sides_may_be_empty():
    rows = [("1", "a", "k")]
    assert found([], rows) == {("+I", rows[0]): 1}
    assert found(rows, []) == {("-D", rows[0]): 1}
    assert found([], []) == {}


@pytest.mark.parametrize("seed", range(100))
def test_where_keys_are_there_twice_versions_that_stay_are_no_changes(seed):
    chosen = random.Random(seed)
    rows = [(chosen.choice("12"), f"s{n}", str(chosen.randint(0, 4))) for n in range(10)]
    before, after = ([row for row in rows if chosen.random() < 0.6] for _ in range(2))
    chosen.shuffle(after)
    changes = found(before, after)
    assert {row for kind, row in changes if kind[0] == "-"} == set(before) - set(after)
    assert {row for kind, row in changes if kind[0] == "+"} == set(after) - set(before)
    for sign, other in (("-", "+"), ("+", "-")):
        opposite = {row[2] for kind, row in changes if kind[0] == other}
        assert all((kind[1] == "U") == (row[2] in opposite) for kind, row in changes if kind[0] == sign)
