"""A process killed, or refused by storage, before and after every operation of every kind of write."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest

from drawstring.errors import CommitOutcomeUnknown, DrawstringError
from drawstring.storage import LocalStorage
from drawstring.write.table_facts import load_state
from tests.small_writes import (
    SCHEMA,
    HookedStorage,
    files_of,
    hooked,
    in_child,
    leftovers,
    new_table,
    rows_of,
    rows_of_hudi_rs,
    write,
)
from tests.support.hand_table import HandTable
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


def act(storage: HookedStorage, kind: str) -> None:
    if kind == "delete_partition":
        write(storage, [], kind, options={"hoodie.datasource.write.partitions.to.delete": "oslo"})
    elif kind == "overwrite":
        write(storage, NEW, "bulk_insert", mode="overwrite")
    else:
        write(storage, NEW, kind)


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


def every_point(template, tmp_path, kind, strike):
    """Yield the path of a copy of the table for each point of a write that `strike(storage, point)` hit."""
    for point in range(1, 200):
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


def assert_whole(path, kind, point, *, acknowledged):
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
    if point % 5 == 0:
        assert rows_of_hudi_rs(path) == found, point
    if (path / ".hoodie" / "metadata").exists():
        assert_metadata_table_equals_table(LocalStorage(str(path)))


def _named_files(path):
    state = load_state(LocalStorage(str(path)))
    return {stat.path for i in state.timeline.completed_writes for stat in state.metadata(i).stats}


def kill_at(kind, *, after):
    def strike(storage, point):
        def kill(number, operation, name):
            if number == point:
                os.kill(os.getpid(), signal.SIGKILL)

        if after:
            storage.after = kill
        else:
            storage.before = kill
        code = in_child(lambda: act(storage, kind))
        assert code in (0, -signal.SIGKILL), (point, code)
        return code != 0

    return strike


def kill_everywhere(template, tmp_path, kind, after):
    points = 0
    for point, path, hit in every_point(template, tmp_path, kind, kill_at(kind, after=after)):
        assert_whole(path, kind, point, acknowledged=not hit)
        points += hit
    assert points >= (20 if kind == "overwrite" else 9)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("template", "kind"), KINDS, indirect=["template"])
def test_process_killed_at_any_operation_leaves_the_old_or_the_new_state_whole(
    template, tmp_path, kind, after
):
    kill_everywhere(template, tmp_path, kind, after)


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
    kill_everywhere(indexed, tmp_path, kind, after=True)


@pytest.mark.torture
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("template", "kind"), KINDS, indirect=["template"])
def test_process_killed_at_any_operation_twenty_times(template, tmp_path, kind, after):
    for number in range(20):
        kill_everywhere(template, tmp_path / str(number), kind, after)


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


TRACED = """
import sys
from drawstring.storage import LocalStorage
from tests.small_writes import write
write(LocalStorage(sys.argv[1]), [("1", "oslo", 2, "A"), ("4", "oslo", 2, "D")])
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize(
    ("call", "error"), [("renameat2,rename,renameat", "EIO"), ("linkat,link", "ENOSPC"), ("fsync", "EIO")]
)
def test_errors_of_the_kernel_itself_leave_the_table_whole(template, tmp_path, call, error):
    """Hooks in Python could lie; here system calls fail, one after the other."""
    for when in (1, 2, 4, 7):
        path = tmp_path / f"{when}" / "table"
        shutil.copytree(template, path)
        inject = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
        command = ["strace", "-f", "-o", "/dev/null", *inject, sys.executable, "-c", TRACED, str(path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if "ptrace" in ran.stderr and "not permitted" in ran.stderr:
            pytest.skip("strace may not trace here")
        assert (
            ran.returncode == 0 or error in ran.stderr or "Errno" in ran.stderr or "not known" in ran.stderr
        )
        assert_whole(path, "upsert", when, acknowledged=ran.returncode == 0)
