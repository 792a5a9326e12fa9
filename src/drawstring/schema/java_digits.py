"""The decimal digits that Java (before version 19) prints of a binary floating-point number.

They are mostly the fewest that read back as the same number, but not always: Java asks a power of two for more
than it needs, has two digits to spend in scientific notation, and computes with 32 or 64 bits where numbers seem
to fit, which they do not quite. So its steps are followed one by one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_LONG_BITS, _INT_BITS = 64, 32
_LOG_2_OF_5 = math.log2(5)
_FIVES_KNOWN = 27
"""Java knows the sizes of the powers of five up to this one, and takes three bits for each five beyond."""


@dataclass(frozen=True)
class Binary:
    """A positive number: `fraction` is its odd part, `exponent` that of its leading bit; it was stored in `bits`."""

    fraction: int
    exponent: int
    bits: int

    @classmethod
    def of(cls, number: float, *, single: bool) -> Binary:
        """Take a number apart; `bits` shrinks for numbers below the normal ones."""
        mantissa, exponent = math.frexp(number)
        fraction = int(math.ldexp(mantissa, 53))
        fraction >>= (fraction & -fraction).bit_length() - 1
        lowest = exponent - 1 + (149 if single else 1074)
        return cls(fraction, exponent - 1, min(24 if single else 53, lowest + 1))


def java_digits(number: float, *, single: bool) -> tuple[str, int]:
    """Return the digits that Java prints of a positive number, and the exponent of the first one."""
    binary = Binary.of(number, single=single)
    length = binary.fraction.bit_length()
    behind_point = max(0, length - binary.exponent - 1)
    if behind_point == 0 and -21 <= binary.exponent <= 62:
        return _of_integer(int(number), binary)
    digits, exponent, round_up = _Development(binary, length, behind_point).run()
    if round_up:
        digits, exponent = _rounded_up(digits, exponent)
    return "".join(map(str, digits)).rstrip("0") or "0", exponent


def _of_integer(number: int, binary: Binary) -> tuple[str, int]:
    power = binary.exponent - binary.bits - 1
    dropped = int(power * math.log10(2)) if power > 1 else 0
    kept, rest = divmod(number, 10**dropped)
    if dropped and rest >= 10**dropped // 2:
        kept += 1
    return str(kept).rstrip("0"), len(str(kept)) - 1 + dropped


def _rounded_up(digits: list[int], exponent: int) -> tuple[list[int], int]:
    number = str(int("".join(map(str, digits))) + 1)
    return [int(digit) for digit in number], exponent + len(number) - len(digits)


def _fives_size(power: int) -> int:
    """How many bits Java takes a power of five to have."""
    return math.floor(power * _LOG_2_OF_5) + 1 if power < _FIVES_KNOWN else 3 * power


class _Development:
    """Digit after digit of `number / scale`, until what is left is within `margin` of the number."""

    def __init__(self, binary: Binary, length: int, behind_point: int) -> None:
        self._exponent = exponent = _estimated_exponent(binary, length)
        fives, scale_fives = max(0, -exponent), max(0, exponent)
        twos = fives + behind_point + binary.exponent
        scale_twos = scale_fives + behind_point
        margin_twos = twos - binary.bits
        twos -= length - 1
        common = min(twos, scale_twos)
        twos, scale_twos, margin_twos = twos - common, scale_twos - common, margin_twos - common
        if length == 1:
            # Below a power of two the next number is nearer by half.
            margin_twos -= 1
        if margin_twos < 0:
            twos, scale_twos, margin_twos = twos - margin_twos, scale_twos - margin_twos, 0
        self._width = _width(
            length + twos + _fives_size(fives), scale_twos + 1 + _fives_size(scale_fives + 1)
        )
        self._rest: int = binary.fraction * 5**fives << twos
        self._scale: int = 5**scale_fives << scale_twos
        self._margin: int = 5**fives << margin_twos
        self._low = self._high = False

    def run(self) -> tuple[list[int], int, bool]:
        """Return the digits, the exponent of the first, and whether the last is to be rounded up."""
        digits = [self._next()]
        if digits == [0] and not self._high:
            digits, self._exponent = [], self._exponent - 1
        if not -3 <= self._exponent < 8:
            # In scientific notation a second digit costs nothing.
            self._low = self._high = False
        while not self._low and not self._high:
            digits.append(self._next())
        return digits, self._exponent, self._rounds_up(digits[-1])

    def _next(self) -> int:
        digit, rest = divmod(self._rest, self._scale)
        self._rest = self._wrapped(10 * rest)
        self._margin = self._wrapped(10 * self._margin)
        tens = self._wrapped(10 * self._scale)
        if self._margin <= 0:
            self._low = self._high = True
            return digit
        self._low = self._rest < self._margin
        reached = self._wrapped(self._rest + self._margin)
        self._high = reached > tens if self._width else reached >= tens
        return digit

    def _rounds_up(self, last: int) -> bool:
        if not (self._high and self._low):
            return self._high
        difference = self._wrapped(self._wrapped(self._rest << 1) - self._wrapped(10 * self._scale))
        return last % 2 == 1 if difference == 0 else difference > 0

    def _wrapped(self, number: int) -> int:
        """A number as the integers hold it that Java computes with."""
        if not self._width:
            return number
        half = 1 << (self._width - 1)
        return (number + half) % (2 * half) - half


def _estimated_exponent(binary: Binary, length: int) -> int:
    leading = math.ldexp(binary.fraction, 1 - length)
    return math.floor((leading - 1.5) * 0.289529654 + 0.176091259 + binary.exponent * 0.301029995663981)


def _width(number_size: int, scale_size: int) -> int:
    """The size of the integers that Java computes with; 0 for those without limit."""
    if number_size < _INT_BITS and scale_size < _INT_BITS:
        return _INT_BITS
    return _LONG_BITS if number_size < _LONG_BITS and scale_size < _LONG_BITS else 0
