"""The commands, their options and exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from drawstring import __version__, errors
from drawstring.cli import doctor as doctor_checks
from drawstring.cli import render, services
from drawstring.cli.services import Options, options_of
from drawstring.inspection.problems import Problem

EXIT_CODES: dict[type[errors.DrawstringError], int] = {
    errors.TableNotFound: 3,
    errors.InvalidOption: 2,
    errors.InvalidInput: 2,
    errors.UnsupportedTable: 4,
    errors.CorruptTable: 5,
}
"""Exit codes by error; every other error exits with 1."""

app = typer.Typer(
    name="drawstring",
    no_args_is_help=True,
    add_completion=False,
    # Values of variables may be credentials.
    pretty_exceptions_show_locals=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables for people.")]
TablePath = Annotated[str, typer.Argument(help="Path or URI of the table.", metavar="PATH")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", help="Instant or time to look at; the newest by default.")
]


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"drawstring {__version__}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Inspect Apache Hudi tables and keep them in order; check what drawstring needs to run."""


@app.command()
def doctor(
    as_json: AsJson = False,
    session: Annotated[
        bool, typer.Option("--session", help="Also start Spark and try the callback from the JVM.")
    ] = False,
) -> None:
    """Check whether everything that drawstring needs is installed, and say how to get what is missing."""
    findings = doctor_checks.examine(session=session)
    if as_json:
        _print_json([finding.as_dict() for finding in findings])
    else:
        _console().print(render.findings(findings))
    if any(finding.status == "missing" for finding in findings):
        raise typer.Exit(1)


@app.command()
def inspect(
    path: TablePath,
    as_json: AsJson = False,
    as_of: AsOf = None,
    files: Annotated[int, typer.Option(min=0, help="How many file groups to show; 0 for all.")] = 20,
    instants: Annotated[
        int, typer.Option(min=0, help="How many of the newest instants to show; 0 for all.")
    ] = 20,
) -> None:
    """Show a table: its timeline, file groups and slices with sizes, schema history and indexes."""
    from drawstring.table import open_table

    report = open_table(path).inspect(as_of=as_of)
    if as_json:
        _print_json(report.as_dict())
    else:
        _console().print(render.table_report(report, files=files, instants=instants))
    _exit_with(report.problems)


@app.command()
def plan(
    path: TablePath,
    where: Annotated[
        str | None, typer.Option("--where", help="SQL predicate, e.g. \"day = '2026-08-22'\".")
    ] = None,
    select: Annotated[str | None, typer.Option("--select", help="Columns, separated by commas.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=0, help="The most rows to read.")] = None,
    order_by: Annotated[
        str | None, typer.Option("--order-by", help='A column, or "COLUMN DESC"; with --limit.')
    ] = None,
    aggregate: Annotated[
        str | None, typer.Option("--aggregate", help='Aggregates, e.g. "count(*), max(amount)".')
    ] = None,
    as_of: AsOf = None,
    as_json: AsJson = False,
    files: Annotated[int, typer.Option(min=0, help="How many tasks to show; 0 for all.")] = 20,
) -> None:
    """Show what a scan would read, what it would skip, and why."""
    from drawstring.table import open_table

    report = open_table(path).explain(
        where=where,
        select=_listed(select) or None,
        as_of=as_of,
        limit=limit,
        order_by=order_by,
        aggregate=_listed(aggregate),
    )
    if as_json:
        _print_json(report.as_dict())
    else:
        _console().print(render.plan_report(report, files=files))


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


@app.command()
def rollback(
    path: TablePath,
    instant: Annotated[
        str | None, typer.Argument(help="The pending write; without it, all whose writers are dead.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be rolled back.")] = False,
    option: Options = None,
    as_json: AsJson = False,
) -> None:
    """Undo writes that were begun and never completed, as Hudi does. Their rows were never visible.

    A running write is undone too if its instant is given: it notices when it commits, and is retried.
    """
    from drawstring.table import open_table

    table, options = open_table(path), options_of(option)
    roll_back = table.pending_rollbacks if dry_run else table.rollback
    found = roll_back(instant, options=options)
    if as_json:
        _print_json({"dry_run": dry_run, "instants": found})
    else:
        done = "Would roll back" if dry_run else "Rolled back"
        _console().print(f"{done} {', '.join(found)}." if found else "There is nothing to roll back.")


services.register(app)
metadata_app = typer.Typer(help="Rebuild or remove the metadata table of a table.", no_args_is_help=True)
app.add_typer(metadata_app, name="metadata")


@metadata_app.command("rebuild")
def metadata_rebuild(path: TablePath, option: Options = None, as_json: AsJson = False) -> None:
    """Rebuild a damaged metadata table from the table's files, with the indexes that it had."""
    from drawstring.table import open_table

    partitions = open_table(path).rebuild_metadata(options_of(option))
    if as_json:
        _print_json({"partitions": partitions})
    else:
        _console().print(f"Made the metadata table with {', '.join(partitions)}.")


@metadata_app.command("drop")
def metadata_drop(path: TablePath, option: Options = None, as_json: AsJson = False) -> None:
    """Remove the metadata table. The next write makes it again unless hoodie.metadata.enable is false."""
    from drawstring.table import open_table

    dropped = open_table(path).drop_metadata(options=options_of(option))
    if as_json:
        _print_json({"dropped": dropped})
    else:
        _console().print("Removed the metadata table." if dropped else "There is no metadata table.")


def _exit_with(problems: Sequence[Problem]) -> None:
    """End with the code of the first problem, if there is one, after telling all of them."""
    found = [problem.as_error() for problem in problems]
    for error in found:
        Console(stderr=True).print(render.error(error))
    if found:
        raise typer.Exit(exit_code(found[0]))


def main() -> None:
    """Run the command line; drawstring's errors become one clear message and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape instead of a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except errors.DrawstringError as error:
        Console(stderr=True).print(render.error(error))
        sys.exit(exit_code(error))
    except OSError as error:
        Console(stderr=True).print(Text(f"{type(error).__name__}: {error}", style="red"))
        sys.exit(1)


def exit_code(error: errors.DrawstringError) -> int:
    """The process's exit code for an error."""
    return next((code for cls, code in EXIT_CODES.items() if isinstance(error, cls)), 1)


def _console() -> Console:
    # Cut columns help nobody in a file or a pipe: there the width is generous.
    return Console() if sys.stdout.isatty() else Console(width=160)


def _print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")
