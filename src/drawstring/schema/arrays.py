"""Arrow arrays made of buffers: numbers, texts, and texts that count.

pyarrow loads pandas as soon as it makes an array of anything else, or NumPy's of its own, which takes a fresh worker
of Spark longer than writing its first file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_BLOCK = 10_000
_TAILS: npt.NDArray[np.uint8] = np.frombuffer(
    "".join(f"{number:04d}" for number in range(_BLOCK)).encode(), dtype=np.uint8
).reshape(_BLOCK, 4)
"""The last four digits of every number."""


def number_array(values: npt.NDArray[np.number]) -> pa.Array:
    """Return numbers without copying them."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def numbers_of(array: pa.Array) -> npt.NDArray[np.number]:
    """Return the values of an array of numbers without copying them; none is null."""
    assert not array.null_count, "nulls have no number"
    found: npt.NDArray[np.number] = np.frombuffer(array.buffers()[1] or b"", array.type.to_pandas_dtype())
    return found[array.offset : array.offset + len(array)]


def text_array(values: Sequence[str]) -> pa.Array:
    """Return texts, of which none is null."""
    encoded = [value.encode() for value in values]
    return _texts(np.array([len(value) for value in encoded], dtype=np.int64), b"".join(encoded))


def text_scalar(value: str) -> pa.Scalar:
    """Return a text as Arrow's functions take it beside arrays."""
    return text_array([value])[0]


def counted_texts(prefix: str, start: int, count: int) -> pa.Array:
    """Return texts of a prefix and the numbers from `start` on."""
    blocks, widths, number, end = [], [np.zeros(0, dtype=np.int64)], start, start + count
    while number < end:
        block = _counted_block(prefix, number, end)
        blocks.append(block.ravel())
        widths.append(np.full(len(block), block.shape[1]))
        number += len(block)
    return _texts(np.concatenate(widths), np.concatenate(blocks) if blocks else b"")


def _counted_block(prefix: str, number: int, end: int) -> npt.NDArray[np.uint8]:
    """Return texts of one length as rows, as far as nothing but their last digits differ."""
    high, low = divmod(number, _BLOCK)
    digits = 4 if high else len(str(number))
    head = f"{prefix}{high or ''}".encode()
    count = min(end, high * _BLOCK + 10**digits) - number
    block = np.frombuffer(bytearray((head + bytes(digits)) * count), dtype=np.uint8)
    rows = block.reshape(count, len(head) + digits)
    rows[:, len(head) :] = _TAILS[low : low + count, 4 - digits :]
    return rows


def _texts(widths: npt.NDArray[np.int64], data: bytes | npt.NDArray[np.uint8]) -> pa.Array:
    offsets = np.zeros(len(widths) + 1, dtype=np.int64)
    np.cumsum(widths, out=offsets[1:])
    small = offsets[-1] < 1 << 31
    buffers = [None, pa.py_buffer(offsets.astype(np.int32) if small else offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string() if small else pa.large_string(), len(widths), buffers)
