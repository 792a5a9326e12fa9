"""Warnings about unknown options: a typing error must not pass for a setting."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)

_warned: set[str] = set()

_OF_SPARK = frozenset(
    {
        "__partition_columns",
        "checkpointlocation",
        "codec",
        "comment",
        "compression",
        "database",
        "dateformat",
        "datetimerebasemode",
        "encoding",
        "format",
        "header",
        "inferschema",
        "int96rebasemode",
        "is_managed_location",
        "location",
        "maxrecordsperfile",
        "mergeschema",
        "mode",
        "owner",
        "partitionoverwritemode",
        "path",
        "paths",
        "provider",
        "querytype",
        "serialization.format",
        "table",
        "timestampformat",
        "timezone",
    }
)
"""Options of Spark and of other readers that are often given the same options, in lower case."""

_OF_OTHERS = (
    "spark.",
    "fs.",
    "dfs.",
    "hadoop.",
    "parquet.",
    "mapreduce.",
    "option.",
    "transient_",
    "drawstring.",
)
_WRITES = "hoodie.datasource.write."
_LIKENESS = 0.75


def warn_of_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Log each unknown name, once per process, with the known one that is most like it."""
    fresh = [name for name in names if name not in _warned and not is_of_others(name)]
    known = tuple(known) if fresh else ()
    for name in fresh:
        _warned.add(name)
        nearest = most_like(name, known)
        hint = f"Did you mean {nearest}?" if nearest else "See docs/options.md for those that are known."
        logger.warning("Unknown option %s: it has no effect. %s", name, hint)


def warn_of_misspelt(properties: Iterable[str], known: Iterable[str]) -> None:
    """Log each table property that is nearly a known one: any other may be meant for another reader."""
    spellings = {name.lower(): name for name in known}
    for name in properties:
        if name.lower() in spellings or is_of_others(name.lower()):
            continue
        nearest = most_like(name.lower(), spellings)
        if nearest is not None:
            hint = spellings[nearest]
            logger.warning("The table property %s has no effect. Did you mean %s?", name, hint)


def most_like(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like the given one: it ends in it, or differs by a few letters."""
    known = tuple(known)
    whole = [key for key in known if key.endswith("." + name)]
    return (
        min(whole, key=lambda key: (not key.startswith(_WRITES), len(key)))
        if whole
        else most_alike(name, known)
    )


def most_alike(name: str, known: Iterable[str]) -> str | None:
    """The known name that differs from the given one by a few letters only."""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)), None)


def is_of_others(name: str) -> bool:
    """Whether an option, in lower case, is meant for Spark or a file system."""
    return name in _OF_SPARK or name.startswith(_OF_OTHERS)
