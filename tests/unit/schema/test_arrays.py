import numpy as np
import pyarrow as pa
import pytest

from drawstring.schema.arrays import counted_texts, number_array, numbers_of, text_array, text_scalar


@pytest.mark.parametrize(
    ("start", "count"), [(0, 0), (0, 12), (5, 3), (9, 2), (998, 3), (9998, 4), (99_990, 20_020), (123_456, 1)]
)
def test_texts_count_on_through_every_length_of_numbers(start, count):
    found = counted_texts("2026_0_", start, count)
    found.validate(full=True)
    assert found.type == pa.string()
    assert found.to_pylist() == [f"2026_0_{number}" for number in range(start, start + count)]


def test_arrays_hold_what_pyarrow_makes_of_the_same_values():
    texts = ["", "a", "\u00e4\u6f22\U0001f600"]
    assert text_array(texts).equals(pa.array(texts, pa.string()))
    assert text_array([]).equals(pa.array([], pa.string()))
    assert text_scalar("x") == pa.scalar("x")
    every_second = np.arange(10, dtype=np.int32)[::2]
    assert number_array(every_second).equals(pa.array([0, 2, 4, 6, 8], pa.int32()))


def test_numbers_of_an_array_are_those_of_its_slice():
    assert numbers_of(pa.array([1, 2, 3, 4], pa.int32()).slice(1, 2)).tolist() == [2, 3]
    assert numbers_of(pa.array([], pa.int64())).tolist() == []
