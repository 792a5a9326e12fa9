"""Paths of formatted times, read backwards: the numbers that a path may stand for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.schema.time_partitions import TimePartition

PATTERNS = (
    "yyyy",
    "yyyy/MM",
    "yyyy-MM-dd",
    "yyyyMMdd",
    "dd.MM.yyyy",
    "yyyy/MM/dd/HH",
    "yyyyMMddHHmm",
    "yyyyMMddHHmmss",
)
KINDS = ("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "SCALAR")
PER_DAY = {
    "UNIX_TIMESTAMP": 86_400,
    "EPOCHMILLISECONDS": 86_400_000,
    "EPOCHMICROSECONDS": 86_400_000_000,
    "SCALAR": 1,
}


def time(kind: str, pattern: str, zone: str | None) -> TimePartition:
    settings = {"timestamp.type": kind, "output.dateformat": pattern, "timestamp.scalar.time.unit": "DAYS"}
    return TimePartition.of(settings | ({"timezone": zone} if zone else {}))


def text_of(rule: TimePartition, number: int) -> str:
    return rule.texts(pa.array([number], pa.int64()), "t")[0].as_py()


@given(
    st.sampled_from(KINDS),
    st.sampled_from(PATTERNS),
    st.sampled_from([None, "UTC", "GMT+8:00", "Europe/Berlin", "America/St_Johns"]),
    st.floats(-40_000, 40_000),
)
def test_a_number_lies_in_the_range_of_its_path(kind, pattern, zone, days):
    rule, number = time(kind, pattern, zone), int(days * PER_DAY[kind])
    least, greatest = rule.numbers(text_of(rule, number))
    assert least <= number <= greatest
    if zone in ("UTC", "GMT+8:00"):
        text = text_of(rule, number)
        assert text_of(rule, least) == text == text_of(rule, greatest)
        assert text_of(rule, least - 1) != text != text_of(rule, greatest + 1)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2024-1-5"),
        ("yyyy-MM-dd", "__HIVE_DEFAULT_PARTITION__"),
        ("yyyy-MM-dd", "2024-02-30"),
        ("yyyy/dd", "2024/05"),
        ("MM/dd", "01/05"),
        ("yyyy-DDD", "2024-005"),
        ("yyyy-MM-dd hh", "2024-01-05 03"),
        ("xxxx-ww", "2024-05"),
    ],
)
def test_what_stands_for_no_one_stretch_of_time_tells_nothing(pattern, text):
    assert time("UNIX_TIMESTAMP", pattern, "UTC").numbers(text) is None


def test_paths_of_texts_tell_nothing():
    settings = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": "yyyy-MM-dd",
        "output.dateformat": "yyyyMMdd",
    }
    assert TimePartition.of(settings).numbers("20240105") is None
