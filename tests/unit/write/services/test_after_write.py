"""Services after a write: by Hudi's options, in Hudi's order, and never to the harm of the write."""

from __future__ import annotations

import logging

import pytest

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.errors import InvalidOption
from drawstring.model.instant import Action
from drawstring.storage import LocalStorage
from drawstring.write.services import after_write
from drawstring.write.services.after_write import services_after_write
from drawstring.write.table_facts import load_state
from tests.small_writes import new_table, rows_of, write
from tests.unit.write.services import test_compacting
from tests.unit.write.services.test_archiving import FEW


def actions(storage):
    return [i.action for i in load_state(storage).timeline.ascending_instants]


def test_a_table_that_is_written_often_stays_small(tmp_path):
    storage = new_table(tmp_path / "t")
    results = [write(storage, [("1", "oslo", n, f"v{n}")], options=FEW) for n in range(1, 15)]
    assert rows_of(tmp_path / "t") == [("1", "oslo", 14, "v14")]
    assert len(list((tmp_path / "t" / "oslo").glob("*.parquet"))) == 3
    assert len(load_state(storage).timeline.completed_writes) in (4, 5)
    names = [outcome.service for result in results for outcome in result.services]
    assert set(names) == {"clean", "archive"}
    assert results[-1].services[0].result.files_deleted == 1


def test_by_default_ten_commits_are_retained_and_thirty_stay_active(tmp_path):
    storage = new_table(tmp_path / "t")
    for n in range(1, 33):
        write(storage, [("1", "oslo", n, f"v{n}")])
    assert len(list((tmp_path / "t" / "oslo").glob("*.parquet"))) == 11
    assert len(load_state(storage).timeline.completed_writes) in (20, 21)


@pytest.mark.parametrize(
    "off",
    [
        {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"},
        {"hoodie.table.services.enabled": "false"},
    ],
)
def test_what_is_turned_off_does_not_run(tmp_path, off):
    storage = new_table(tmp_path / "t")
    for n in range(1, 8):
        assert write(storage, [("1", "oslo", n, f"v{n}")], options={**FEW, **off}).services == ()
    assert Action.CLEAN not in actions(storage)
    assert len(actions(storage)) == 7


def test_a_service_that_fails_is_told_and_the_write_stands(tmp_path, monkeypatch, caplog):
    storage = new_table(tmp_path / "t")
    for n in range(1, 6):
        write(storage, [("1", "oslo", n, f"v{n}")], options=FEW)

    def fail(*_, **__):
        raise OSError("the disk is broken")

    monkeypatch.setattr(after_write.cleaning, "clean", fail)
    with caplog.at_level(logging.WARNING):
        result = write(storage, [("1", "oslo", 9, "last")], options=FEW)
    assert result.instant
    assert rows_of(tmp_path / "t") == [("1", "oslo", 9, "last")]
    assert [(o.service, str(o.error)) for o in result.services if o.error] == [
        ("clean", "the disk is broken")
    ]
    assert "is committed, but the clean after it failed" in caplog.text
    monkeypatch.undo()
    (again,) = write(storage, [("1", "oslo", 10, "x")], options=FEW).services
    assert again.error is None
    assert again.service == "clean"


def options(**given):
    return ServiceOptions.of({f"hoodie.compact.{k.replace('_', '.')}": v for k, v in given.items()})


def test_compactions_are_scheduled_or_run_when_they_are_due(tmp_path):
    table = test_compacting.table_of(tmp_path)
    storage = table.storage
    assert services_after_write(storage, options(inline="true")) == ()
    assert services_after_write(storage, options(inline_max_delta_commits=2)) == ()
    due = {"inline_max_delta_commits": 2}
    (scheduled,) = services_after_write(storage, options(schedule_inline="true", **due))
    assert scheduled.result.compactions[0].completion_time is None
    assert services_after_write(storage, options(schedule_inline="true", **due)) == ()
    (ran,) = services_after_write(storage, options(inline="true", **due))
    assert ran.result.compactions[0].completion_time
    assert test_compacting.rows_of(tmp_path) == test_compacting.EXPECTED


def test_services_of_copy_on_write_tables_leave_compaction_out(tmp_path):
    storage = new_table(tmp_path / "t")
    result = write(storage, [("1", "oslo", 1, "a")], options={"hoodie.compact.inline": "true"})
    assert result.services == ()


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ({"hoodie.keep.min.commits": 9, "hoodie.keep.max.commits": 9}, "CONTRADICTING_OPTIONS"),
        ({"hoodie.compact.inline": True, "hoodie.compact.schedule.inline": True}, "CONTRADICTING_OPTIONS"),
        ({"hoodie.compaction.strategy": "com.example.Mine"}, "OPTION_NOT_SUPPORTED"),
        ({"hoodie.clean.policy": "KEEP_ALL"}, "INVALID_OPTION_VALUE"),
        ({"hoodie.cleaner.commits.retained": 0}, "INVALID_OPTION_VALUE"),
        ({"hoodie.write.empty.clean.interval.hours": 0}, "INVALID_OPTION_VALUE"),
        ({"hoodie.compact.inline.trigger.strategy": "SOMETIMES"}, "INVALID_OPTION_VALUE"),
    ],
)
def test_options_that_make_no_sense_are_named(given, condition):
    with pytest.raises(InvalidOption) as caught:
        ServiceOptions.of(given)
    assert caught.value.condition == condition


def test_strategies_are_taken_by_class_and_by_name():
    package = "org.apache.hudi.table.action.compact.strategy."
    for name in ("LogFileNumBasedCompactionStrategy", f"{package}LogFileNumBasedCompactionStrategy"):
        found = ServiceOptions.of({"hoodie.compaction.strategy": name}).compact.strategy
        assert found == "LogFileNumBasedCompactionStrategy"
    assert ServiceOptions.of({"hoodie.datasource.compaction.async.enable": "false"}).compact.inline


def test_the_result_tells_rows_files_bytes_and_the_time_of_each_step(tmp_path, caplog):
    storage = new_table(tmp_path / "t")
    with caplog.at_level(logging.INFO, logger="drawstring.write.pipeline"):
        result = write(storage, [("1", "oslo", 1, "a"), ("2", "rome", 1, "b")])
    assert (result.inserted, result.files_written) == (2, 2)
    assert result.bytes_written == sum(p.stat().st_size for p in (tmp_path / "t").glob("*/*.parquet"))
    wanted = ["beginning", "making keys", "counting rows", "finding keys", "writing files", "committing"]
    assert [name for name in result.seconds if name in wanted] == wanted
    assert all(seconds >= 0 for seconds in result.seconds.values())
    assert "2 rows inserted" in caplog.text
    assert "writing files" in caplog.text
    state = load_state(LocalStorage(str(tmp_path / "t")))
    (commit,) = state.timeline.completed_writes
    from drawstring.timeline.commit_metadata import parse_record

    content = storage.read(f".hoodie/timeline/{commit.file_name}")
    for stats in parse_record(content, source="x")["partitionToWriteStats"].values():
        for stat in stats:
            assert stat["totalWriteBytes"] == stat["fileSizeInBytes"] > 0
            assert stat["runtimeStats"]["totalCreateTime"] >= 0 == stat["runtimeStats"]["totalUpsertTime"]
    assert drawstring.open_table(str(tmp_path / "t")).timeline.completed_writes
