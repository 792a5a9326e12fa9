"""Cleans as they run: on the timeline, on storage, beside readers, and where somebody else has begun one."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.errors import DrawstringError, UnsupportedTable
from drawstring.formats import avro_schemas
from drawstring.formats.avro_schemas import encode_container
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.services.clean import encode_clean_plan
from drawstring.write.services.clean_input import planned
from drawstring.write.services.cleaning import clean, plan_of_clean
from drawstring.write.table_facts import load_state
from tests.small_writes import files_of, leftovers, new_table, rows_of, rows_of_hudi_rs, write

QUIET = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    # Without a metadata table, whose compactions hold archival back, and which lists what would be walked.
    "hoodie.metadata.enable": "false",
}
ROWS = [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")]
CLOCK = 2_000_000_000_000


def options(**given):
    return ServiceOptions.of({key.replace("_", "."): value for key, value in given.items()})


TWO = options(hoodie_clean_commits_retained=2)


def table_of(path, updates=5):
    """A table whose group in oslo has versions 0 to `updates`; that in rome has one."""
    storage = new_table(path)
    write(storage, ROWS, options=QUIET)
    for number in range(1, updates + 1):
        write(storage, [("1", "oslo", 1 + number, f"a{number}")], options=QUIET)
    return storage


def data_files(path, partition="oslo"):
    return sorted(name for name in files_of(path) if name.startswith(f"{partition}/") and ".parquet" in name)


def instants(path, action):
    timeline = load_state(LocalStorage(str(path))).timeline
    return [i for i in timeline.ascending_instants if i.action is action]


def test_a_clean_by_commits_deletes_what_no_retained_state_needs(tmp_path):
    storage = table_of(tmp_path / "t")
    before, files = rows_of(tmp_path / "t"), data_files(tmp_path / "t")
    assert len(files) == 6
    told = plan_of_clean(storage, TWO)
    assert told.is_dry_run
    assert data_files(tmp_path / "t") == files
    assert not instants(tmp_path / "t", Action.CLEAN)
    result = clean(storage, TWO)
    assert dict(result.files) == dict(told.files)
    # Two states can be read as they were, of which the older needs the version before it.
    assert result.files_deleted == 3
    assert len(data_files(tmp_path / "t")) == 3
    assert data_files(tmp_path / "t", "rome")
    (done,) = instants(tmp_path / "t", Action.CLEAN)
    assert done.is_completed
    assert done.requested_time == result.instant
    assert rows_of(tmp_path / "t") == before == rows_of_hudi_rs(tmp_path / "t")
    assert leftovers(tmp_path / "t") == set()
    again = clean(storage, TWO)
    assert again.instant is None
    assert again.files_deleted == 0


def test_retained_states_are_read_as_they_were_and_older_ones_end_in_a_named_error(tmp_path):
    storage = table_of(tmp_path / "t")
    table = drawstring.open_table(str(tmp_path / "t"))
    writes = [i.requested_time for i in table.timeline.completed_writes]
    states = {w: table.snapshot(as_of=w).scan().to_arrow().num_rows for w in writes}
    reader = table.snapshot(as_of=writes[1])
    retained = table.snapshot(as_of=writes[-2])
    result = clean(storage, TWO)
    assert result.earliest_retained == writes[-2]
    assert retained.scan().to_arrow().num_rows == states[writes[-2]]
    for write_ in writes[-2:]:
        assert (
            drawstring.open_table(str(tmp_path / "t")).snapshot(as_of=write_).scan().to_arrow().num_rows == 2
        )
    with pytest.raises(DrawstringError) as caught:
        reader.scan().to_arrow()
    assert caught.value.condition
    assert "clean" in str(caught.value).lower()


def test_a_clean_by_versions_and_by_hours(tmp_path):
    storage = table_of(tmp_path / "t")
    versions = options(
        hoodie_cleaner_policy="keep_latest_file_versions", hoodie_cleaner_fileversions_retained=2
    )
    assert plan_of_clean(storage, versions).files_deleted == 4
    hours = options(hoodie_clean_policy="KEEP_LATEST_BY_HOURS", hoodie_cleaner_hours_retained=1)
    assert plan_of_clean(storage, hours).files_deleted == 0
    writes = load_state(storage).timeline.completed_writes
    late = clean(storage, hours, clock=lambda: CLOCK)
    assert late.files_deleted == 0  # every write is older: no state is retained, as in Hudi
    assert writes
    assert clean(storage, versions).files_deleted == 4
    assert rows_of(tmp_path / "t") == [("1", "oslo", 6, "a5"), ("2", "rome", 1, "b")]


def test_an_incremental_clean_looks_only_where_slices_were_replaced(tmp_path):
    storage = table_of(tmp_path / "t")
    clean(storage, TWO)
    seen = []

    class Counting(LocalStorage):
        def list(self, path="", *, recursive=False):
            seen.append(path)
            return super().list(path, recursive=recursive)

    write(storage, [("7", "kiel", 1, "new")], "insert", options=QUIET)
    write(storage, [("8", "kiel", 1, "new")], "bulk_insert", options=QUIET)
    result = clean(Counting(str(tmp_path / "t")), TWO)
    assert result.files_deleted == 2
    assert "rome" not in seen
    assert "oslo" in seen
    full = options(hoodie_clean_commits_retained=2, hoodie_cleaner_incremental_mode="false")
    clean(Counting(str(tmp_path / "t")), full)
    assert "rome" in seen


def test_replaced_groups_go_when_nobody_can_ask_for_them(tmp_path):
    storage = table_of(tmp_path / "t", updates=0)
    write(storage, [("3", "oslo", 1, "c")], "insert_overwrite", options=QUIET)
    for number in range(3):
        write(storage, [("2", "rome", 2 + number, "b")], options=QUIET)
    replaced = data_files(tmp_path / "t")
    assert len(replaced) == 2
    clean(storage, TWO)
    assert len(data_files(tmp_path / "t")) == 1
    assert rows_of(tmp_path / "t") == [("2", "rome", 4, "b"), ("3", "oslo", 1, "c")]


def test_a_savepoint_keeps_its_files_until_it_is_gone(tmp_path):
    storage = table_of(tmp_path / "t")
    state = load_state(storage)
    first = state.timeline.completed_writes[0]
    kept = {
        path: {
            "partitionPath": path,
            "savepointDataFile": [s.name for s in state.metadata(first).stats if s.partition_path == path],
        }
        for path in ("oslo", "rome")
    }
    record = {
        "savepointedBy": "me",
        "savepointedAt": 1,
        "comments": "",
        "partitionMetadata": kept,
        "version": 1,
    }
    name = f".hoodie/timeline/{first.requested_time}_{first.requested_time}.savepoint"
    storage.write(name, encode_container(avro_schemas.SAVEPOINT, record))
    assert clean(storage, TWO).files_deleted == 2
    assert (
        drawstring.open_table(str(tmp_path / "t"))
        .snapshot(as_of=first.requested_time)
        .scan()
        .to_arrow()
        .num_rows
        == 2
    )
    storage.delete(name)
    write(storage, [("1", "oslo", 9, "z")], options=QUIET)
    # The incremental clean alone would not look at what the first commit wrote.
    assert clean(storage, TWO).files_deleted == 2


def test_a_pending_clean_of_anybody_is_finished(tmp_path):
    storage = table_of(tmp_path / "t")
    plan = planned(load_state(storage), TWO.clean, clock=lambda: CLOCK)
    instant = "20380101000000000"
    storage.write(f".hoodie/timeline/{instant}.clean.requested", encode_clean_plan(plan, "/somewhere/else"))
    result = clean(storage, TWO)
    assert result.finished == (instant,)
    assert result.instant is None
    assert len(data_files(tmp_path / "t")) == 3
    (done,) = instants(tmp_path / "t", Action.CLEAN)
    assert done.is_completed
    assert done.requested_time == instant
    assert drawstring.open_table(str(tmp_path / "t")).state().reader.cleaned_files(done) == {
        f"oslo/{name}" for name in plan.files["oslo"]
    }


def test_a_clean_that_somebody_else_completed_meanwhile_is_completed_once(tmp_path):
    from drawstring.write.slots import Decision, Step

    storage = table_of(tmp_path / "t", updates=0)
    ours, theirs = (f".hoodie/timeline/20380101000000000_2038010100000000{n}.clean" for n in (1, 2))
    decision = Decision("20380101000000000", (Step.create(ours, b"x"),), creates=ours)
    assert not decision.is_carried_out(storage)
    storage.write(theirs, b"y")
    assert decision.is_carried_out(storage)


def test_files_that_cannot_be_deleted_are_told_and_stay_known(tmp_path):
    storage = table_of(tmp_path / "t")

    class Denied(LocalStorage):
        def delete(self, path, *, recursive=False):
            if path.endswith(".parquet"):
                raise PermissionError(path)
            super().delete(path, recursive=recursive)

    result = clean(Denied(str(tmp_path / "t")), TWO)
    assert len(result.failed["oslo"]) == 3
    assert result.files_deleted == 0
    assert len(data_files(tmp_path / "t")) == 6
    assert storage


def test_the_trigger_counts_commits_since_the_last_clean(tmp_path):
    storage = table_of(tmp_path / "t")
    seldom = options(hoodie_clean_commits_retained=2, hoodie_clean_max_commits=3)
    assert clean(storage, seldom, only_if_due=True).files_deleted == 3
    write(storage, [("1", "oslo", 9, "z")], options=QUIET)
    write(storage, [("1", "oslo", 10, "z")], options=QUIET)
    assert clean(storage, seldom, only_if_due=True).instant is None
    write(storage, [("1", "oslo", 11, "z")], options=QUIET)
    assert clean(storage, seldom, only_if_due=True).files_deleted == 3


def test_one_clean_goes_no_further_than_it_may(tmp_path):
    storage = table_of(tmp_path / "t")
    slow = options(hoodie_clean_commits_retained=2, hoodie_clean_max_commits_to_clean=2)
    assert [clean(storage, slow).files_deleted for _ in range(3)] == [1, 2, 0]


def test_a_clean_of_nothing_is_recorded_when_it_was_asked_for(tmp_path):
    storage = new_table(tmp_path / "t")
    for number in range(4):
        write(storage, [(str(number), f"p{number}", 1, "a")], "bulk_insert", options=QUIET)
    assert clean(storage, TWO).instant is None
    asked = options(hoodie_clean_commits_retained=2, hoodie_write_empty_clean_interval_hours=1)
    assert clean(storage, asked).instant is not None
    assert clean(storage, asked).instant is None


def test_tables_of_older_versions_are_refused_by_name(tmp_path):
    storage = table_of(tmp_path / "t", updates=0)
    place = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    place.write_text(place.read_text().replace("hoodie.table.version=9", "hoodie.table.version=6"))
    with pytest.raises(UnsupportedTable) as caught:
        clean(storage, TWO)
    assert caught.value.condition == "WRITE_TABLE_VERSION"
