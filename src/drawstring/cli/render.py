"""Reports as rich renderables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from drawstring.cli.doctor import Finding
from drawstring.errors import DrawstringError
from drawstring.inspection import PlanReport, TableReport

Item = TypeVar("Item")

_MARKS = {"ok": "[green]✓[/]", "note": "[yellow]•[/]", "missing": "[red]✗[/]"}


def findings(found: Iterable[Finding]) -> RenderableType:
    """The doctor's findings."""
    table = _table("", "what", "found", "to do")
    for finding in found:
        table.add_row(_MARKS[finding.status], finding.name, finding.found, finding.advice)
    return table


def error(raised: DrawstringError) -> RenderableType:
    """An error as a panel: what is wrong on top, its facts below."""
    facts = "\n".join(f"{name} = {value}" for name, value in raised.fields.items())
    body = Text(raised.message) if not facts else Group(Text(raised.message), Text("\n" + facts, style="dim"))
    return Panel(
        body, title=f"{type(raised).__name__}: {raised.condition}", border_style="red", title_align="left"
    )


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _table(*columns: str, title: str | None = None, **options: Any) -> Table:
    table = Table(
        *columns, title=title, title_justify="left", box=None, header_style="bold", pad_edge=False, **options
    )
    for column in table.columns:
        column.overflow = "fold"
    return table


def table_report(report: TableReport, *, files: int, instants: int) -> RenderableType:
    """A table from above."""
    parts: list[RenderableType] = [_facts(f"{report.name}  [dim]{report.path}[/]", report.facts())]
    parts += [_timeline(report, instants), _slices(report, files)]
    if report.schema_history:
        parts.append(_schema_history(report))
    if report.indexes:
        parts.append(_indexes(report))
    return Group(*(piece for part in parts for piece in (part, "")))


def plan_report(report: PlanReport, *, files: int) -> RenderableType:
    """What a scan reads and skips."""
    read = _table("partition", "file group", "kind", "base file", "logs", "size", "rows", title="Read")
    for task in _first(report.tasks, files):
        rows = "" if task.rows is None else f"{task.rows:,}"
        base, kind = task.base_file or "[dim]none[/]", _KINDS.get(task.kind, task.kind)
        read.add_row(task.partition, task.file_id, kind, base, str(task.log_files), size(task.bytes), rows)
    skipped = _table("reason", "file slices", title="Skipped")
    for group in report.skipped:
        skipped.add_row(group.reason, f"{group.slices:,}")
    parts = [
        _facts(f"Scan of [dim]{report.path}[/]", report.facts()),
        "",
        read,
        _more(len(report.tasks), files),
    ]
    return Group(*parts, "", skipped if report.skipped else "Nothing is skipped.")


_KINDS = {"plain": "[green]plain[/]", "merged": "[yellow]merged[/]", "logs": "[magenta]logs[/]"}
_STATES = {
    "completed": "[green]completed[/]",
    "inflight": "[yellow]inflight[/]",
    "requested": "[yellow]requested[/]",
}
_CHANGES = {"added": "green", "dropped": "red", "renamed": "cyan", "changed": "yellow"}


def _facts(title: str, facts: dict[str, str]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        table.add_row(Text(name, style="bold"), value)
    return Panel(table, title=title, title_align="left", expand=False)


def _timeline(report: TableReport, most: int) -> RenderableType:
    columns = ("instant", "completed", "action", "state", "operation", "files", "rows", "deleted", "size")
    table = _table(*columns, title=f"Timeline ({len(report.instants)} instants)")
    shown = report.instants[-most:] if most else report.instants
    for instant in shown:
        state = _STATES.get(instant.state, instant.state)
        counts = [f"{n:,}" if n else "" for n in (instant.files, instant.rows_written, instant.rows_deleted)]
        written = size(instant.bytes_written) if instant.bytes_written else ""
        identity = (instant.requested_time, instant.completion_time or "", instant.action, state)
        table.add_row(*identity, instant.operation.lower(), *counts, written)
    return table


def _slices(report: TableReport, most: int) -> RenderableType:
    table = _table("partition", "file group", "base instant", "base", "logs", "log size", title="File slices")
    for item in _first(report.slices, most):
        base = size(item.base_bytes) if item.base_file else "[dim]none[/]"
        logs = (str(item.log_files), size(item.log_bytes)) if item.log_files else ("", "")
        table.add_row(item.partition, item.file_id, item.base_instant, base, *logs)
    return Group(table, _more(len(report.slices), most))


def _schema_history(report: TableReport) -> RenderableType:
    table = _table("instant", "change", title="Schema history")
    for entry in report.schema_history:
        lines = [Text(str(change), style=_CHANGES[change.kind]) for change in entry.changes]
        table.add_row(entry.instant, Text("\n").join(lines))
    return table


def _indexes(report: TableReport) -> RenderableType:
    table = _table("index", "kind", "columns", title="Indexes (metadata table)")
    for index in report.indexes:
        table.add_row(index.name, index.kind, ", ".join(index.columns))
    return table


def _first(items: tuple[Item, ...], most: int) -> tuple[Item, ...]:
    return items[:most] if most else items


def _more(count: int, most: int) -> RenderableType:
    return f"[dim]… and {count - most:,} more[/]" if most and count > most else ""
