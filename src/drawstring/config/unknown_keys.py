"""Warnings about options that nobody knows: a typing error must not pass for a setting."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)

_warned: set[str] = set()

_OF_SPARK = frozenset(
    (
        *(
            "path",
            "paths",
            "header",
            "mode",
            "format",
            "provider",
            "location",
            "owner",
            "comment",
            "table",
            "database",
        ),
        *("compression", "codec", "mergeschema", "inferschema", "timezone", "dateformat", "timestampformat"),
        *("datetimerebasemode", "int96rebasemode", "partitionoverwritemode", "maxrecordsperfile", "encoding"),
        *(
            "checkpointlocation",
            "querytype",
            "serialization.format",
            "__partition_columns",
            "is_managed_location",
        ),
    )
)
"""What Spark, or a reader that was handed the same options, understands."""

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
_LIKENESS = 0.75


def warn_of_unknown(names: Iterable[str], known: Iterable[str]) -> None:
    """Log each name that nobody knows, once per process, with the known one that is most like it."""
    fresh = [name for name in names if name not in _warned and not _is_of_others(name)]
    known = tuple(known) if fresh else ()
    for name in fresh:
        _warned.add(name)
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
        hint = f"Did you mean {nearest[0]}?" if nearest else "See docs/options.md for those that are known."
        logger.warning("Nobody knows the option %s; it has no effect. %s", name, hint)


def _is_of_others(name: str) -> bool:
    return name in _OF_SPARK or name.startswith(_OF_OTHERS)
