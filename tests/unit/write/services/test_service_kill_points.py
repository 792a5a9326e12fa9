"""A service killed before every storage operation: no reader sees a difference, and whoever comes next finishes it."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
from functools import partial

import pytest

from drawstring.config.service_options import ServiceOptions
from drawstring.errors import DrawstringError
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.timeline.history import History
from drawstring.write.services.archiving import archive
from drawstring.write.services.cleaning import clean
from drawstring.write.services.compacting import LOGS, compact
from drawstring.write.table_facts import load_state
from tests.small_writes import (
    SCHEMA,
    hooked,
    leftovers,
    new_table,
    rows_of,
    rows_of_hudi_rs,
    write,
)
from tests.support.hand_table import HandTable
from tests.support.metadata_check import assert_metadata_table_equals_table
from tests.unit.write.services.test_archiving import FEW
from tests.unit.write.services.test_cleaning import QUIET

OPTIONS = ServiceOptions.of({**FEW, "hoodie.log.compaction.blocks.threshold": "2"})
SERVICES = {
    "clean": clean,
    "archive": archive,
    "compact": compact,
    "compact logs": partial(compact, kind=LOGS),
}
AFTER = ("9", "oslo", 1, "next")


# Arrow's threads do not survive a fork: children come from a process that has none.
CLEAN_FORKS = multiprocessing.get_context("forkserver")
CLEAN_FORKS.set_forkserver_preload([__name__])


def run_until(path: str, service: str, point: int) -> None:
    """Run a service in this process, and kill it before an operation."""
    storage = hooked(path)

    def at(number, operation, name):
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)

    storage.before = at
    SERVICES[service](storage, OPTIONS)


def _quiet(service):
    """Options of writes that run no service; the metadata table stays, but for the table that is archived."""
    return QUIET if service == "archive" else {**QUIET, "hoodie.metadata.enable": "true"}


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """Tables with something to do for each service; the archived one without a metadata table, which holds it back."""
    found = {name: tmp_path_factory.mktemp(name) / "table" for name in SERVICES}
    for name, path in found.items():
        kind = "MERGE_ON_READ" if name.startswith("compact") else "COPY_ON_WRITE"
        storage = new_table(path, options={"hoodie.table.type": kind})
        first = [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")]
        write(storage, first, options=QUIET)
        if name != "archive":
            HandTable(storage, SCHEMA).initialise()
        for number in range(2 if name.startswith("compact") else 6):
            write(storage, [("1", "oslo", 2 + number, f"a{number}")], options=_quiet(name))
    return found


def points(template, tmp_path, strike):
    for point in range(1, 300):
        path = tmp_path / str(point) / "table"
        shutil.copytree(template, path)
        hit = strike(hooked(str(path)), point)
        yield point, path, hit
        shutil.rmtree(path.parent)
        if not hit:
            return
    raise AssertionError("the service never ended")


def every_instant(storage):
    state = load_state(storage)
    archived = {write.instant.requested_time for write in History(storage, state.config).writes}
    return archived | set(state.timeline.by_requested_time)


def assert_in_order(path, service, point, rows, instants):
    """The rows are there before and after the next one comes, who finishes what was begun."""
    storage = LocalStorage(str(path))
    assert rows_of(path) == rows, point
    assert every_instant(storage) >= instants, point
    write(storage, [AFTER], options=_quiet(service))
    SERVICES[service](storage, OPTIONS)
    assert rows_of(path) == sorted([*rows, AFTER]), point
    assert every_instant(storage) >= instants, point
    state = load_state(storage)
    assert not state.timeline.pending, point
    assert leftovers(path) == set(), point
    if service != "archive" and point % 3 == 0:
        assert_metadata_table_equals_table(storage)
    if service == "clean":
        assert len(list((path / "oslo").glob("*.parquet"))) == 3, point
    if service == "compact":
        assert [i for i in state.timeline.completed_writes if i.action is Action.COMMIT], point
    if service == "compact logs":
        assert list((path / ".hoodie" / "timeline").glob("*.logcompaction.requested")), point
    if point % 5 == 0:
        assert rows_of_hudi_rs(path) == rows_of(path), point


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_killed_at_any_operation_is_finished_by_whoever_comes_next(templates, tmp_path, service):
    template = templates[service]
    rows, instants = rows_of(template), every_instant(LocalStorage(str(template)))

    def kill(storage, point):
        child = CLEAN_FORKS.Process(target=run_until, args=(storage.root, service, point))
        child.start()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL), (point, child.exitcode)
        return child.exitcode != 0

    count = 0
    for point, path, hit in points(template, tmp_path, kill):
        assert_in_order(path, service, point, rows, instants)
        count += hit
    assert count >= 8


@pytest.mark.parametrize("service", SERVICES)
def test_storage_that_fails_at_any_operation_leaves_the_table_in_order(templates, tmp_path, service):
    template = templates[service]
    rows, instants = rows_of(template), every_instant(LocalStorage(str(template)))

    def fail(storage, point):
        hit = []

        def at(number, operation, name):
            if number == point:
                hit.append(name)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

        storage.before = at
        try:
            SERVICES[service](storage, OPTIONS)
        except (OSError, DrawstringError):
            assert hit
        return bool(hit)

    for point, path, _ in points(template, tmp_path, fail):
        # One that could not be deleted names this process, which lives; nobody beats it any more.
        for place in (path / ".hoodie" / ".heartbeat").glob("[0-9]*"):
            os.utime(place, (1, 1))
        assert_in_order(path, service, point, rows, instants)
