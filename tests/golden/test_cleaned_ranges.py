"""Incremental reads of ranges whose files a cleaner took: Hudi 1.2 reads the newest slices instead, and so do we."""

from __future__ import annotations

import pytest

import drawstring

CASES = {
    # Row 100 was written again after the end: what the newest slices hold of it is no part of the range.
    ("000", "20261115211408147"): list(range(11)),
    ("000", "20261115211416746"): list(range(13)),
    ("000", None): [*range(15), 100],
}


@pytest.mark.parametrize(("begin", "end"), CASES)
def test_the_newest_slices_stand_for_cleaned_files(begin, end, golden_path):
    table = drawstring.open_table(golden_path("v9_mor_archived"))
    found = table.incremental(begin=begin, end=end).scan().select("id", "_hoodie_file_name").to_arrow()
    assert sorted(found.column("id").to_pylist()) == CASES[begin, end]
    newest = table.snapshot().scan().select("id", "_hoodie_file_name").to_arrow()
    names = dict(
        zip(newest.column("id").to_pylist(), newest.column("_hoodie_file_name").to_pylist(), strict=True)
    )
    assert found.column("_hoodie_file_name").to_pylist() == [names[i] for i in found.column("id").to_pylist()]


def test_without_the_fallback_the_files_of_the_range_are_read_as_long_as_they_are_there(golden_path):
    options = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}
    table = drawstring.open_table(golden_path("v9_mor_archived"), options=options)
    found = table.incremental(begin="000", end="20261115211423950").scan().to_arrow()
    assert sorted(found.column("id").to_pylist()) == [*range(15), 100]
