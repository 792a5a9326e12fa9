"""Small HTML for notebooks: headed tables, everything escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import islice
from typing import Any

from drawstring.inspection.text import printable

_MOST_ROWS = 200


def document(title: str, *parts: str) -> str:
    """A titled block of parts; empty parts vanish."""
    return f"<div><h4>{escape(printable(title))}</h4>{''.join(parts)}</div>"


def grid(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A folded table; an empty one is left out, a long one is cut with a note."""
    source = iter(rows)
    shown = list(islice(source, _MOST_ROWS))
    if not shown:
        return ""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in shown)
    more = "<p>… and more</p>" if next(source, None) is not None else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
    return f"<details open><summary>{escape(title)}</summary>{table}</details>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return escape(printable(", ".join(map(str, value)) if isinstance(value, tuple) else str(value)))
