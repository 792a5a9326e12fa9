from __future__ import annotations

from drawstring.model.file_group import FileGroupId
from drawstring.model.instant import Action, Instant, State
from drawstring.timeline.timeline import Timeline
from drawstring.view.file_system_view import Visibility, visible_slices

GROUP = FileGroupId("p", "f-0")


def ts(number: int) -> str:
    return f"202601010000{number:05d}"


def timeline(*completed: tuple[int, int], pending: dict[int, Action] | None = None) -> Timeline:
    instants = [
        Instant(ts(requested), Action.DELTACOMMIT, State.COMPLETED, ts(done)) for requested, done in completed
    ]
    instants += [Instant(ts(number), action, State.INFLIGHT) for number, action in (pending or {}).items()]
    return Timeline.of(instants)


def base(number: int, token: str = "0-0-0") -> tuple[str, int]:
    return f"f-0_{token}_{ts(number)}.parquet", 10


def log(number: int, version: int = 1) -> tuple[str, int]:
    return f".f-0_{ts(number)}.log.{version}_0-0-0", 5


def only_slice(files, visibility):
    found = visible_slices("p", files, visibility)
    assert len(found) == 1
    logs = [(int(log.instant[-5:]), log.version) for log in found[0].log_files]
    return (int(found[0].base_file.instant[-5:]) if found[0].base_file else None), logs


class TestLogsWithTheirOwnInstant:
    def test_logs_follow_their_base_in_order_of_instant_and_version(self):
        view = Visibility(timeline((1, 2), (3, 4), (5, 6)), by_completion=True)
        files = [log(5, 10), log(5, 9), base(1), log(3)]
        assert only_slice(files, view) == (1, [(3, 1), (5, 9), (5, 10)])

    def test_a_log_completed_before_a_compaction_belongs_to_the_slice_before_it(self):
        view = Visibility(timeline((1, 2), (3, 4), (5, 6), (7, 8)), by_completion=True)
        assert only_slice([base(1), log(3), base(5), log(7)], view) == (5, [(7, 1)])

    def test_a_log_that_overlaps_a_compaction_belongs_to_the_slice_after_it(self):
        view = Visibility(timeline((1, 2), (3, 9), (5, 6)), by_completion=True)
        assert only_slice([base(1), log(3), base(5)], view) == (5, [(3, 1)])

    def test_logs_after_a_pending_compaction_are_merged_with_the_slice_before(self):
        line = timeline((1, 2), (3, 4), (6, 7), pending={5: Action.COMPACTION})
        view = Visibility(line, by_completion=True, compactions={GROUP: ts(5)})
        assert only_slice([base(1), log(3), base(5), log(6)], view) == (1, [(3, 1), (6, 1)])

    def test_logs_of_instants_that_did_not_complete_are_not_read(self):
        view = Visibility(timeline((1, 2), pending={3: Action.DELTACOMMIT}), by_completion=True)
        assert only_slice([base(1), log(3)], view) == (1, [])

    def test_a_group_may_have_logs_only(self):
        view = Visibility(timeline((1, 2), (3, 4)), by_completion=True)
        assert only_slice([log(3), log(1)], view) == (None, [(1, 1), (3, 1)])

    def test_time_travel_sees_neither_later_bases_nor_later_logs(self):
        line = timeline((1, 2), (3, 4), (5, 6), (7, 8))
        view = Visibility(line, by_completion=True, max_instant=ts(3))
        assert only_slice([base(1), log(3), base(5), log(7)], view) == (1, [(3, 1)])

    def test_old_logs_find_their_slice_by_the_archive(self):
        view = Visibility(
            timeline((5, 6), (7, 8)), by_completion=True, archived_completion={ts(3): ts(4)}.get
        )
        assert only_slice([base(1), log(3), base(5), log(7)], view) == (5, [(7, 1)])


class TestLogsWithTheBaseInstant:
    def test_logs_belong_to_the_base_they_name(self):
        view = Visibility(timeline((1, 1), (3, 3), (5, 5)), by_completion=False)
        assert only_slice([base(1), log(1), base(5), log(5, 2), log(5)], view) == (5, [(5, 1), (5, 2)])

    def test_logs_that_name_a_pending_compaction_are_merged_with_the_slice_before(self):
        line = timeline((1, 1), (6, 6), pending={5: Action.COMPACTION})
        view = Visibility(line, by_completion=False, compactions={GROUP: ts(5)})
        assert only_slice([base(1), log(1), base(5), log(5)], view) == (1, [(1, 1), (5, 1)])


def test_base_files_of_instants_that_did_not_complete_are_not_read():
    view = Visibility(timeline((1, 2), pending={3: Action.COMMIT}), by_completion=True)
    assert only_slice([base(1), base(3)], view) == (1, [])


def test_replaced_groups_vanish_from_their_replacement_on():
    line = timeline((1, 2), (3, 4))
    view = Visibility(line, by_completion=True, replaced={GROUP: ts(3)})
    assert visible_slices("p", [base(1)], view) == ()
    before = Visibility(line, by_completion=True, replaced={GROUP: ts(3)}, max_instant=ts(1))
    assert only_slice([base(1)], before) == (1, [])


def test_of_retried_files_the_one_that_the_commit_names_is_read():
    named = base(1, "0-0-1")[0]
    view = Visibility(timeline((1, 2)), by_completion=True, committed_name=lambda instant, file_id: named)
    found = visible_slices("p", [base(1, "9-9-9"), base(1, "0-0-1")], view)
    assert [part.base_file.name for part in found if part.base_file] == [named]


def test_change_data_and_foreign_files_are_no_logs():
    view = Visibility(timeline((1, 2)), by_completion=True)
    files = [base(1), (log(1)[0] + ".cdc", 1), (".hoodie_partition_metadata", 1), ("._x", 1), ("x.tmp", 1)]
    assert only_slice(files, view) == (1, [])
