from __future__ import annotations

import math

import pytest

from drawstring.planning.aggregates import _combined
from drawstring.planning.scan_request import MAX, MIN, Aggregate
from drawstring.predicates.ast import Column


@pytest.mark.parametrize(("left", "right"), [(19.5, math.nan), (math.nan, 19.5)])
def test_nan_of_one_part_is_the_greatest_value_of_all(left, right):
    column = Column(("d",))
    assert math.isnan(_combined(Aggregate(MAX, column), (left, right)))
    assert _combined(Aggregate(MIN, column), (left, right)) == 19.5
