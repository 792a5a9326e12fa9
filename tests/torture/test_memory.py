"""File groups larger than the memory they are merged in. Minutes; `make torture`."""

from __future__ import annotations

import os
import sys

import pytest

from benchmarks import large_rewrite
from benchmarks.large_group import expected, make, measured, shapes

pytestmark = [
    pytest.mark.torture,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc"),
]

MEGABYTES = int(os.environ.get("LARGE_GROUP_MEGABYTES", "1500"))
MOST_BYTES = 1300 * 2**20
"""Five times the limit of 256 MiB: a piece or part exists as bytes, decoded, gathered and on its way out at once."""


@pytest.mark.parametrize("shape", shapes(MEGABYTES), ids=lambda shape: shape.name.replace(" ", "_"))
def test_a_file_group_larger_than_memory_is_read_exactly_and_in_bounds(tmp_path, shape):
    result = measured(make(tmp_path / "t", shape))
    assert result["found"] == expected(shape)
    assert result["anonymous"] - result["before"] < MOST_BYTES


def test_a_large_base_file_is_rewritten_within_a_gigabyte(tmp_path):
    count = large_rewrite.make(tmp_path / "t", 1024)
    found = large_rewrite.measured(tmp_path / "t", count, 1_000_000)
    assert found["counts"] == [500_000, 500_000, 1]
    assert found["anonymous"] - found["before"] < 2**30
