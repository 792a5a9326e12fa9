"""What a batch takes: limits alone and together, over any commits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.config.stream_options import StreamLimits, StreamOptions
from drawstring.errors import InvalidInput, InvalidOption
from drawstring.model.file_group import FileGroupId
from drawstring.planning.streams.admission import Amount, StreamCommit, next_offset, remaining, total, waits
from drawstring.planning.streams.offsets import StreamOffset

amounts = st.builds(Amount, st.integers(1, 3), st.integers(0, 100), st.integers(0, 50))
limits = st.builds(StreamLimits, *[st.none() | st.integers(1, most) for most in (6, 250, 120)])


@st.composite
def histories(draw: st.DrawFn) -> list[StreamCommit]:
    sizes = draw(st.lists(st.lists(amounts, max_size=6), max_size=8))
    return [
        StreamCommit(
            f"{2026010100000000 + number}",
            f"{2026010100000100 + number}",
            tuple((FileGroupId("p", f"f{index}"), amount) for index, amount in enumerate(groups)),
        )
        for number, groups in enumerate(sizes)
    ]


def pieces(commits, limit):
    """The groups of each batch, as (commit, group) pairs."""
    start, found = StreamOffset(), []
    while (end := next_offset(commits, start, limit)) != start:
        left = {c.requested_time: c for c in remaining(commits, end)}
        before = [(c.requested_time, g, a) for c in remaining(commits, start) for g, a in c.groups]
        after = {(c.requested_time, g) for c in left.values() for g, _ in c.groups}
        found.append([entry for entry in before if entry[:2] not in after])
        start = StreamOffset.from_json(end.to_json())
    return found


@settings(deadline=None)
@given(histories(), limits)
def test_every_group_of_every_commit_is_in_exactly_one_batch_and_in_order(commits, limit):
    delivered = [entry[:2] for batch in pieces(commits, limit) for entry in batch]
    assert delivered == [(c.requested_time, group) for c in commits for group, _ in c.groups]


@settings(deadline=None)
@given(histories(), limits)
def test_no_batch_exceeds_a_limit_except_by_one_group_that_does_alone(commits, limit):
    for batch in pieces(commits, limit):
        assert batch
        assert len(batch) == 1 or total(amount for *_, amount in batch).fits(limit)


@settings(deadline=None)
@given(histories(), limits)
def test_a_commit_that_fits_is_not_divided(commits, limit):
    for batch in pieces(commits, limit):
        for commit in commits:
            taken = sum(time == commit.requested_time for time, *_ in batch)
            assert taken in (0, len(commit.groups)) or not commit.amount.fits(limit)


@settings(deadline=None)
@given(histories())
def test_without_limits_one_batch_takes_everything(commits):
    assert len(pieces(commits, StreamLimits())) == bool(any(c.groups for c in commits))


def test_commits_of_table_services_make_no_batch():
    service = StreamCommit("20260101000000001", "20260101000000002")
    assert next_offset([service], StreamOffset(), StreamLimits()) == StreamOffset()
    data = StreamCommit("20260101000000003", "20260101000000004", ((FileGroupId("", "f"), Amount(1)),))
    assert next_offset([service, data], StreamOffset(), StreamLimits()) == StreamOffset(data.time)


def test_a_batch_waits_for_rows_but_not_longer_than_told():
    limit = StreamOptions.of({"minRowsPerTrigger": "10", "maxtriggerdelayms": 1000}).limits
    assert waits(Amount(rows=9), limit, waited_ms=999)
    assert not waits(Amount(rows=10), limit, waited_ms=0)
    assert not waits(Amount(rows=0), limit, waited_ms=1000)
    assert not waits(Amount(rows=0), StreamLimits(), waited_ms=0)


@pytest.mark.parametrize("key", ["read.stream.minRowsPerTrigger", "maxTriggerDelayMs"])
def test_rows_to_wait_for_and_a_delay_are_given_together(key):
    with pytest.raises(InvalidOption, match="both or neither") as caught:
        StreamOptions.of({key: "5"})
    assert caught.value.condition == "CONTRADICTING_OPTIONS"


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", ""])
def test_a_limit_is_a_number_above_zero(value):
    with pytest.raises(InvalidOption, match="above 0"):
        StreamOptions.of({"maxFilesPerTrigger": value})


def test_offsets_are_those_of_hudi_and_say_more_only_inside_a_commit():
    assert StreamOffset("20261115204643295").to_json() == '{"offsetCommitTime":"20261115204643295"}'
    assert StreamOffset().to_json() == '{"offsetCommitTime":"00000000000000"}'
    divided = StreamOffset("20261115204643295", commit="20261115204643300", done=3)
    assert StreamOffset.from_json(divided.to_json()) == divided


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"offsetCommitTime":5}', '{"offsetCommitTime":"soon"}', "7"]
)
def test_what_is_no_offset_is_refused(text):
    with pytest.raises(InvalidInput, match="expected") as caught:
        StreamOffset.from_json(text)
    assert caught.value.condition == "INVALID_STREAM_OFFSET"
