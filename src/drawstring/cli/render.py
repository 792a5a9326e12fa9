"""Reports as rich renderables.

What a table holds (names, paths, values) is never handed over as text with markup: a partition called `[red]`
is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from drawstring.cli.doctor import Finding
from drawstring.errors import DrawstringError
from drawstring.inspection import PlanReport, SliceReport, TableReport
from drawstring.inspection.plan_report import REASONS
from drawstring.inspection.text import counted, names, printable
from drawstring.write.services.results import ArchiveResult, CleanResult, CompactResult

Item = TypeVar("Item")

_MARKS = {"ok": ("✓", "green"), "note": ("•", "yellow"), "missing": ("✗", "red")}
_KINDS = {"plain": "green", "merged": "yellow", "logs": "magenta"}
_STATES = {"completed": "green", "inflight": "yellow", "requested": "yellow"}
_CHANGES = {"added": "green", "dropped": "red", "renamed": "cyan", "changed": "yellow"}
_MOST_CHANGES = 50


def findings(found: Iterable[Finding]) -> RenderableType:
    """The doctor's findings."""
    table = _table("", "what", "found", "to do")
    for finding in found:
        _row(table, Text(*_MARKS[finding.status]), finding.name, finding.found, finding.advice)
    return table


def error(raised: DrawstringError) -> RenderableType:
    """An error as a panel: what is wrong on top, its facts below."""
    facts = "\n".join(printable(f"{name} = {value}") for name, value in raised.fields.items())
    message = Text("\n".join(map(printable, raised.message.splitlines())))
    body = message if not facts else Group(message, Text("\n" + facts, style="dim"))
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


def table_report(report: TableReport, *, files: int, instants: int) -> RenderableType:
    """A table from above."""
    title = Text.assemble(printable(report.name), "  ", (printable(report.path), "dim"))
    parts: list[RenderableType] = [_facts(title, report.facts())]
    parts += [_timeline(report, instants), _slices(report, files)]
    if report.schema_history:
        parts.append(_schema_history(report))
    if report.indexes:
        parts.append(_indexes(report))
    return Group(*(piece for part in parts for piece in (part, "")))


def plan_report(report: PlanReport, *, files: int) -> RenderableType:
    """What a scan reads and skips."""
    read = _table("partition", "file group", "instant", "kind", "logs", "size", "rows")
    for task in _first(report.tasks, files):
        kind = Text(printable(task.kind), _KINDS.get(task.kind, ""))
        logs, rows = str(task.log_files or ""), "" if task.rows is None else f"{task.rows:,}"
        _row(read, task.partition, task.file_id, task.base_instant, kind, logs, size(task.bytes), rows)
    skipped = _table("reason", "file slices", "size", "why")
    for group in report.skipped:
        _row(skipped, group.reason, f"{group.slices:,}", size(group.bytes), REASONS.get(group.reason, ""))
    title = Text.assemble("Scan of ", (printable(report.path), "dim"))
    more = _more(len(report.tasks), files)
    return Group(
        _facts(title, report.facts()),
        "",
        _titled("Read", read, *more) if report.tasks else "Nothing is read.",
        "",
        _titled("Skipped", skipped) if report.skipped else "Nothing is skipped.",
        *(Text(printable(f"Declined: {note}")) for note in report.notes),
    )


def _table(*columns: str) -> Table:
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"
    return table


def _titled(title: str, *parts: RenderableType) -> RenderableType:
    return Group(Text(title, style="italic"), *parts)


def _row(table: Table, *cells: str | Text) -> None:
    table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in cells))


def _facts(title: Text, facts: dict[str, str]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        _row(table, Text(name, style="bold"), value)
    return Panel(table, title=title, title_align="left", expand=False)


def _timeline(report: TableReport, most: int) -> RenderableType:
    if not report.instants:
        return "Timeline: no instant yet."
    columns = ("instant", "completed", "action", "state", "operation", "files", "rows", "deleted", "size")
    title, table = f"Timeline ({counted(len(report.instants), 'active instant')})", _table(*columns)
    for instant in report.instants[-most:] if most else report.instants:
        state = Text(printable(instant.state), _STATES.get(instant.state, ""))
        counts = [f"{n:,}" if n else "" for n in (instant.files, instant.rows_written, instant.rows_deleted)]
        written = size(instant.bytes_written) if instant.bytes_written else ""
        identity = (instant.requested_time, instant.completion_time or "", instant.action, state)
        _row(table, *identity, instant.operation.lower(), *counts, written)
    return _titled(title, table, *_more(len(report.instants), most, "earlier"))


def _slices(report: TableReport, most: int) -> RenderableType:
    if not report.slices:
        return "File slices: none."
    older: dict[tuple[str, str], list[SliceReport]] = {}
    for item in report.older_slices:
        older.setdefault((item.partition, item.file_id), []).append(item)
    columns = ("partition", "file group", "base instant", "base", "logs", "log size", "older slices")
    table = _table(*columns)
    for item in _first(report.slices, most):
        base = size(item.base_bytes) if item.base_file else Text("none", "dim")
        logs = (str(item.log_files), size(item.log_bytes)) if item.log_files else ("", "")
        before = _older(older.get((item.partition, item.file_id), []))
        _row(table, item.partition, item.file_id, item.base_instant, base, *logs, before)
    return _titled("File slices", table, *_more(len(report.slices), most))


def _older(slices: list[SliceReport]) -> str:
    total = sum(item.base_bytes + item.log_bytes for item in slices)
    return f"{len(slices):,} ({size(total)})" if slices else ""


def _schema_history(report: TableReport) -> RenderableType:
    table = _table("instant", "change")
    for entry in report.schema_history:
        shown = entry.changes[:_MOST_CHANGES]
        lines = [Text(printable(str(change)), style=_CHANGES[change.kind]) for change in shown]
        if len(entry.changes) > len(shown):
            lines.append(Text(f"… and {len(entry.changes) - len(shown):,} more", style="dim"))
        _row(table, entry.instant, Text("\n").join(lines))
    return _titled("Schema history", table)


def _indexes(report: TableReport) -> RenderableType:
    table = _table("index", "kind", "columns")
    for index in report.indexes:
        _row(table, index.name, index.kind, names(index.columns))
    return _titled("Indexes (metadata table)", table)


def _first(items: tuple[Item, ...], most: int) -> tuple[Item, ...]:
    return items[:most] if most else items


def _more(count: int, most: int, what: str = "more") -> list[RenderableType]:
    return [Text(f"… and {count - most:,} {what}", style="dim")] if most and count > most else []


def clean_result(result: CleanResult) -> RenderableType:
    """What a clean deleted, or would."""
    if not result.files:
        return _with_finished("There is nothing to clean.", result)
    shown = _table("partition", "file")
    for path, gone in sorted(result.files.items()):
        for name in gone:
            mark = " (not deleted)" if name in result.failed.get(path, ()) else ""
            _row(shown, path or ".", f"{name}{mark}")
    verb = "Would delete" if result.is_dry_run else f"Clean {result.instant} deleted"
    kept = f"; states since {result.earliest_retained} can be read" if result.earliest_retained else ""
    return Group(shown, _with_finished(f"{verb} {result.files_deleted:,} files{kept}.", result))


def _with_finished(text: str, result: CleanResult) -> str:
    if not result.finished:
        return text
    verb = "Would first finish" if result.is_dry_run else "Finished first"
    return f"{text} {verb}: {', '.join(result.finished)}."


def archive_result(result: ArchiveResult) -> RenderableType:
    """Which instants were archived, or would be."""
    if not result.instants:
        return "There is nothing to archive."
    shown = _table("instant", "action")
    for instant, action in result.instants:
        _row(shown, instant, action)
    verb = "Would archive" if result.is_dry_run else "Archived"
    return Group(shown, f"{verb} {len(result.instants):,} instants.")


def compact_result(result: CompactResult) -> RenderableType:
    """What was compacted, or would be."""
    running = f" Others are running {', '.join(result.running)}." if result.running else ""
    if not result.compactions:
        return f"There is nothing to compact.{running}"
    shown = _table("compaction", "partition", "file group", "base file", "logs", "size")
    for found in result.compactions:
        for group in found.groups:
            base, logs = group.base_file or "", str(len(group.log_files))
            told = size(group.bytes) if group.bytes else ""
            _row(shown, found.instant or "new", group.partition_path or ".", group.file_id, base, logs, told)
    groups = sum(len(found.groups) for found in result.compactions)
    done = [found for found in result.compactions if found.completion_time]
    rows, written = sum(found.rows for found in done), sum(found.bytes_written for found in done)
    if result.is_dry_run:
        return Group(shown, f"Would compact {groups:,} file groups.{running}")
    if not done:
        return Group(shown, f"Scheduled a compaction of {groups:,} file groups.{running}")
    return Group(shown, f"Compacted {groups:,} file groups: {rows:,} rows, {size(written)}.{running}")
