import math
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.schema.java_text import double_of_float, float_text, java_float_text

doubles = (
    st.floats(width=64)
    | st.floats(min_value=-1e12, max_value=1e12)
    | st.integers(-(10**18), 10**18).map(float)
)
singles = st.floats(width=32) | st.integers(-(2**40), 2**40).map(
    lambda n: struct.unpack("f", struct.pack("f", n))[0]
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.1e11, "1.1E11"),
        (2.5e7, "2.5E7"),
        (3.5, "3.5"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.99e-4, "9.99E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1e21, "1.0E21"),
        (4.7785621421088312e16, "4.7785621421088312E16"),
        (-9.007199254740993e15, "-9.007199254740992E15"),
        (5e-324, "4.9E-324"),
        (1e-323, "1.0E-323"),
        (1e-322, "1.0E-322"),
        (9.78e21, "9.779999999999999E21"),
        (2.5214588803709004e25, "2.5214588803709003E25"),
        (-1.409983751319488e19, "-1.4099837513194881E19"),
        (2.0**-24, "5.9604644775390625E-8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (-float("inf"), "-Infinity"),
    ],
)
def test_known_texts(number, text):
    assert java_float_text(number) == text
    assert float_text(pa.array([number, None])).to_pylist() == [text, None]


def test_floats_of_32_bits_have_their_own_shortest_text():
    numbers = pa.array([0.1, 1.4e-45, 3.4028235e38, 16777216.0], pa.float32())
    assert float_text(numbers).to_pylist() == ["0.1", "1.4E-45", "3.4028235E38", "1.6777216E7"]


def test_floats_whose_shortest_text_is_not_the_one_that_java_prints():
    numbers = pa.array([2.0**-126, 5.364765583033145e25, 2.0**-27, 9.0e-44], pa.float32())
    texts = ["1.17549435E-38", "5.3647655E25", "7.4505806E-9", "9.0E-44"]
    assert float_text(numbers).to_pylist() == texts
    assert double_of_float(numbers).to_pylist() == [float(text) for text in texts]


def test_large_integers_in_32_bits_keep_the_digits_that_java_keeps():
    numbers = pa.array([331719808.0, -3.70305204e11, 1.1e11, 123456789.0, 2.0**62, None], pa.float32())
    expected = ["3.31719808E8", "-3.70305204E11", "1.09999997E11", "1.23456792E8", "4.611686E18", None]
    assert float_text(numbers).to_pylist() == expected
    assert double_of_float(numbers).to_pylist()[:4] == [
        331719808.0,
        -370305204000.0,
        109999997000.0,
        123456792.0,
    ]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        singles
        | st.integers(-(2**62), 2**62).map(float).map(lambda x: struct.unpack("f", struct.pack("f", x))[0])
    )
)
def test_doubles_of_floats_are_read_from_the_text(numbers):
    texts = [java_float_text(x, single=True).replace("Infinity", "inf") for x in numbers]
    found = double_of_float(pa.array(numbers, pa.float32())).to_pylist()
    assert [struct.pack("d", x) for x in found if x == x] == [
        struct.pack("d", float(t)) for t in texts if t != "NaN"
    ]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | doubles, max_size=40))
def test_doubles_match_the_plain_implementation(numbers):
    expected = [None if x is None else java_float_text(x) for x in numbers]
    assert float_text(pa.array(numbers, pa.float64())).to_pylist() == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | singles, max_size=40))
def test_floats_match_the_plain_implementation(numbers):
    expected = [None if x is None else java_float_text(x, single=True) for x in numbers]
    assert float_text(pa.array(numbers, pa.float32())).to_pylist() == expected


@given(doubles)
def test_the_text_reads_back_as_the_same_number(number):
    text = java_float_text(number).replace("Infinity", "inf")
    back = float(text)
    assert (math.isnan(back) and math.isnan(number)) or struct.pack("d", back) == struct.pack("d", number)
