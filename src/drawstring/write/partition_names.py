"""Warns of partition paths that differ only in letter case or Unicode normalisation."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)


def similar_paths(new: Iterable[str], known: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of directories, one of them made by a new path, that differ in case or composition only.

    Paths are compared by bytes everywhere else: such paths are partitions of their own here, and one directory on a
    file system that folds case or normalises names.
    """
    made = sorted(set(new) - set(known))
    spellings: dict[str, set[str]] = {}
    for path in (*made, *known):
        for directory in _directories(path):
            spellings.setdefault(_folded(directory), set()).add(directory)
    found = {
        (directory, similar)
        for path in made
        for directory in _directories(path)
        for similar in spellings[_folded(directory)] - {directory}
        if directory.rpartition("/")[0] == similar.rpartition("/")[0]
    }
    return sorted({(min(pair), max(pair)) for pair in found})


def warn_of_similar_paths(root: str, new: Iterable[str], known: Iterable[str]) -> None:
    """Log a warning that names the first pair, if there is one."""
    found = similar_paths(new, known)
    if found:
        logger.warning(
            "%d partition path(s) written to %s differ from others only in case or in how their characters are "
            "composed, such as %s and %s. They are kept apart, which is seldom meant; normalise the column.",
            len(found),
            root,
            ascii(found[0][0]),
            ascii(found[0][1]),
        )


def _directories(path: str) -> Iterator[str]:
    segments = path.split("/") if path else []
    return ("/".join(segments[:depth]) for depth in range(1, len(segments) + 1))


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
