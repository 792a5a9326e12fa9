"""drawstring and Apache Hudi write to the same tables in turn, and everybody sees the same rows after every commit.

The form for CI makes a few commits to each kind of table; `ALTERNATING_COMMITS` says how many, `ALTERNATING_SEED`
which. The long form is `make torture TESTS=tests/interop/test_alternating.py` on PySpark 3.5.
"""

from __future__ import annotations

import os

import pytest

from tests.interop.alternating import History, Shape, Table
from tests.interop.conversation import Engine

COMMITS = int(os.environ.get("ALTERNATING_COMMITS", "4"))
LONG = int(os.environ.get("ALTERNATING_COMMITS", "1000"))
SEED = int(os.environ.get("ALTERNATING_SEED", "1"))
SHAPES = [
    Shape(kind, partitioned, index)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for partitioned in (True, False)
    for index in ("SIMPLE", "RECORD_INDEX", "BUCKET")
]


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    found = {name: Engine(name, folder / name) for name in ("hudi", "drawstring")}
    yield found
    for engine in found.values():
        engine.close()


@pytest.mark.interop
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_everybody_sees_the_rows_of_both_writers(engines, tmp_path, shape):
    alternate(Table(tmp_path / "t", shape, engines), COMMITS)


@pytest.mark.torture
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_everybody_sees_the_rows_of_both_writers_for_long(engines, tmp_path, shape):
    alternate(Table(tmp_path / "t", shape, engines), LONG // len(SHAPES))


def alternate(table: Table, commits: int) -> None:
    """Take so many steps of a random history, and look at the table after each."""
    history = History(table.shape, SEED)
    told: list[str] = []
    before = None
    for _ in range(commits):
        step = history.next()
        told.append(f"{step.engine} {step.operation} {step.options} {step.rows}")
        try:
            table.write(step)
            before = (table.check(history.rows.values(), before), list(history.rows.values()))
        except Exception as error:
            error.add_note("\n".join(told)) if hasattr(error, "add_note") else print("\n".join(told))
            raise
