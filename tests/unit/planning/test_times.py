from __future__ import annotations

import datetime as dt

import pytest

from drawstring.errors import InvalidInput
from drawstring.planning.times import instant_time, just_before, moment_of


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("20260822103000", "20260822103000"),
        ("20260822103000123", "20260822103000123"),
        ("000", "000"),
        ("99999999999999", "99999999999999"),
        ("2026-08-22", "20260822000000000"),
        ("2026-08-22 10:30:00", "20260822103000000"),
        ("2026-08-22 10:30:00.5", "20260822103000500"),
        ("2026-08-22T10:30:00.123Z", "20260822103000123"),
        ("2026-08-22T12:30:00.123456789+02:00", "20260822103000123"),
        ("2026-08-22T12:30:00+0200", "20260822103000000"),
        (dt.date(2026, 8, 22), "20260822000000000"),
        (dt.datetime(2026, 8, 22, 10, 30, tzinfo=dt.timezone.utc), "20260822103000000"),
    ],
)
def test_all_of_hudis_formats(given, expected):
    assert instant_time(given, timezone="UTC") == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2026-08-22 10:30:00", "20260822103000999"),
        ("2026-08-22T10:30:00Z", "20260822103000999"),
        ("2026-08-22 10:30:00.5", "20260822103000500"),
        ("2026-08-22 10:30:00.000", "20260822103000000"),
        ("2026-08-22", "20260822000000000"),
        ("20260822103000", "20260822103000"),
    ],
)
def test_a_text_to_the_second_covers_the_second_where_hudi_reads_it_so(given, expected):
    assert instant_time(given, timezone="UTC", whole_second=True) == expected


@pytest.mark.parametrize(
    "given",
    [
        "yesterday",
        "",
        "2026-13-01",
        "2026-08-22 25:00:00",
        "20261322103000",
        "20260822103099123",
        "5",
        "100",
        "20260822",
        "1794776457",
        "2026082210300012",
        "٢٠٢٦٠٨٢٢١٠٣٠٠٠",
    ],
)
def test_what_is_no_time_is_told(given):
    with pytest.raises(InvalidInput, match="is no instant"):
        instant_time(given)


@pytest.mark.parametrize(
    "given", ["0", "001", "000", "999", "00000000000000", "00000000000002", "20991231235959999"]
)
def test_bounds_before_and_after_all_commits_are_instants_too(given):
    assert instant_time(given) == given


@pytest.mark.parametrize(
    ("time", "before"),
    [
        ("20260822103000123", "20260822103000122"),
        ("20260101000000000", "20251231235959999"),
        ("20260822103000", "20260822102959999"),
        ("00000000000000", "00000000000000"),
    ],
)
def test_just_before_a_time_is_a_millisecond_earlier(time, before):
    assert just_before(time) == before
    assert before <= time


def test_an_instant_is_a_moment_in_the_zone_of_the_timeline():
    expected = dt.datetime(2026, 8, 22, 10, 30, 0, 123_000, tzinfo=dt.timezone.utc)
    assert moment_of("20260822103000123", timezone="UTC") == expected
    local = moment_of("20260822103000")
    assert local is not None
    assert local.astimezone().strftime("%Y%m%d%H%M%S") == "20260822103000"
    assert moment_of("00000000000002") is None
