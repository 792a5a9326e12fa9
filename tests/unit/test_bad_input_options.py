"""Options and arguments that make no sense: an error names the option, the value and what is allowed."""

from __future__ import annotations

import datetime as dt

import pytest

import drawstring
from drawstring.config.read_options import ReadOptions
from drawstring.errors import InvalidInput, InvalidOption
from tests.golden import harness

QUERY_TYPE = "hoodie.datasource.query.type"
BEGIN = "hoodie.datasource.read.begin.instanttime"
DELETE_FIELD, DELETE_MARKER = "hoodie.payload.delete.field", "hoodie.payload.delete.marker"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return harness.extract("v9_mor_commit_time", tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def first(path):
    """The instant of the first commit."""
    return drawstring.open_table(path).timeline.completed_writes[0].requested_time


def rows(source) -> int:
    return source.scan().to_arrow().num_rows


def test_a_snapshot_is_taken_as_the_options_say(path, first):
    table = drawstring.open_table(path)
    as_of = drawstring.open_table(path, options={"as.of.instant": first})
    assert rows(as_of.snapshot()) == rows(table.snapshot(first)) != rows(table.snapshot())
    assert as_of.explain().instant == first
    assert as_of.inspect().as_of == first
    newest = table.timeline.completed_writes[-1].requested_time
    assert rows(as_of.snapshot(newest)) == rows(table.snapshot())


def test_the_query_type_of_the_options_counts(path):
    table = drawstring.open_table(path)
    base_only = drawstring.open_table(path, options={QUERY_TYPE: "read_optimized"})
    assert base_only.snapshot().query_type == "read_optimized"
    assert base_only.snapshot(query_type="snapshot").query_type == "snapshot"
    ranged = drawstring.open_table(path, options={QUERY_TYPE: "incremental", BEGIN: "earliest"})
    assert rows(ranged.incremental()) == rows(table.incremental("earliest")) > 0
    assert ranged.schema == table.schema
    with pytest.raises(InvalidOption, match="incremental"):
        ranged.snapshot()


@pytest.mark.parametrize("moment", [20260101000000, 1.5, b"20260101000000", True, ["2026-01-01"]])
def test_a_time_of_another_type_is_refused_by_name(path, moment):
    table = drawstring.open_table(path)
    with pytest.raises(InvalidInput, match=f"as.of.instant.*{type(moment).__name__}"):
        table.snapshot(moment)
    with pytest.raises(InvalidInput, match=BEGIN):
        table.incremental(moment)


@pytest.mark.parametrize("moment", ["yesterday", "", "-5", "2026-02-30", "20260230000000", "12:00"])
def test_a_text_that_is_no_time_is_refused_with_the_option_that_holds_it(path, moment):
    table = drawstring.open_table(path, options={"as.of.instant": moment})
    with pytest.raises(InvalidInput, match=r"as\.of\.instant.*yyyy-MM-dd") as caught:
        table.snapshot()
    assert repr(moment) in str(caught.value)
    with pytest.raises(InvalidInput, match=r"read\.end\.instanttime"):
        table.incremental("earliest", moment)


def test_dates_and_datetimes_are_times(path):
    table = drawstring.open_table(path)
    assert rows(table.snapshot(dt.date(2001, 1, 1))) == 0
    assert rows(table.snapshot(dt.datetime(2100, 1, 1))) == rows(table.snapshot())


def test_an_incremental_read_without_begin_is_refused(path):
    with pytest.raises(InvalidOption, match=BEGIN) as caught:
        drawstring.open_table(path).incremental()
    assert caught.value.condition == "BEGIN_INSTANT_MISSING"


@pytest.mark.parametrize(
    "given",
    [
        {"as.of.instant": "2026-01-01", "timestampAsOf": "2026-01-02"},
        {"timestampasof": "2026-01-01", "versionasof": "20260102000000"},
        {QUERY_TYPE: "snapshot", "hoodie.datasource.view.type": "read_optimized"},
    ],
)
def test_one_option_with_two_values_is_refused(given):
    with pytest.raises(InvalidOption) as caught:
        ReadOptions.of(given)
    assert caught.value.condition == "CONTRADICTING_OPTIONS"
    assert all(word in str(caught.value) for pair in given.items() for word in pair)


def test_one_option_under_two_names_with_one_value_is_taken():
    given = {"as.of.instant": "2026-01-01", "timestampAsOf": "2026-01-01"}
    assert ReadOptions.of(given).as_of == "2026-01-01"


@pytest.mark.parametrize(
    "given", [{DELETE_FIELD: "s"}, {DELETE_MARKER: "D"}, {DELETE_FIELD: "s", DELETE_MARKER: ""}]
)
def test_half_a_delete_marker_is_refused(path, given):
    with pytest.raises(InvalidOption) as caught:
        drawstring.open_table(path, options=given)
    assert DELETE_FIELD in str(caught.value)
    assert DELETE_MARKER in str(caught.value)


@pytest.mark.parametrize("value", [5, None.__class__, "snapshto", "", "snapshot;", ["snapshot"]])
def test_a_query_type_that_is_none_is_refused_with_those_that_are(path, value):
    for attempt in (
        lambda: drawstring.open_table(path, options={QUERY_TYPE: value}),
        lambda: drawstring.open_table(path).snapshot(query_type=value),
    ):
        with pytest.raises(InvalidOption, match=f"{QUERY_TYPE}.*snapshot, read_optimized, incremental"):
            attempt()


@pytest.mark.parametrize("rows", [-1, 1.5, "3", None, True])
def test_a_limit_that_is_no_number_of_rows_is_refused(path, rows):
    with pytest.raises(InvalidInput, match="limit") as caught:
        drawstring.open_table(path).snapshot().scan().limit(rows)
    assert repr(rows) in str(caught.value)


@pytest.mark.parametrize("column", [1, None, ["id", "p"], b"id"])
def test_a_selection_of_something_else_than_names_is_refused(path, column):
    with pytest.raises(InvalidInput, match="names of columns"):
        drawstring.open_table(path).snapshot().scan().select("id", column)


def test_a_selection_by_one_text_is_not_taken_letter_by_letter(path):
    with pytest.raises(InvalidInput, match=r"\['id'\]"):
        drawstring.open_table(path).explain(select="id")


@pytest.mark.parametrize("condition", [5, None, ["id > 1"], {"id": 1}])
def test_a_condition_of_another_type_is_refused(path, condition):
    with pytest.raises(InvalidInput, match="expected SQL text"):
        drawstring.open_table(path).snapshot().scan().where(condition)


@pytest.mark.parametrize("uri", [None, 5, b"/data/t", "/data/\0t"])
def test_a_path_that_can_be_none_is_refused(uri):
    with pytest.raises(InvalidOption, match="base path"):
        drawstring.open_table(uri)


@pytest.mark.parametrize("argument", ["options", "session"])
def test_options_that_are_no_mapping_are_refused(path, argument):
    with pytest.raises(InvalidOption, match=f"{argument}.*mapping"):
        drawstring.open_table(path, **{argument: [QUERY_TYPE]})
