"""Numbers as Java writes them (before version 19): what Hudi returns when a column was widened to string."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.schema.java_digits import java_digits

_SINGLE_DIGIT_BELOW = {pa.float32(): 1e-42, pa.float64(): 1e-300}
_SIGNIFICANT_BITS = {pa.float32(): 24, pa.float64(): 53}
_LONG_LIMIT = 2.0**63
_ODD_BELOW = 2.0**90
"""Java's integers overflow on the way to the digits of some numbers below, none above."""
_POWERS_BELOW = 2.0**-23
"""Larger powers of two have so few digits that Java prints no others."""


def float_text(numbers: pa.Array) -> pa.Array:
    """Return floats or doubles as `Float.toString` and `Double.toString` would: 3.5, 2.5E7, NaN, Infinity."""
    text = pc.cast(numbers, pa.string())
    size = pc.abs(numbers)
    plain = pc.or_(pc.equal(size, 0), pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)))
    plain = pc.fill_null(plain, True)
    whole = pc.fill_null(pc.invert(pc.match_substring(text, ".")), False)
    text = pc.if_else(pc.and_(plain, whole), pc.binary_join_element_wise(text, ".0", ""), text)
    if pc.all(plain).as_py() is not False:
        return text
    mask = pc.invert(plain)
    return pc.replace_with_mask(text, mask, _odd_texts(pc.filter(text, mask), pc.filter(numbers, mask)))


def double_of_float(numbers: pa.Array) -> pa.Array:
    """Return floats of 32 bits as the doubles that Java reads from their text: 0.1, not 0.10000000149011612."""
    doubles = pc.cast(pc.cast(numbers, pa.string()), pa.float64())
    large, unusual = _large_integers(numbers), _unusual(numbers)
    if pc.any(large).as_py():
        kept, dropped = _rounded_integers(pc.filter(numbers, large))
        doubles = pc.replace_with_mask(doubles, large, pa.array((kept * 10**dropped).astype(np.float64)))
    if pc.any(unusual).as_py():
        texts = [java_float_text(x, single=True) for x in pc.filter(numbers, unusual).to_pylist()]
        doubles = pc.replace_with_mask(doubles, unusual, pa.array(map(float, texts), pa.float64()))
    return doubles


def java_float_text(number: float, *, single: bool = False) -> str:
    """Return one number as Java would, as a float of 32 bits when `single`: `float_text`, plain and slow."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return f"{sign}0.0"
    digits, exponent = java_digits(abs(number), single=single)
    if -3 <= exponent < 7:
        return sign + _positional(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    return f"{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"


def _odd_texts(text: pa.Array, numbers: pa.Array) -> pa.Array:
    """Rewrite Arrow's texts of numbers that Java writes with an exponent, or by name.

    Arrow prints the shortest digits that read back as the same number, positionally for 1e-6 <= |x| < 1e10 and
    as `1.5e+22` beyond.
    """
    has_exponent = pc.match_substring(text, "e")
    unsigned = pc.utf8_ltrim(text, characters="-")
    written = pc.if_else(has_exponent, _with_java_exponent(unsigned), _with_new_exponent(unsigned))
    size = pc.abs(numbers)
    written = pc.if_else(pc.is_nan(numbers), "NaN", pc.if_else(pc.is_inf(numbers), "Infinity", written))
    sign = pc.if_else(pc.and_(pc.less(numbers, 0), pc.greater(size, 0)), "-", "")
    return _exceptions(pc.binary_join_element_wise(sign, written, ""), numbers)


def _with_java_exponent(unsigned: pa.Array) -> pa.Array:
    """Turn `1.5e+22` and `5e-7` into `1.5E22` and `5.0E-7`."""
    java = pc.replace_substring(pc.replace_substring(unsigned, "e+", "E"), "e", "E")
    first, rest = pc.utf8_slice_codeunits(java, 0, 1), pc.utf8_slice_codeunits(java, 1)
    return pc.if_else(pc.match_substring(java, "."), java, pc.binary_join_element_wise(first, rest, ".0"))


def _with_new_exponent(unsigned: pa.Array) -> pa.Array:
    """Turn `12345678.9` and `0.0005` into `1.23456789E7` and `5.0E-4`."""
    length = pc.utf8_length(unsigned)
    point = pc.find_substring(unsigned, ".")
    whole_digits = pc.if_else(pc.less(point, 0), length, point)
    digits = pc.utf8_ltrim(pc.replace_substring(unsigned, ".", ""), characters="0")
    is_small = pc.starts_with(unsigned, "0.")
    leading = pc.subtract(pc.subtract(length, 1), pc.utf8_length(digits))
    exponent = pc.if_else(is_small, pc.negate(leading), pc.subtract(whole_digits, 1))
    return _scientific(digits, exponent)


def _scientific(digits: pa.Array, exponent: pa.Array) -> pa.Array:
    fraction = pc.utf8_rtrim(pc.utf8_slice_codeunits(digits, 1), characters="0")
    fraction = pc.if_else(pc.equal(pc.utf8_length(fraction), 0), "0", fraction)
    first = pc.utf8_slice_codeunits(digits, 0, 1)
    mantissa = pc.binary_join_element_wise(first, fraction, ".")
    return pc.binary_join_element_wise(mantissa, pc.cast(exponent, pa.string()), "E")


def _exceptions(text: pa.Array, numbers: pa.Array) -> pa.Array:
    """Replace the texts of numbers of which Java does not print the shortest digits."""
    large = _large_integers(numbers)
    if pc.any(large).as_py():
        text = pc.replace_with_mask(text, large, _large_integer_texts(pc.filter(numbers, large)))
    unusual = _unusual(numbers)
    if pc.any(unusual).as_py():
        single = numbers.type == pa.float32()
        exact = [java_float_text(x, single=single) for x in pc.filter(numbers, unusual).to_pylist()]
        text = pc.replace_with_mask(text, unusual, pa.array(exact, pa.string()))
    return text


def _unusual(numbers: pa.Array) -> pa.Array:
    """Find the numbers of which Java may not print the fewest digits; all but a few of them it does."""
    size = pc.abs(numbers)
    tiny = pc.less(size, _SINGLE_DIGIT_BELOW[numbers.type])
    large = pc.and_(pc.greater_equal(size, _LONG_LIMIT), pc.less(size, _ODD_BELOW))
    powers = pc.and_(
        pc.or_(pc.less(size, _POWERS_BELOW), pc.greater_equal(size, _LONG_LIMIT)), _is_power(size)
    )
    return pc.fill_null(pc.or_(tiny, pc.or_(large, powers)), False)


def _is_power(size: pa.Array) -> pa.Array:
    """Find the powers of two."""
    mantissas, _ = np.frexp(size.to_numpy(zero_copy_only=False))
    return pa.array(mantissas == 0.5)


def _large_integers(numbers: pa.Array) -> pa.Array:
    """Find the numbers that are integers for lack of precision; Java prints more of their digits than it must."""
    size = pc.abs(numbers)
    least = 2.0 ** _SIGNIFICANT_BITS[numbers.type]
    return pc.fill_null(pc.and_(pc.greater_equal(size, least), pc.less(size, _LONG_LIMIT)), False)


def _rounded_integers(numbers: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the digits that Java keeps of large integers, as integers, and how many digits it drops."""
    exact = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    _, exponents = np.frexp(exact)
    power = exponents.astype(np.int64) - 1 - _SIGNIFICANT_BITS[numbers.type] - 1
    dropped = np.where(power > 1, (power * math.log10(2)).astype(np.int64), 0)
    integers = np.abs(exact).astype(np.int64)
    unit = 10**dropped
    kept = integers // unit
    kept += (dropped > 0) & (integers % unit >= unit // 2)
    return np.copysign(1, exact).astype(np.int64) * kept, dropped


def _large_integer_texts(numbers: pa.Array) -> pa.Array:
    kept, dropped = _rounded_integers(numbers)
    digits = pc.cast(pa.array(np.abs(kept)), pa.string())
    exponent = pc.add(pc.cast(pc.utf8_length(digits), pa.int64()), pa.array(dropped - 1))
    sign = pc.if_else(pa.array(kept < 0), "-", "")
    return pc.binary_join_element_wise(sign, _scientific(digits, exponent), "")
