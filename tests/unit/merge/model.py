"""Merging by the book, one record after the other: what plans are compared with.

An event is a kind, `data` or `delete`, an ordering value and a row (`folded`, `met`), or a kind and a row that may
lack columns (`partially_folded`, `partially_met`).
"""

from __future__ import annotations

from tests.unit.merge.slices import COMMIT_TIME


def rank(ordering):
    """Where an ordering value stands; null below all others."""
    return (0, 0) if ordering is None else (1, ordering)


def is_final(event):
    """Whether a delete asks for no ordering value."""
    return event[0] == "delete" and event[1] is None


def folded(old, new, mode):
    """What stands after a new event."""
    if old is None or mode == COMMIT_TIME:
        return new
    if is_final(old):
        return old if new[0] == "delete" else new
    if is_final(new) or rank(new[1]) >= rank(old[1]):
        return new
    return old


def met(base, event, mode):
    """The row after what the logs say has met the base row; None for none."""
    if event is None:
        return base
    later = base is not None and mode != COMMIT_TIME and not is_final(event)
    if later and rank(base["ts"]) > rank(event[1]):
        return base
    return event[2]


def is_final_delete(event):
    """Whether a delete asks for no ordering value."""
    return event[0] == "delete" and event[1]["ts"] is None


def newer_wins(old, new, mode):
    """Whether the newer of two events stands."""
    if mode == COMMIT_TIME or is_final_delete(old) or is_final_delete(new):
        return True
    return rank(new[1]["ts"]) >= rank(old[1]["ts"])


def without_nulls(high, low):
    """One row over another; its nulls leave the other's values."""
    return {name: low[name] if value is None else value for name, value in high.items()}


def by_column(high, low):
    """One row over another, which provides the columns that the first lacks."""
    return {**low, **high}


def partially_folded(old, new, mode, *, combined=without_nulls):
    """What stands after a new event that may leave columns to the old one."""
    if old is None:
        return new
    if is_final_delete(old) and new[0] == "delete":
        return old
    wins = newer_wins(old, new, mode)
    if old[0] == new[0] == "data":
        return ("data", combined(new[1], old[1]) if wins else combined(old[1], new[1]))
    return new if wins else old


def partially_met(base, event, mode, *, combined=without_nulls):
    """The row after what the logs say has met the base row; None for none."""
    if event is None or base is None:
        return base if event is None else event[1] if event[0] == "data" else None
    kind, found = partially_folded(("data", base), event, mode, combined=combined)
    return found if kind == "data" else None
