"""The commands for table services: clean, archive, compact."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console

from drawstring.cli import render
from drawstring.errors import InvalidOption

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables for people.")]
TablePath = Annotated[str, typer.Argument(help="Path or URI of the table.", metavar="PATH")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done; nothing is changed.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="An option of Hudi as key=value; may be repeated.", metavar="KEY=VALUE"
    ),
]
Progress = Annotated[
    bool, typer.Option("--progress/--no-progress", help="Show a progress bar in a terminal.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to an application."""
    app.command()(clean)
    app.command()(archive)
    app.command()(compact)


def clean(
    path: TablePath,
    dry_run: DryRun = False,
    option: Options = None,
    progress: Progress = True,
    as_json: AsJson = False,
) -> None:
    """Delete old file versions, as hoodie.clean.policy and the options with it say.

    Cleans that were begun and never finished are finished first.
    """
    from drawstring.table import open_table

    result = open_table(path).clean(options=_options(option, progress), dry_run=dry_run)
    _print(result, render.clean_result(result), as_json)


def archive(
    path: TablePath,
    dry_run: DryRun = False,
    option: Options = None,
    progress: Progress = True,
    as_json: AsJson = False,
) -> None:
    """Move old instants from the active timeline to the archive; hoodie.keep.min.commits of them stay."""
    from drawstring.table import open_table

    result = open_table(path).archive(options=_options(option, progress), dry_run=dry_run)
    _print(result, render.archive_result(result), as_json)


def compact(
    path: TablePath,
    dry_run: DryRun = False,
    schedule: Annotated[
        bool,
        typer.Option("--schedule/--no-schedule", help="Make a new plan, besides running pending plans."),
    ] = True,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run plans, or only make one.")] = True,
    if_due: Annotated[
        bool,
        typer.Option("--if-due", help="Make a plan only if it is due by hoodie.compact.inline.*."),
    ] = False,
    logs_only: Annotated[
        bool, typer.Option("--logs-only", help="Merge log files with one another, not into base files.")
    ] = False,
    option: Options = None,
    progress: Progress = True,
    as_json: AsJson = False,
) -> None:
    """Merge the log files of a merge-on-read table into new base files.

    Pending plans, also those of writers that died, are run first.
    """
    from drawstring.table import open_table

    result = open_table(path).compact(
        schedule=schedule,
        run=run,
        only_if_due=if_due,
        logs_only=logs_only,
        options=_options(option, progress),
        dry_run=dry_run,
    )
    _print(result, render.compact_result(result), as_json)


def _options(given: list[str] | None, progress: bool) -> Mapping[str, str]:
    return {"hoodie.write.progress.enable": str(progress).lower(), **options_of(given)}


def options_of(given: list[str] | None) -> dict[str, str]:
    """Return what `--option` was given; raises `InvalidOption` for what is not `key=value`."""
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidOption(
                f"The option {text!r} is not of the form key=value, such as hoodie.clean.commits.retained=3.",
                condition="INVALID_OPTION_VALUE",
                key="--option",
                value=text,
            )
        found[key.strip()] = value
    return found


def _print(result: Any, shown: Any, as_json: bool) -> None:
    if as_json:
        json.dump(asdict(result), sys.stdout, indent=2, default=str)
        sys.stdout.write("\n")
    else:
        (Console() if sys.stdout.isatty() else Console(width=160)).print(shown)
