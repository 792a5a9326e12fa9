"""drawstring and Apache Hudi write to the same tables in turn, and everybody sees the same rows after every commit.

For every type of table, with partitions and without, three tables take turns: one with a plain index, one with a record
index, one with buckets. `ALTERNATING_COMMITS` says how many commits the three get together, `ALTERNATING_SEED` which.
The long form is `make torture TESTS=tests/interop/test_alternating.py` on PySpark 3.5.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.interop.alternating import Table
from tests.interop.engine import shared
from tests.support.histories import History, Shape

COMMITS = int(os.environ.get("ALTERNATING_COMMITS", "50"))
LONG = int(os.environ.get("ALTERNATING_COMMITS", "1000"))
SEED = int(os.environ.get("ALTERNATING_SEED", "3"))
INDEXES = ("SIMPLE", "RECORD_INDEX", "BUCKET")
SHAPES = [
    Shape(kind, partitioned, index)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    for partitioned in (True, False)
    for index in INDEXES
]


@pytest.fixture(scope="module")
def histories(tmp_path_factory, request):
    """All tables at once: while one of the engines is busy with a table, the other serves another."""
    mine = [item for item in request.session.items if item.path == request.path]
    is_long = any(item.get_closest_marker("torture") for item in mine)
    chosen = dict.fromkeys(item.callspec.params["shape"] for item in mine)
    engines = {name: shared(name) for name in ("hudi", "drawstring")}
    commits = LONG // (len(SHAPES) // len(INDEXES)) if is_long else COMMITS
    with ThreadPoolExecutor(4) as pool:
        yield {
            shape: pool.submit(
                alternate,
                Table(tmp_path_factory.mktemp(shape.name) / "t", shape, engines),
                _share(commits, shape),
            )
            for shape in chosen
        }


def _share(commits: int, shape: Shape) -> int:
    """Commits that a table gets of those of its kind."""
    return len(range(INDEXES.index(shape.index), commits, len(INDEXES)))


@pytest.mark.interop
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_everybody_sees_the_rows_of_both_writers(histories: dict[Shape, Future[None]], shape):
    histories[shape].result()


@pytest.mark.torture
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_everybody_sees_the_rows_of_both_writers_for_long(histories: dict[Shape, Future[None]], shape):
    histories[shape].result()


def alternate(table: Table, commits: int) -> None:
    """Take so many steps of a random history, and look at the table after each."""
    history = History(table.shape, SEED)
    told: list[str] = []
    before = None
    for _ in range(commits):
        step = history.next()
        told.append(f"{step.engine} {step.operation} {step.options} {step.rows} {step.service}")
        try:
            table.write(step)
            before = (table.check(history.rows.values(), before), list(history.rows.values()))
        except Exception as error:
            error.add_note("\n".join(told)) if hasattr(error, "add_note") else print("\n".join(told))
            raise
