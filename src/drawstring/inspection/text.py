"""Text for reports: names and values of a table made safe to print, long lists cut."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMES = 40


def printable(text: str) -> str:
    """The text with everything escaped that does not print: a name must not steer a terminal, nor hide."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def names(found: Sequence[str], most: int = MOST_NAMES) -> str:
    """Names in a row; of very many the first ones and the number of the others."""
    if len(found) <= most:
        return ", ".join(found)
    return f"{', '.join(found[:most])} … and {len(found) - most:,} more"


def counted(count: int, noun: str) -> str:
    """A number with its noun: 1 file, 2 files."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
