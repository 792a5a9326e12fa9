"""Archival: which instants go, and that the history tells of them afterwards."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

from drawstring.model.instant import Action, Instant, State
from drawstring.storage.memory import MemoryStorage
from drawstring.timeline.history import History
from drawstring.timeline.timeline import Timeline
from drawstring.write.services.archive import (
    ArchiveRetention,
    archive,
    merge_level,
    plan_archive,
    read_version,
)
from tests.support.hand_table import HandTable
from tests.unit.write.services.test_clean import completed, pending, time

SCHEMA = pa.schema([("id", pa.int32()), ("p", pa.string()), ("ts", pa.int64())])
FEW = ArchiveRetention(2, 3)


def many(count: int, *others: Instant) -> Timeline:
    taken = {other.requested_time for other in others if not other.is_completed}
    return Timeline.of([*(completed(n) for n in range(1, count + 1) if time(n) not in taken), *others])


def test_twenty_stay_when_there_are_more_than_thirty():
    assert plan_archive(many(30), ArchiveRetention()) == ()
    found = plan_archive(many(31), ArchiveRetention())
    assert [instant.requested_time for instant in found] == [time(n) for n in range(1, 12)]


def test_pending_instants_savepoints_and_the_metadata_table_hold_back():
    # The last write before one that is pending says what the pending one began with.
    assert plan_archive(many(6, pending(3)), FEW) == (completed(1),)
    assert plan_archive(many(6, pending(1)), FEW) == ()
    saved = Instant(time(2), Action.SAVEPOINT, State.COMPLETED, time(9))
    assert plan_archive(many(6, saved), FEW) == (completed(1),)
    beyond = ArchiveRetention(2, 3, beyond_savepoint=True)
    assert plan_archive(many(6, saved), beyond) == tuple(completed(n) for n in (1, 3, 4))
    assert plan_archive(many(6), FEW, metadata_compacted="") == ()
    assert plan_archive(many(6), FEW, metadata_compacted=time(4)) == tuple(completed(n) for n in range(1, 5))
    assert plan_archive(many(6), FEW, metadata_compacted=time(2)) == tuple(completed(n) for n in (1, 2))
    assert plan_archive(many(6), FEW, limits=[time(3)]) == tuple(completed(n) for n in (1, 2))


def test_what_a_cleaner_keeps_stays_active():
    assert ArchiveRetention().beside(10) == ArchiveRetention()
    assert ArchiveRetention().beside(40) == ArchiveRetention(41, 51)


def test_cleans_and_rollbacks_go_along_but_not_the_newest_clean():
    others = [completed(n, Action.CLEAN) for n in (101, 102)]
    early = [Instant(f"{time(1)}", Action.CLEAN, State.COMPLETED, time(2))]
    rolled = Instant(time(0), Action.ROLLBACK, State.COMPLETED, time(1))
    found = plan_archive(Timeline.of([*many(6).ascending_instants, *others, rolled]), FEW)
    assert rolled in found
    assert not set(others) & set(found)
    only = plan_archive(Timeline.of([*(completed(n) for n in range(2, 8)), *early]), FEW)
    assert early[0] not in only


@pytest.fixture
def table():
    return HandTable(MemoryStorage(f"memory://{uuid.uuid4()}"), SCHEMA).create()


def commits(table, count):
    for number in range(count):
        instant = table.next_time()
        table.commit(instant, [table.base_file(instant, "a", [{"id": number, "p": "a", "ts": 1}])])


def test_archived_writes_are_found_in_the_history(table):
    commits(table, 6)
    before = table.timeline.completed_writes
    chosen = plan_archive(table.timeline, FEW)
    steps = archive(table.storage, table.config, chosen)
    steps.carry_out(table.storage)
    steps.carry_out(table.storage)
    assert table.timeline.completed_writes == before[4:]
    writes = History(table.storage, table.config).writes
    assert [(w.instant.requested_time, w.instant.completion_time) for w in writes] == [
        (i.requested_time, i.completion_time) for i in before[:4]
    ]
    assert all(w.metadata.stats for w in writes)
    assert not table.timeline.pending
    commits(table, 6)
    archive(table.storage, table.config, plan_archive(table.timeline, FEW)).carry_out(table.storage)
    assert len(History(table.storage, table.config).writes) == 10
    assert read_version(table.storage, table.config).number == 2
    assert archive(table.storage, table.config, ()).creates == ()


def test_a_crash_at_any_step_loses_no_instant(table):
    commits(table, 6)
    everything = {i.requested_time for i in table.timeline.completed_writes}
    steps = archive(table.storage, table.config, plan_archive(table.timeline, FEW))

    def known():
        active = {i.requested_time for i in table.timeline.completed_writes}
        return active | {w.instant.requested_time for w in History(table.storage, table.config).writes}

    for file in (*steps.creates, *steps.finally_replaces):
        table.storage.write(file.path, file.content)
        assert known() == everything
    for path in steps.removes:
        table.storage.delete(path)
        assert known() == everything
        assert not table.timeline.pending


def test_ten_files_of_a_level_become_one_of_the_next(table):
    for _ in range(10):
        commits(table, 1)
        instants = table.timeline.completed_writes
        archive(table.storage, table.config, instants).carry_out(table.storage)
        if _ < 9:
            assert merge_level(table.storage, table.config).creates == ()
    writes = History(table.storage, table.config).writes
    merge_level(table.storage, table.config).carry_out(table.storage)
    version = read_version(table.storage, table.config)
    assert [name.rsplit("_", 1)[1] for name, _ in version.files] == ["1.parquet"]
    assert History(table.storage, table.config).writes == writes
    manifests = [e.name for e in table.storage.list(table.config.history_directory) if "manifest" in e.name]
    assert len(manifests) <= 4
