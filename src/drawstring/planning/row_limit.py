"""LIMIT: as many slices as it takes to have the rows, counted exactly."""

from __future__ import annotations

from collections.abc import Sequence

BY_LIMIT = "limit"


def beyond_limit(counts: Sequence[int | None], needed: int) -> list[bool]:
    """Which slices are not needed, given how many rows of each certainly match; None where that is unknown.

    Slices of unknown count are left out only where the others suffice; where they do not, nothing is left out.
    """
    kept, total = [False] * len(counts), 0
    for position, count in enumerate(counts):
        if total >= needed:
            break
        if count:
            kept[position] = True
            total += count
    return [not keep for keep in kept] if total >= needed else [False] * len(counts)
