"""Two upserts insert one new key at the same time: one row, and it is the winner's."""

from __future__ import annotations

import threading

import pytest

from drawstring.storage import LocalStorage
from tests.small_writes import new_table, rows_of, write


def rounds(path, count: int) -> None:
    new_table(path, [("0", "oslo", 1, "a")])
    for number in range(count):
        barrier, failures = threading.Barrier(2), []

        def upsert(ts, number=number, barrier=barrier, failures=failures):
            barrier.wait()
            try:
                write(LocalStorage(str(path)), [(f"k{number % 40}-{number // 40}", "oslo", ts, str(ts))])
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=upsert, args=(ts,)) for ts in (1, 2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert not failures, (number, failures)
    found = rows_of(path)
    assert len(found) == len({row[0] for row in found}) == count + 1
    assert {row[2] for row in found if row[0] != "0"} == {2}


def test_fifty_rounds_of_two_upserts_of_one_new_key_make_one_row_each(tmp_path):
    rounds(tmp_path / "table", 50)


@pytest.mark.torture
def test_ten_thousand_rounds_of_two_upserts_of_one_new_key_make_one_row_each(tmp_path):
    for number in range(100):
        rounds(tmp_path / str(number), 100)
