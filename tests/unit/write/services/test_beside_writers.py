"""A cleaner, an archiver and a compactor at work beside writers and a reader, each a process of its own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from drawstring.config.service_options import ServiceOptions
from drawstring.errors import CommitConflict, CorruptTable
from drawstring.storage import LocalStorage
from drawstring.write.services.archiving import archive
from drawstring.write.services.cleaning import clean
from drawstring.write.services.compacting import compact
from drawstring.write.table_facts import load_state
from tests.small_writes import leftovers, new_table, rows_of, rows_of_hudi_rs, write
from tests.unit.write.services.test_archiving import FEW

# Arrow's threads do not survive a fork: children come from a process that has none.
CLEAN_FORKS = multiprocessing.get_context("forkserver")
CLEAN_FORKS.set_forkserver_preload([__name__])
PATIENT = {"hoodie.write.num.retries.on.conflict.failures": 50, "hoodie.table.services.enabled": "false"}


def keep_writing(path: str, key: str, city: str, times: int) -> None:
    for number in range(1, times + 1):
        write(LocalStorage(path), [(key, city, number, f"{key}-{number}")], options=PATIENT)


def keep_in_order(path: str, stop: str) -> None:
    while not Path(stop).exists():
        for service in (compact, clean, archive):
            try:
                service(LocalStorage(path), ServiceOptions.of(FEW))
            except CommitConflict as error:
                if error.condition not in ("OVERTAKEN", "ROLLED_BACK", "LOCK_NOT_ACQUIRED"):
                    raise


def _read(path):
    """Rows as a reader sees them; one that a service overtook while it looked is told so by name, and looks again."""
    for _ in range(20):
        try:
            return rows_of(path)
        except CorruptTable as error:
            if error.condition not in ("INSTANT_MISSING", "MISSING_FILE", "FILE_MISSING"):
                raise
    raise AssertionError("the reader never got through")


def run_beside(path, stop, times, services):
    storage = new_table(path, options={"hoodie.table.type": "MERGE_ON_READ"})
    write(
        storage, [("1", "oslo", 0, "1-0"), ("2", "rome", 0, "2-0"), ("3", "oslo", 0, "3-0")], options=PATIENT
    )
    writers = [
        CLEAN_FORKS.Process(target=keep_writing, args=(str(path), key, city, times))
        for key, city in (("1", "oslo"), ("2", "rome"))
    ]
    others = [CLEAN_FORKS.Process(target=keep_in_order, args=(str(path), str(stop))) for _ in range(services)]
    [process.start() for process in (*writers, *others)]
    seen = {"1": 0, "2": 0, "3": 0}
    while any(writer.is_alive() for writer in writers):
        rows = _read(path)
        assert [row[0] for row in rows] == ["1", "2", "3"]
        for key, _, number, _ in rows:
            assert number >= seen[key], "a reader went back in time"
            seen[key] = number
    stop.touch()
    [process.join() for process in (*writers, *others)]
    assert [process.exitcode for process in (*writers, *others)] == [0] * (2 + services)
    return storage


def assert_whole(path, storage, times):
    compact(storage)
    clean(storage, ServiceOptions.of(FEW))
    wanted = [("1", "oslo", times, f"1-{times}"), ("2", "rome", times, f"2-{times}"), ("3", "oslo", 0, "3-0")]
    assert rows_of(path) == wanted == rows_of_hudi_rs(path)
    state = load_state(storage)
    assert not state.timeline.pending
    assert leftovers(path) == set()
    assert state.timeline.completed_cleans


def test_services_beside_writers_and_a_reader_lose_nothing(tmp_path):
    path = tmp_path / "t"
    storage = run_beside(path, tmp_path / "stop", 8, 1)
    assert_whole(path, storage, 8)


@pytest.mark.torture
def test_two_of_each_service_beside_writers_for_long(tmp_path):
    path = tmp_path / "t"
    storage = run_beside(path, tmp_path / "stop", 100, 2)
    assert_whole(path, storage, 100)
