"""Ranges with a log compaction: Hudi 1.2 shows what it rewrote where it also reads what was there before."""

from __future__ import annotations

import pytest

import drawstring

BEFORE, UPSERT, COMPACTION = "20261115224219615", "20261115224220915", "20261115224222513"
"""Completion times: of the write before, of the last one that was compacted, and of the compaction."""

CASES = {
    (BEFORE, UPSERT): [3, 5],
    # The groups of rows 3 and 5 show all that was compacted there; that of row 1 was only compacted.
    (BEFORE, COMPACTION): [0, 2, 3, 5],
    (UPSERT, COMPACTION): [],
    (UPSERT, None): [0, 4],
}


@pytest.mark.parametrize(("begin", "end"), CASES)
def test_a_log_compaction_alone_brings_no_rows(begin, end, golden_path):
    table = drawstring.open_table(golden_path("v9_mor_log_compaction"))
    found = table.incremental(begin=begin, end=end).scan().select("id").to_arrow()
    assert sorted(found.column("id").to_pylist()) == CASES[begin, end]
