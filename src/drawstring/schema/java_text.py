"""Numbers as Java writes them: what Hudi returns when a column was widened to string."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Arrow prints the shortest digits that read back as the same number, positionally for 1e-6 <= |x| < 1e10 and
# as `1.5e+22` beyond; Java is positional for 1e-3 <= |x| < 1e7 only. These rewrite the one as the other.
_REWRITES = (
    (r"^(-?\d)e\+?(-?\d+)$", r"\1.0E\2"),
    (r"^(-?\d\.\d+)e\+?(-?\d+)$", r"\1E\2"),
    *((rf"^(-?\d)(\d{{{n}}})(?:\.(\d+))?$", rf"\1.\2\3E{n}") for n in (7, 8, 9)),
    *((rf"^(-?)0\.0{{{n - 1}}}([1-9])(\d*)$", rf"\1\2.\30E-{n}") for n in (4, 5, 6)),
    (r"^(-?\d\.\d+?)0*E", r"\1E"),
    (r"^nan$", "NaN"),
    (r"^(-?)inf$", r"\1Infinity"),
)
_SINGLE_DIGIT_BELOW = {pa.float32(): 1e-42, pa.float64(): 1e-300}


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
    return _replace(text, pc.invert(plain), numbers)


def java_float_text(number: float, *, single: bool = False) -> str:
    """Return one number as Java would, as a float of 32 bits when `single`: `float_text`, plain and slow."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return f"{sign}0.0"
    digits, exponent = _digits(abs(number), single)
    if -3 <= exponent < 7:
        return sign + _positional(digits, exponent)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _digits(number: float, single: bool) -> tuple[str, int]:
    shortest = Decimal(str(np.float32(number))) if single else Decimal(repr(number))
    digits = "".join(map(str, shortest.as_tuple().digits)).rstrip("0")
    if len(digits) == 1:
        # Java has two digits to spend and takes the nearest number: 4.9E-324 where the shortest is 5e-324.
        mantissa = f"{number:.1e}"
        return (mantissa[0] + mantissa[2]).rstrip("0"), int(mantissa.split("e")[1])
    return digits, shortest.adjusted()


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    padded = digits.ljust(exponent + 1, "0")
    return f"{padded[: exponent + 1]}.{padded[exponent + 1 :] or '0'}"


def _replace(text: pa.Array, mask: pa.Array, numbers: pa.Array) -> pa.Array:
    odd = pc.filter(text, mask)
    for pattern, replacement in _REWRITES:
        odd = pc.replace_substring_regex(odd, pattern, replacement)
    tiny = pc.less(pc.abs(pc.filter(numbers, mask)), _SINGLE_DIGIT_BELOW[numbers.type])
    if pc.any(tiny).as_py():
        single = numbers.type == pa.float32()
        exact = [
            java_float_text(x, single=single) for x in pc.filter(pc.filter(numbers, mask), tiny).to_pylist()
        ]
        odd = pc.replace_with_mask(odd, tiny, pa.array(exact, pa.string()))
    return pc.replace_with_mask(text, mask, odd)
