"""A process killed, or refused by storage, before and after every operation of every kind of write."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal

import pytest

from drawstring.errors import CommitOutcomeUnknown, DrawstringError
from tests.small_writes import SCHEMA, hooked, in_child, new_table, rows_of, write
from tests.support.hand_table import HandTable
from tests.support.struck_writes import OLD, RESULTS, act, assert_whole

KINDS = [
    *(("COPY_ON_WRITE", kind) for kind in RESULTS),
    # What the other kinds do is the same for both types.
    *(("MERGE_ON_READ", kind) for kind in ("upsert", "delete", "insert_overwrite")),
]


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    found = {name: tmp_path_factory.mktemp(name) / "table" for name in ("COPY_ON_WRITE", "MERGE_ON_READ")}
    new_table(found["COPY_ON_WRITE"], OLD)
    older = [(key, city, 0, "older") for key, city, _, _ in OLD]
    merged = new_table(found["MERGE_ON_READ"], older, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(merged, OLD)
    return found


@pytest.fixture
def template(templates, request):
    return templates[getattr(request, "param", "COPY_ON_WRITE")]


def every_point(template, tmp_path, kind, strike, *, stride=1):
    """Yield the path of a copy of the table for each point of a write that `strike(storage, point)` hit."""
    for point in range(1, 300, stride):
        path = tmp_path / str(point) / "table"
        shutil.copytree(template, path)
        storage = hooked(str(path))
        storage.with_siblings = True
        hit = strike(storage, point)
        yield point, path, hit
        shutil.rmtree(path.parent)
        if not hit:
            return
    raise AssertionError("the write never ended")


def kill_at(kind, *, twice):
    """Kill before every operation, after files were opened, and at the end; `twice` also after every other one.

    Nothing happens on disk between an operation and the next but that open files are written.
    """

    def strike(storage, point):
        moments = itertools.count(1)

        def moment():
            if next(moments) == point:
                os.kill(os.getpid(), signal.SIGKILL)

        storage.before = lambda number, operation, name: moment()
        storage.after = lambda number, operation, name: (
            moment() if twice or operation == "open_output" else None
        )
        code = in_child(lambda: (act(storage, kind), moment()))
        assert code in (0, -signal.SIGKILL), (point, code)
        return code != 0

    return strike


def kill_everywhere(template, tmp_path, kind, *, twice=False, stride=1):
    points = 0
    for point, path, hit in every_point(template, tmp_path, kind, kill_at(kind, twice=twice), stride=stride):
        assert_whole(path, kind, point, acknowledged=not hit)
        points += hit
    assert points >= (21 if kind == "overwrite" else 10) // stride


@pytest.mark.parametrize(("template", "kind"), KINDS, indirect=["template"])
def test_process_killed_at_any_operation_leaves_the_old_or_the_new_state_whole(template, tmp_path, kind):
    kill_everywhere(template, tmp_path, kind)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """The same table with a metadata table, record index and all."""
    path = tmp_path_factory.mktemp("indexed") / "table"
    HandTable(new_table(path, OLD), SCHEMA).initialise("record_index", "bloom_filters")
    return path


@pytest.mark.parametrize("kind", ["upsert", "insert_overwrite"])
def test_process_killed_at_any_operation_leaves_the_metadata_table_equal_to_the_table(
    indexed, tmp_path, kind
):
    kill_everywhere(indexed, tmp_path, kind)


@pytest.fixture(scope="module")
def unindexed(tmp_path_factory):
    """The same table without a metadata table, which the next write makes."""
    path = tmp_path_factory.mktemp("unindexed") / "table"
    write(new_table(path), OLD, options={"hoodie.metadata.enable": "false"})
    return path


def test_process_killed_while_it_makes_the_metadata_table_leaves_the_table_whole(unindexed, tmp_path):
    kill_everywhere(unindexed, tmp_path, "upsert", stride=7)


@pytest.mark.torture
def test_process_killed_anywhere_while_it_makes_the_metadata_table_leaves_the_table_whole(
    unindexed, tmp_path
):
    kill_everywhere(unindexed, tmp_path, "upsert", twice=True)


REPEATS = int(os.environ.get("KILL_REPEATS", 20))


@pytest.mark.torture
@pytest.mark.parametrize(("template", "kind"), KINDS, indirect=["template"])
def test_process_killed_before_and_after_any_operation_twenty_times(template, tmp_path, kind):
    for number in range(REPEATS):
        kill_everywhere(template, tmp_path / str(number), kind, twice=True)


ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO, "denied": errno.EACCES, "files": errno.EMFILE}


def fail_at(kind, code, outcomes):
    def strike(storage, point):
        hit = []

        def fail(number, operation, name):
            if number == point:
                hit.append((operation, name))
                raise OSError(code, os.strerror(code), name)

        storage.before = fail
        try:
            act(storage, kind)
            outcomes[point] = None
        except (OSError, DrawstringError) as error:
            outcomes[point] = error
        return bool(hit)

    return strike


@pytest.mark.parametrize(
    ("template", "kind", "name"),
    [
        *((*found, "full") for found in KINDS),
        *(("COPY_ON_WRITE", "upsert", name) for name in list(ERRORS)[1:]),
    ],
    indirect=["template"],
)
def test_storage_that_fails_at_any_operation_gives_an_error_or_a_commit_and_a_second_try_works(
    template, tmp_path, kind, name
):
    """Where the write ends in an error the table is unchanged, unless the error says that this is not known."""
    outcomes: dict[int, Exception | None] = {}
    for point, path, hit in every_point(template, tmp_path, kind, fail_at(kind, ERRORS[name], outcomes)):
        error = outcomes[point]
        unknown = isinstance(error, CommitOutcomeUnknown)
        if error is not None and not unknown:
            assert os.strerror(ERRORS[name]) in str(error) or isinstance(error, DrawstringError), point
            assert rows_of(path) == sorted(OLD), point
        _let_heartbeats_go_cold(path)
        assert_whole(path, kind, point, acknowledged=error is None)
        assert hit or error is None
    assert sum(error is not None for error in outcomes.values()) >= 3


def _let_heartbeats_go_cold(path):
    """One that could not be deleted names this process, which lives; nobody beats it any more."""
    for place in (path / ".hoodie" / ".heartbeat").glob("[0-9]*"):
        os.utime(place, (1, 1))
