"""Deletes as Java's Kryo wrote them: DELETE blocks of versions 1 (Hudi up to 0.10) and 2 (0.11 to 0.13).

The content is an array of HoodieKey (version 1) or DeleteRecord (version 2, a key and an ordering value), written
with class names, fields by name, and numbers for objects that came before:

1. a class is a varint: 0 for null, 1 for one that is named (its number, and at its first use its name), else 2 more
   than the number it is registered under;
2. an object other than a number is preceded by a varint: 0 for null, 1 for one that follows, else 2 more than the
   number of an object that came before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from typing import Any

from drawstring.config.support import found_in_files

_KEY = "org.apache.hudi.common.model.HoodieKey"
_DELETE = "org.apache.hudi.common.model.DeleteRecord"
_DECIMAL = "java.math.BigDecimal"
_TEXT = "text"
# More digits than any decimal has: the default rounds to 28.
_WIDE = Context(prec=100)
_UTF8 = "Avro text"
_REGISTERED = {
    0: "IntWrapper",
    1: _TEXT,
    2: "FloatWrapper",
    3: "BooleanWrapper",
    7: "LongWrapper",
    8: "DoubleWrapper",
    # Registered by Hudi itself, in 0.12 and in 0.13.
    10: _UTF8,
    27: _UTF8,
}
_WRAPPERS = {_TEXT: "StringWrapper", _UTF8: "StringWrapper", _DECIMAL: "DecimalWrapper"}

Ordering = tuple[str, dict[str, Any]] | None
"""An ordering value under the name of the wrapper that newer blocks store it in."""


def kryo_deletes(data: memoryview, *, version: int) -> Iterator[tuple[str, Ordering]]:
    """Yield key and ordering value of each delete; raises `IndexError` or `ValueError` where bytes are damaged."""
    reader = _Reader(data)
    element = _KEY if version == 1 else _DELETE
    reader.class_of(f"[L{element};")
    if not reader.begins_object():
        raise ValueError("the list of deletes is null")
    for _ in range(reader.varint() - 1):
        reader.class_of(element)
        yield reader.key() if version == 1 else reader.delete()
    if reader.position != len(data):
        raise ValueError("bytes follow the last delete")


class _Reader:
    """A position in the bytes, with the class names and objects that came before it."""

    def __init__(self, data: memoryview) -> None:
        self.position = 0
        self._data = data
        self._names: list[str] = []
        self._objects: list[Any] = []
        self._values: dict[str, Callable[[], Any]] = {
            "IntWrapper": self._signed,
            "LongWrapper": self._signed,
            "FloatWrapper": lambda: struct.unpack(">f", self._take(4))[0],
            "DoubleWrapper": lambda: struct.unpack(">d", self._take(8))[0],
            "BooleanWrapper": lambda: bool(self._take(1)[0]),
            _TEXT: lambda: self._object(self._text),
            _UTF8: lambda: self._object(lambda: self._sized().decode()),
            _DECIMAL: lambda: self._object(self._decimal),
        }

    def key(self) -> tuple[str, Ordering]:
        """A HoodieKey, whose class was read: partition path and record key, in the order of their names."""
        known = self.begins_object()
        if not known:
            raise ValueError("a key is null, or one that came before")
        number = len(self._objects) - 1
        self._object(self._text)
        key = self._object(self._text)
        self._objects[number] = key
        if key is None:
            raise ValueError("a record key is null")
        return key, None

    def delete(self) -> tuple[str, Ordering]:
        """A DeleteRecord, whose class was read: its key and its ordering value."""
        if not self.begins_object():
            raise ValueError("a delete is null, or one that came before")
        self.class_of(_KEY)
        key, _ = self.key()
        name = self._class()
        if name is None:
            return key, None
        if name not in self._values:
            raise found_in_files(
                "UNSUPPORTED_DELETE_BLOCK", found=f"ordering values of {name}", known=", ".join(_known())
            )
        return key, (_WRAPPERS.get(name, name), {"value": self._values[name]()})

    def class_of(self, expected: str) -> None:
        """Read a class, which must be the expected one."""
        found = self._class()
        if found != expected:
            raise ValueError(f"found a {found}, expected {expected}")

    def begins_object(self) -> bool:
        """Whether an object follows, which then has the next number."""
        if self.varint() != 1:
            return False
        self._objects.append(None)
        return True

    def varint(self) -> int:
        """An unsigned number in groups of seven bits, least first."""
        value = shift = 0
        while True:
            byte = self._data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _class(self) -> str | None:
        tag = self.varint()
        if tag == 0:
            return None
        if tag != 1:
            return _REGISTERED.get(tag - 2, f"class {tag - 2}")
        number = self.varint()
        if number == len(self._names):
            self._names.append(self._text() or "")
        return self._names[number]

    def _object(self, read: Callable[[], Any]) -> Any:
        mark = self.varint()
        if mark == 0:
            return None
        if mark > 1:
            return self._objects[mark - 2]
        number = len(self._objects)
        self._objects.append(None)
        self._objects[number] = read()
        return self._objects[number]

    def _signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def _decimal(self) -> Decimal:
        unscaled = int.from_bytes(self._sized(), "big", signed=True)
        return Decimal(unscaled).scaleb(-self._signed(), _WIDE)

    def _sized(self) -> bytes:
        return bytes(self._take(self.varint() - 1))

    def _take(self, count: int) -> memoryview:
        if not 0 <= count <= len(self._data) - self.position:
            raise IndexError(f"{count} bytes wanted, {len(self._data) - self.position} left")
        self.position += count
        return self._data[self.position - count : self.position]

    def _text(self) -> str | None:
        """ASCII ends with a byte that has its highest bit set; other text begins with its length in characters."""
        first = self._data[self.position]
        if first < 0x80:
            return self._ascii()
        self.position += 1
        length, shift, more = first & 0x3F, 6, first & 0x40
        while more:
            byte = self._data[self.position]
            self.position += 1
            length |= (byte & 0x7F) << shift
            shift, more = shift + 7, byte & 0x80
        return None if length == 0 else self._characters(length - 1)

    def _ascii(self) -> str:
        start = self.position
        while self._data[self.position] < 0x80:
            self.position += 1
        self.position += 1
        found = bytes(self._data[start : self.position])
        return (found[:-1] + bytes([found[-1] & 0x7F])).decode("ascii")

    def _characters(self, count: int) -> str:
        """UTF-16 units of Java, each in one to three bytes."""
        start = self.position
        for _ in range(count):
            first = self._data[self.position]
            self.position += 1 if first < 0x80 else 2 if first < 0xE0 else 3
        if self.position > len(self._data):
            raise IndexError("a text is cut")
        units = bytes(self._data[start : self.position]).decode("utf-8", "surrogatepass")
        return units.encode("utf-16", "surrogatepass").decode("utf-16")


def _known() -> list[str]:
    return sorted(
        {_WRAPPERS.get(name, name).removesuffix("Wrapper").lower() for name in _REGISTERED.values()}
    )
