"""The bounds of a CHANGES clause as those of a changelog read."""

from __future__ import annotations

import json

import pytest

from drawstring.errors import InvalidInput
from drawstring.spark import wire
from drawstring.spark.read.changelogs import ChangelogAsked, changelog_options

BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
START = "hoodie.datasource.streaming.startOffset"
T = "20260822103000123"


def options(**asked) -> dict[str, str]:
    plain = {"net": False, "start_inclusive": True, "end_inclusive": True}
    return json.loads(changelog_options(wire.to_json(ChangelogAsked(**(plain | asked)))))["options"]


def test_versions_are_times_of_commits():
    found = options(start=T, end=T)
    assert (found[BEGIN], found[START], found[END]) == ("20260822103000122",) * 2 + (T,)
    found = options(start=T, end=T, start_inclusive=False, end_inclusive=False)
    assert (found[BEGIN], found[END]) == (T, "20260822103000122")


def test_moments_between_two_milliseconds_are_told_from_both():
    found = options(start_micros=1_000_500, end_micros=2_000_500)
    assert (found[BEGIN], found[END]) == ("1970-01-01T00:00:01.000+00:00", "1970-01-01T00:00:02.000+00:00")
    found = options(start_micros=1_001_000, end_micros=2_001_000)
    assert (found[BEGIN], found[END]) == ("1970-01-01T00:00:01.000+00:00", "1970-01-01T00:00:02.001+00:00")
    found = options(start_micros=1_001_000, end_micros=2_001_000, start_inclusive=False, end_inclusive=False)
    assert (found[BEGIN], found[END]) == ("1970-01-01T00:00:01.001+00:00", "1970-01-01T00:00:02.000+00:00")


def test_without_bounds_everything_is_read():
    found = options(net=True)
    assert found == {
        "hoodie.datasource.read.changelog": "true",
        "hoodie.datasource.read.changelog.commits": "true",
        "hoodie.datasource.read.changelog.net": "true",
    }


def test_what_is_no_time_is_named():
    with pytest.raises(InvalidInput, match="VERSION"):
        options(start="soon")
