"""Warnings about misspelt options of reads: `as.of.instnt` would otherwise read the newest rows without a word."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache

from drawstring.config import read_options, stream_options
from drawstring.config.unknown_keys import is_of_others, most_alike
from drawstring.config.write_options import hudi_keys

logger = logging.getLogger(__name__)

_seen: set[str] = set()


def warn_of_misspelt_options(names: Iterable[str]) -> None:
    """Log each name that is nearly an option of reads, once per process; any other may be meant for somebody else."""
    for name in names:
        if name not in _seen:
            _seen.add(name)
            _warn(name)


def _warn(name: str) -> None:
    known = _spellings()
    if name.lower() in known or is_of_others(name.lower()):
        return
    nearest = most_alike(name.lower(), known)
    if nearest is not None and hudi_keys().find(name) is None:
        logger.warning("The option %s has no effect. Did you mean %s?", name, known[nearest])


@lru_cache(maxsize=1)
def _spellings() -> dict[str, str]:
    options = (*read_options.ALL, *stream_options.ALL)
    return {name.lower(): name for option in options for name in (option.key, *option.aliases)}
