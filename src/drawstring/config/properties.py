"""Java `.properties` files: parsed strictly, formatted as Java does."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping

from drawstring.errors import CorruptTable

SIZE_LIMIT = 1 << 20
"""Largest properties file that is read, in bytes."""

_DIGEST = "drawstring.digest=sha256:"
_DIGEST_LINE = re.compile(rb"^#drawstring\.digest=sha256:([0-9a-f]{64})\s*$", re.MULTILINE)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPLIT = re.compile(r"((?:[^\\:=\s]|\\.)*)[ \t\f]*[:=]?[ \t\f]*(.*)", re.DOTALL)
_BACK = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}


def parse_properties(content: bytes, *, source: str) -> dict[str, str]:
    """Parse a properties file; `source` names it in errors.

    Raises `CorruptTable` naming the line for NUL bytes, bad escapes and lines without a key.
    A key that is given twice with different values is an error too: nobody can tell which one was meant.
    """
    if len(content) > SIZE_LIMIT:
        raise _corrupt(source, 0, f"it has {len(content)} bytes, more than the limit of {SIZE_LIMIT}")
    properties: dict[str, str] = {}
    for number, line in _logical_lines(content, source):
        match = _SPLIT.fullmatch(line)
        key = _unescape(match.group(1), source, number) if match else ""
        if match is None or not key:
            raise _corrupt(source, number, "it has no key; expected key=value")
        value = _unescape(match.group(2), source, number)
        if properties.setdefault(key, value) != value:
            raise _corrupt(source, number, f"it sets {key} a second time, to another value")
    return properties


def format_properties(properties: Mapping[str, str], *, comment: str) -> bytes:
    """Format properties as Java reads them, keys sorted, with a digest of them in a comment.

    Java and hudi-rs pass over comments, and Java drops them when it stores the file: a digest that is there was
    made for the very settings beside it.
    """
    lines = [f"#{comment}", f"#{_DIGEST}{content_digest(properties)}"]
    lines += [f"{_escape(key, key=True)}={_escape(properties[key], key=False)}" for key in sorted(properties)]
    return ("\n".join(lines) + "\n").encode("latin-1")


def content_digest(properties: Mapping[str, str]) -> str:
    """A digest of all keys and values, whatever their order in the file."""
    pairs = json.dumps(sorted(properties.items()), separators=(",", ":"))
    return hashlib.sha256(pairs.encode()).hexdigest()


def has_other_digest(content: bytes, properties: Mapping[str, str]) -> bool:
    """Whether the file carries a digest, and of other settings than those it holds now."""
    found = _DIGEST_LINE.search(content)
    return found is not None and found.group(1).decode() != content_digest(properties)


def table_checksum(properties: Mapping[str, str]) -> int:
    """The checksum of `hoodie.properties`: it covers the database's and the table's name only."""
    database = properties.get("hoodie.database.name", "")
    return zlib.crc32(f"{database}.{properties.get('hoodie.table.name', '')}".encode())


def _logical_lines(content: bytes, source: str) -> Iterator[tuple[int, str]]:
    joined, first = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", content.decode("latin-1")), start=1):
        line = raw.lstrip(" \t\f")
        if "\0" in line:
            raise _corrupt(source, number, "it holds a NUL byte")
        if not joined and (not line or line[0] in "#!"):
            continue
        first = first if joined else number
        joined += line
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
            continue
        yield first, joined
        joined = ""
    if joined:
        raise _corrupt(source, first, "it ends with a line continuation and nothing follows")


def _unescape(text: str, source: str, number: int) -> str:
    if "\\" not in text:
        return text
    out, position = [], 0
    while position < len(text):
        char = text[position]
        position += 1
        if char != "\\":
            out.append(char)
            continue
        escape = text[position : position + 1]
        position += 1
        if escape == "u":
            digits = text[position : position + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise _corrupt(source, number, f"it holds the bad escape \\u{digits}")
            out.append(chr(int(digits, 16)))
            position += 4
        else:
            out.append(_ESCAPES.get(escape, escape))
    # Java writes characters beyond the basic plane as two escapes.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, *, key: bool) -> str:
    out = []
    for index, char in enumerate(text):
        if char in _BACK:
            out.append(_BACK[char])
        elif char in "\\:=#!" or (char == " " and (key or index == 0)):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i] << 8 | units[i + 1]:04X}" for i in range(0, len(units), 2)]
    return "".join(out)


def _corrupt(source: str, line: int, what: str) -> CorruptTable:
    return CorruptTable(
        f"Cannot read {source}, line {line}: {what}. Restore the file from its backup or from Hudi.",
        condition="MALFORMED_PROPERTIES",
        path=source,
        line=line,
    )
