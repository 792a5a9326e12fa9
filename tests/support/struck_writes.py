"""Kinds of writes that are struck in the middle, what each makes of a table, and what must hold after that."""

from __future__ import annotations

import os
from pathlib import Path

from drawstring.storage import LocalStorage
from drawstring.write.table_facts import load_state
from tests.small_writes import files_of, leftovers, rows_of, rows_of_hudi_rs, write
from tests.support.metadata_check import assert_metadata_table_equals_table

OLD = [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")]
NEW = [("1", "oslo", 2, "A"), ("4", "oslo", 2, "D")]
RESULTS = {
    "upsert": [("1", "oslo", 2, "A"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c"), ("4", "oslo", 2, "D")],
    "insert": [*OLD, *NEW],
    "bulk_insert": [*OLD, *NEW],
    "delete": [("2", "oslo", 1, "b"), ("3", "rome", 1, "c")],
    "insert_overwrite": [*NEW, ("3", "rome", 1, "c")],
    "delete_partition": [("3", "rome", 1, "c")],
    "overwrite": NEW,
}
"""What each write makes of OLD; `overwrite` is the save mode."""
AFTER = ("9", "kiel", 1, "next")


def act(storage: LocalStorage, kind: str) -> None:
    """Write, by an operation or, for `overwrite`, by save mode."""
    if kind == "delete_partition":
        write(storage, [], kind, options={"hoodie.datasource.write.partitions.to.delete": "oslo"})
    elif kind == "overwrite":
        write(storage, NEW, "bulk_insert", mode="overwrite")
    else:
        write(storage, NEW, kind)


def assert_whole(path: Path, kind: str, point: object, *, acknowledged: bool) -> None:
    """Old or new state; the next writer repairs, adds its rows, and changes nothing else."""
    before, old, new = rows_of(path), sorted(OLD), sorted(RESULTS[kind])
    assert before in (old, new), point
    assert not acknowledged or before == new, point
    write(LocalStorage(str(path)), [AFTER])
    found = rows_of(path)
    assert found in (sorted([*old, AFTER]), sorted([*new, AFTER])), point
    # What was seen stays; what was decided but not seen may have been finished by the next writer.
    assert before == old or found == sorted([*new, AFTER]), point
    assert not load_state(LocalStorage(str(path))).timeline.pending, point
    assert leftovers(path) == set(), point
    assert os.listdir(path.parent) == [path.name], point
    named = _named_files(path)
    data = {name for name in files_of(path) if not name.startswith(".hoodie/")}
    assert {name for name in data if name.endswith(".parquet") or ".log." in name} == named, point
    if not isinstance(point, int) or point % 5 == 0:
        assert rows_of_hudi_rs(path) == found, point
    if (path / ".hoodie" / "metadata").exists():
        assert_metadata_table_equals_table(LocalStorage(str(path)))


def _named_files(path: Path) -> set[str]:
    state = load_state(LocalStorage(str(path)))
    return {stat.path for i in state.timeline.completed_writes for stat in state.metadata(i).stats}
