"""Many OS processes on one table: disjoint and contended keys, kills, and pauses past the heartbeat's expiry."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from drawstring.errors import CommitConflict
from drawstring.storage import LocalStorage
from drawstring.write.landing import is_completed
from drawstring.write.table_facts import load_state
from tests.small_writes import SCHEMA, leftovers, new_table, rows_of, write
from tests.support.hand_table import HandTable
from tests.support.metadata_check import assert_metadata_table_equals_table

SETTINGS = {
    "hoodie.client.heartbeat.tolerable.misses": "2",
    "hoodie.write.num.retries.on.conflict.failures": "100",
    "hoodie.write.lock.wait_time_ms": "1200000",
}


def interval_ms(processes: int) -> int:
    """Between heartbeats: where many share few cores, those of the living must not seem to stop."""
    return 200 if processes <= 16 else 3000


TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
CITIES = ("oslo", "rome", "kiel", "bern")


def work(path: Path, log: Path, number: int, commits: int, *, contended: bool, beat: int) -> None:
    """Commit one row at a time, and note each commit once it is acknowledged."""
    storage = LocalStorage(str(path))
    settings = {**SETTINGS, "hoodie.client.heartbeat.interval_in_ms": str(beat)}
    with open(log, "a", buffering=1) as file:
        for turn in range(commits):
            city = CITIES[turn % len(CITIES)] if contended else f"city{number}"
            key = f"{city}-{turn % 3}" if contended else f"{number}-{turn}"
            row = (key, city, time.time_ns(), f"{number}-{turn}")
            try:
                result = write(storage, [row], options=settings)
            except CommitConflict as error:
                file.write(f"conflict {error.condition}\n")
                continue
            file.write(f"{result.instant} {key} {city} {row[2]} {row[3]}\n")


def start(path: Path, log: Path, number: int, commits: int, *, contended: bool, beat: int) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(path, log, number, commits, contended=contended, beat=beat)
            code = 0
        except BaseException as error:
            print(f"writer {number}: {error!r}", file=sys.stderr)
        finally:
            os._exit(code)
    return child


def strike(children: dict[int, int], again, chance: random.Random, strikes: int, beat: int) -> None:
    """Kill some writers, who are started again, and stop others for longer than their heartbeat lasts."""
    for _ in range(strikes):
        time.sleep(chance.uniform(0.05, 0.3))
        number = chance.choice(list(children))
        if chance.random() < 0.5:
            os.kill(children[number], signal.SIGKILL)
            os.waitpid(children[number], 0)
            children[number] = again(number)
        else:
            os.kill(children[number], signal.SIGSTOP)
            time.sleep(3 * beat / 1000)
            os.kill(children[number], signal.SIGCONT)


def run(
    tmp_path: Path,
    *,
    processes: int,
    commits: int,
    contended: bool,
    strikes: int,
    indexed: bool = False,
    table_type: str = "COPY_ON_WRITE",
) -> None:
    path, logs, beat = tmp_path / "table", tmp_path / "logs", interval_ms(processes)
    logs.mkdir()
    storage = new_table(path, [("begin", "begin", 1, "begin")], options={"hoodie.table.type": table_type})
    if indexed:
        HandTable(storage, SCHEMA).initialise("record_index")

    def begin(number: int) -> int:
        return start(path, logs / str(number), number, commits, contended=contended, beat=beat)

    children = {number: begin(number) for number in range(processes)}
    strike(children, begin, random.Random(processes), strikes, beat)
    codes = {number: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for number, pid in children.items()}
    assert set(codes.values()) == {0}, codes
    write(LocalStorage(str(path)), [("end", "end", 1, "end")])
    check(path, logs, processes)
    assert_metadata_table_equals_table(LocalStorage(str(path)))


def check(path: Path, logs: Path, processes: int) -> None:
    lines = {n: (logs / str(n)).read_text().splitlines() for n in range(processes)}
    acknowledged = [
        line.split() for found in lines.values() for line in found if not line.startswith("conflict")
    ]
    state = load_state(LocalStorage(str(path)))
    assert not [found[0] for found in acknowledged if not is_completed(state, found[0])]
    rows = {row[0]: row for row in rows_of(path)}
    assert Counter(row[0] for row in rows_of(path)).most_common(1)[0][1] == 1
    for _, key, _, ts, _ in acknowledged:
        # The greatest ordering value wins: an acknowledged row is there, or a later one of its key is.
        assert rows[key][2] >= int(ts)
    assert not state.timeline.pending
    # A writer killed inside a storage operation leaves a file without a name, which is swept when it is old.
    assert {name for name in leftovers(path) if not name.endswith(".tmp")} == set()
    conflicts = Counter(line for found in lines.values() for line in found if line.startswith("conflict"))
    assert not conflicts, conflicts
    assert all(found for found in lines.values()), "everybody makes progress"
    print({number: len(found) for number, found in lines.items()}, "commits of each writer")


@pytest.mark.parametrize("contended", [False, True], ids=["disjoint", "contended"])
def test_sixteen_processes_lose_nothing_and_double_nothing(tmp_path, contended):
    run(tmp_path, processes=16, commits=3, contended=contended, strikes=6)


@pytest.mark.parametrize("table_type", TYPES)
def test_sixteen_processes_keep_the_metadata_table(tmp_path, table_type):
    run(tmp_path, processes=16, commits=2, contended=True, strikes=6, indexed=True, table_type=table_type)


PROCESSES = int(os.environ.get("WRITER_PROCESSES", 64))
COMMITS = int(os.environ.get("WRITER_COMMITS", 10_000))
STRIKES = int(os.environ.get("WRITER_STRIKES", 500))


@pytest.mark.torture
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("contended", [False, True], ids=["disjoint", "contended"])
def test_sixty_four_processes_and_ten_thousand_commits(tmp_path, contended, table_type):
    commits = -(-COMMITS // PROCESSES)
    run(
        tmp_path,
        processes=PROCESSES,
        commits=commits,
        contended=contended,
        strikes=STRIKES,
        table_type=table_type,
    )
