"""Predicates that the bridge sends."""

from __future__ import annotations

import math

import pytest

from drawstring.spark.read.filters import literal_from_wire


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.1", 0.10000000149011612),
        ("2.14748365E9", 2147483648.0),
        ("3.4028235E38", 3.4028234663852886e38),
        ("1.4E-45", 1.401298464324817e-45),
        ("-0.0", -0.0),
        ("-Infinity", -math.inf),
    ],
)
def test_a_float_is_the_number_that_its_text_stands_for_in_32_bits(text, number):
    found = literal_from_wire({"type": "float", "value": text})
    assert (found, math.copysign(1, found)) == (number, math.copysign(1, number))


def test_a_double_is_read_as_one():
    assert literal_from_wire({"type": "double", "value": "0.1"}) == 0.1
    assert math.isnan(literal_from_wire({"type": "float", "value": "NaN"}))
