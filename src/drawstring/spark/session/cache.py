"""Where drawstring keeps what it makes for itself: compiled bridges, zips of the package."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "DRAWSTRING_CACHE"


def cache_directory() -> Path:
    """Where compiled bridges are kept: `DRAWSTRING_CACHE`, or the user's cache folder."""
    override = os.environ.get(CACHE_VARIABLE)
    if override:
        return Path(override)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "drawstring"
