"""Which footers are believed."""

from __future__ import annotations

import pytest

from drawstring.view.footer_stats import bounds_cover_nan


@pytest.mark.parametrize(
    ("created_by", "believed"),
    [
        ("parquet-mr version 1.10.1 (build a89df8f9932b6ef6633d06069e50c9b7970bebd1)", True),
        ("parquet-mr version 1.16.0", True),
        ("parquet-mr version 1.8.1 (build 4aba4dae7bb0d4edbcf7923ae1339f28fd3f7fcf)", False),
        ("parquet-mr", False),
        ("parquet-cpp-arrow version 21.0.0", False),
        (None, False),
    ],
)
def test_bounds_of_floats_are_believed_of_writers_that_look_for_nan(created_by, believed):
    assert bounds_cover_nan(created_by) is believed
