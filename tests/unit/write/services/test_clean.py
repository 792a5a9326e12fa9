"""What a clean deletes, and what it must not."""

from __future__ import annotations

import io

import fastavro
import pytest

from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.model.instant import Action, Instant, State
from drawstring.timeline.commit_metadata import parse_cleaned_files
from drawstring.timeline.timeline import Timeline
from drawstring.write.services.clean import (
    CleanInput,
    CleanPolicy,
    CleanRetention,
    earliest_retained,
    encode_clean,
    encode_clean_plan,
    plan_clean,
)

GROUP = FileGroupId("p", "f-0")


def time(number: int) -> str:
    return f"2026010100000{number:04d}"


def completed(number: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(time(number), action, State.COMPLETED, time(number))


def pending(number: int) -> Instant:
    return Instant(time(number), Action.COMMIT, State.INFLIGHT)


def piece(number: int, group: FileGroupId = GROUP, *, logs: tuple[int, ...] = ()) -> FileSlice:
    base = BaseFile(f"p/{group.file_id}_0-0-0_{time(number)}.parquet", 1, group.file_id, time(number))
    files = tuple(
        LogFile(f"p/.{group.file_id}_{time(n)}.log.1_0-0-0", 1, group.file_id, time(n), 1) for n in logs
    )
    return FileSlice(group, time(number), base, files)


def planned(slices, retention, timeline, **facts):
    ordered = sorted(slices, key=lambda s: (s.group.file_id, -int(s.base_instant)))
    return plan_clean(CleanInput(timeline, {"p": ordered}, **facts), retention)


def numbers(plan):
    """The numbers of the instants of the base files that go."""
    names = [name for names in plan.files.values() for name in names if name.endswith(".parquet")]
    return sorted(int(name.rsplit("_", 1)[1][: len(time(0))][-4:]) for name in names)


def test_commits_keep_the_slice_that_the_oldest_retained_state_needs():
    timeline = Timeline.of([completed(n) for n in range(1, 14)])
    retention = CleanRetention(commits=10)
    assert earliest_retained(timeline, retention) == completed(4)
    plan = planned([piece(1), piece(3, logs=(3,)), piece(7), piece(12)], retention, timeline)
    assert numbers(plan) == [1]
    assert plan.last_completed == time(13)
    assert planned([piece(1), piece(5)], retention, timeline).is_empty
    assert planned([piece(1)], retention, timeline).is_empty


def test_nothing_goes_until_there_are_more_commits_than_retained():
    timeline = Timeline.of([completed(n) for n in range(1, 11)])
    assert planned([piece(1), piece(2), piece(3)], CleanRetention(), timeline).is_empty


def test_pending_writes_keep_what_they_began_with():
    timeline = Timeline.of([*(completed(n) for n in range(1, 9) if n != 3), pending(3)])
    assert earliest_retained(timeline, CleanRetention(commits=2)) == completed(2)
    early = Timeline.of([*(completed(n) for n in range(2, 9)), pending(1)])
    assert earliest_retained(early, CleanRetention(commits=2)) is None
    assert planned([piece(2), piece(3)], CleanRetention(commits=2), early).is_empty


def test_hours_keep_what_is_young():
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    retention = CleanRetention(CleanPolicy.KEEP_LATEST_BY_HOURS)
    slices = [piece(6), piece(4), piece(2), piece(1)]
    plan = plan_clean(CleanInput(timeline, {"p": slices}), retention, oldest_time=time(4))
    # What the state at 4 was made of stays too.
    assert numbers(plan) == [1]
    assert plan_clean(CleanInput(timeline, {"p": slices}), retention, oldest_time=time(99)).is_empty


def test_versions_are_counted():
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    retention = CleanRetention(CleanPolicy.KEEP_LATEST_FILE_VERSIONS, file_versions=2)
    plan = planned([piece(n) for n in (1, 3, 5, 7)], retention, timeline)
    assert numbers(plan) == [1, 3]
    assert plan.earliest_retained is None


def test_logs_go_with_their_slice():
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    plan = planned([piece(1, logs=(2, 3)), piece(4), piece(6)], CleanRetention(commits=1), timeline)
    assert len(plan.files["p"]) == 4


def test_savepoints_and_pending_compactions_keep_files():
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    slices = [piece(n) for n in (1, 2, 3, 8)]
    retention = CleanRetention(commits=1)
    assert numbers(planned(slices, retention, timeline)) == [1, 2]
    saved = {"p": [slices[0].base_file.name]}
    assert numbers(planned(slices, retention, timeline, savepointed=saved)) == [2]
    assert numbers(planned(slices, retention, timeline, compactions={GROUP: time(3)})) == [1]


def test_replaced_groups_go_whole():
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    slices = [piece(1), piece(2)]
    late = planned(slices, CleanRetention(commits=2), timeline, replaced={GROUP: time(7)})
    assert numbers(late) == [1]
    plan = planned(slices, CleanRetention(commits=2), timeline, replaced={GROUP: time(3)})
    assert numbers(plan) == [1, 2]
    at_work = Timeline.of([*timeline.ascending_instants, pending(9)])
    busy = planned(slices, CleanRetention(commits=2), at_work, replaced={GROUP: time(3)})
    assert numbers(busy) == [1, 2]


@pytest.mark.parametrize("root", ["/t", "/t/"])
def test_plan_and_result_are_encoded_as_hudi_does(root):
    timeline = Timeline.of([completed(n) for n in range(1, 9)])
    plan = planned([piece(1), piece(2), piece(8)], CleanRetention(commits=2), timeline)
    (name,) = plan.files["p"]
    record = next(fastavro.reader(io.BytesIO(encode_clean_plan(plan, root))))
    assert record["earliestInstantToRetain"] == {
        "timestamp": time(7),
        "action": "commit",
        "state": "COMPLETED",
    }
    assert record["filePathsToBeDeletedPerPartition"] == {
        "p": [{"filePath": f"/t/p/{name}", "isBootstrapBaseFile": False}]
    }
    done = encode_clean(plan, time(9), millis=3, failed={})
    assert parse_cleaned_files(done, source="x") == {f"p/{name}"}
    failed = next(fastavro.reader(io.BytesIO(encode_clean(plan, time(9), millis=3, failed={"p": [name]}))))
    assert failed["totalFilesDeleted"] == 0
    assert failed["partitionMetadata"]["p"]["failedDeleteFiles"] == [name]
